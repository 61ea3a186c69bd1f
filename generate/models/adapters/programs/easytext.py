"""EasyText with its fine-tuning LoRA, through its repository's FluxPipeline.

Written from the repository's inference_1024.py; never run here. The condition image holds each line of text in a strip, and the position
file says for each line where it goes in the picture and where its strip is.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Callable, Dict, Tuple  # noqa: UP035 (Python 3.8 reads these at run time)

Message = Dict[str, Any]  # noqa: UP006


def load(hello: Message) -> Tuple[Message, Callable[[Message], Any]]:  # noqa: UP006
    """FLUX.1-dev with the first LoRA fused and the second loaded, and a function that draws."""
    from serving import told  # type: ignore[import-not-found]  # it lies beside this file

    torch, image_module = importlib.import_module("torch"), importlib.import_module("PIL.Image")
    places = hello["places"]
    pipelines = importlib.import_module("src.pipeline_pe_clone_multisample")
    pipeline = pipelines.FluxPipeline.from_pretrained(places["flux"], torch_dtype=torch.bfloat16).to("cuda")
    pipeline.load_lora_weights(places["pretrained"])
    pipeline.fuse_lora()
    pipeline.unload_lora_weights()
    pipeline.load_lora_weights(places["finetuned"])

    def draw(request: Message) -> Any:
        position_file = os.path.join(hello["exchange"], f"{request['id']}-position.txt")
        with open(position_file, "w", encoding="utf-8") as file:
            file.write(request["render_layout"])
        try:
            return pipeline(
                prompt=request["prompt"].replace("<sks1>", request["render_text"] or ""),
                condition_image=image_module.open(request["condition_image"]).convert("RGB"),
                position_file=position_file,
                height=told(request, "height", 1024),
                width=told(request, "width", 1024),
                guidance_scale=told(hello, "guidance", 3.5),
                num_inference_steps=told(hello, "steps", 20),
                max_sequence_length=512,
                generator=torch.Generator("cpu").manual_seed(request["seed"]),
            ).images[0]
        finally:
            os.unlink(position_file)

    revision = os.path.basename(places["finetuned"])
    return {"model": "EasyText", "revision": revision, "seeds": True, "device": "cuda"}, draw


if __name__ == "__main__":
    from serving import serve  # it lies beside this file

    serve(load)
