"""X2I with Qwen2.5-VL 7B: the hidden states of all its layers, aligned by a small network, condition FLUX.1-schnell.

Written from the repository's inference_qwenvl.py and proj.py; never run here. The LingT2I study's own script asks for 28 steps.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable, Dict, Tuple  # noqa: UP035 (Python 3.8 reads these at run time)

Message = Dict[str, Any]  # noqa: UP006
TOKENS = 512
LAYERS = 29


def load(hello: Message) -> Tuple[Message, Callable[[Message], Any]]:  # noqa: UP006
    """Language model, alignment network and pipeline in bfloat16, and a function that draws."""
    from serving import told  # type: ignore[import-not-found]  # it lies beside this file

    torch, diffusers, transformers = (importlib.import_module(name) for name in ("torch", "diffusers", "transformers"))
    places, dtype = hello["places"], torch.bfloat16
    processor = transformers.AutoProcessor.from_pretrained(places["qwen"])
    reader = transformers.Qwen2_5_VLForConditionalGeneration.from_pretrained(places["qwen"], torch_dtype=dtype).to("cuda").eval()
    network = importlib.import_module("proj").create_proj3_qwen7b(in_channels=LAYERS, use_t5=False, use_scale=False, use_cnn=True)
    stored = torch.load(places["proj"], map_location="cpu", weights_only=True)
    network.load_state_dict({name.replace("module.", ""): value for name, value in stored.items()})
    network.to("cuda", dtype).eval()
    nothing = {"text_encoder": None, "text_encoder_2": None, "tokenizer": None, "tokenizer_2": None}
    pipeline = diffusers.FluxPipeline.from_pretrained(places["flux"], torch_dtype=dtype, **nothing).to("cuda")

    def draw(request: Message) -> Any:
        turn = [{"role": "user", "content": [{"type": "text", "text": request["prompt"]}]}]
        text = processor.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        given = processor(text=[text], padding="max_length", max_length=TOKENS, truncation=True, return_tensors="pt").to("cuda")
        with torch.no_grad():
            # The states of the prompt alone are used, which the first step of a generation holds.
            said = reader.generate(**given, max_new_tokens=1, output_hidden_states=True, return_dict_in_generate=True)
            pooled, states = network(torch.cat(said["hidden_states"][0]).unsqueeze(0))
            return pipeline(
                prompt_embeds=states,
                pooled_prompt_embeds=pooled,
                num_inference_steps=told(hello, "steps", 4),
                guidance_scale=told(hello, "guidance", 3.5),
                width=told(request, "width", 1024),
                height=told(request, "height", 1024),
                generator=torch.Generator("cpu").manual_seed(request["seed"]),
            ).images[0]

    return {"model": "X2I-QwenVL2.5-7B", "revision": os.path.basename(places["proj"]), "seeds": True, "device": "cuda"}, draw


if __name__ == "__main__":
    from serving import serve  # it lies beside this file

    serve(load)
