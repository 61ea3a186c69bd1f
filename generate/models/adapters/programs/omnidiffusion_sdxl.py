"""OmniDiffusion-SDXL: Baichuan2-7B and its adapter in place of SDXL's text encoders, through its repository's pipeline.

Written from the repository's inference.py and inference.sh; never run here.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable, Dict, Tuple  # noqa: UP035 (Python 3.8 reads these at run time)

Message = Dict[str, Any]  # noqa: UP006


def load(hello: Message) -> Tuple[Message, Callable[[Message], Any]]:  # noqa: UP006
    """The pipeline with its own UNet, text encoder and adapter, and a function that draws."""
    from serving import told  # type: ignore[import-not-found]  # it lies beside this file

    torch, diffusers = importlib.import_module("torch"), importlib.import_module("diffusers")
    encoders, pipelines = importlib.import_module("text_encoder"), importlib.import_module("pipeline")
    places, dtype = hello["places"], torch.float16

    def weights(path: str) -> Any:
        if path.endswith(".safetensors"):
            return importlib.import_module("safetensors.torch").load_file(path, device="cpu")
        return torch.load(path, map_location="cpu", weights_only=True)

    unet = diffusers.UNet2DConditionModel.from_pretrained(os.path.join(places["sdxl"], "unet"))
    state = weights(places["unet"])
    unet.load_state_dict(state.get("module", state))
    pipeline = pipelines.SDXLwithMLMPipeline.from_pretrained(places["sdxl"], unet=unet.to(dtype), torch_dtype=dtype)
    pipeline.scheduler = diffusers.DPMSolverMultistepScheduler.from_config(pipeline.scheduler.config, use_karras_sigmas=True)
    pipeline.to("cuda")

    encoder = encoders.LLMPretrainedModel(model_name_or_path=places["baichuan"], model_max_length=227).to("cuda").to(dtype).eval()
    encoder.requires_grad_(False)
    adapter = encoders.MLMAdapter(llm_hidden_size=4096)
    adapter.load_state_dict(weights(places["adapter"]))
    pipeline.init_custom_mlm_encoder(encoder, adapter.to("cuda").to(dtype).eval(), torch_dtype=dtype)

    def draw(request: Message) -> Any:
        with torch.no_grad():
            return pipeline(
                prompt=[request["prompt"]],
                negative_prompt=[""],
                num_inference_steps=told(hello, "steps", 50),
                guidance_scale=told(hello, "guidance", 7.5),
                width=told(request, "width", 1024),
                height=told(request, "height", 1024),
                generator=torch.Generator("cuda").manual_seed(request["seed"]),
            ).images[0]

    revision = os.path.basename(places["unet"])
    return {"model": "OmniDiffusion-SDXL", "revision": revision, "seeds": True, "device": "cuda"}, draw


if __name__ == "__main__":
    from serving import serve  # it lies beside this file

    serve(load)
