"""PEA, MultilingualFLUX.1-adapter: ByT5 as text encoder of FLUX.1-schnell, joined to it by a small network.

Written from the shape in which the LingT2I study's published script loads the weights; never run here. The encoder reads 256 bytes of a
prompt, which are 256 Latin letters and about 85 of Devanagari. The study's own script asks for 28 steps with guidance 3.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable, Dict, Tuple  # noqa: UP035 (Python 3.8 reads these at run time)

Message = Dict[str, Any]  # noqa: UP006
BYTES = 256


def load(hello: Message) -> Tuple[Message, Callable[[Message], Any]]:  # noqa: UP006
    """Encoder, network and pipeline in bfloat16, and a function that draws."""
    from serving import told  # type: ignore[import-not-found]  # it lies beside this file

    torch, diffusers, transformers = (importlib.import_module(name) for name in ("torch", "diffusers", "transformers"))
    places, dtype = hello["places"], torch.bfloat16
    nothing = {"text_encoder": None, "text_encoder_2": None, "tokenizer": None, "tokenizer_2": None}
    pipeline = diffusers.FluxPipeline.from_pretrained(places["flux"], torch_dtype=dtype, **nothing).to("cuda")
    tokenizer = transformers.AutoTokenizer.from_pretrained(places["byt5"])
    encoder = transformers.T5EncoderModel.from_pretrained(places["byt5"], torch_dtype=dtype).to("cuda").eval()
    stored = torch.load(places["adapter"], map_location="cpu", weights_only=True)
    weights = {name.replace("module.", ""): value.to("cuda", dtype) for name, value in stored.items()}
    functions = torch.nn.functional

    def joined(states: Any) -> Any:
        """The pooled and the token-wise embeddings that FLUX takes, from the encoder's states."""
        scale = weights["layernorm.weight"]
        states = functions.layer_norm(states, scale.shape, scale, weights["layernorm.bias"])
        for layer in ("projector.0", "projector.2", "projector.4"):
            states = functions.gelu(functions.linear(states, weights[f"{layer}.weight"]))
        return functions.linear(states, weights["fc.weight"], weights["fc.bias"]).mean(1), states

    def draw(request: Message) -> Any:
        with torch.no_grad():
            ids = tokenizer(request["prompt"], padding="max_length", max_length=BYTES, truncation=True, return_tensors="pt").input_ids
            pooled, states = joined(encoder(ids.to("cuda"))[0])
            return pipeline(
                prompt_embeds=states,
                pooled_prompt_embeds=pooled,
                num_inference_steps=told(hello, "steps", 4),
                guidance_scale=told(hello, "guidance", 0.0),
                width=told(request, "width", 1024),
                height=told(request, "height", 1024),
                generator=torch.Generator("cpu").manual_seed(request["seed"]),
            ).images[0]

    revision = os.path.basename(places["adapter"])
    return {"model": "MultilingualFLUX.1-adapter", "revision": revision, "seeds": True, "device": "cuda"}, draw


if __name__ == "__main__":
    from serving import serve  # it lies beside this file

    serve(load)
