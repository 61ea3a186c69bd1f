"""MuLan-PixArt: PixArt-α with mulankit's multilingual text encoder, its language adapter, and the fine-tuned transformer.

Written from the repository's examples/pixart_full.py; never run here.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, Tuple  # noqa: UP035 (Python 3.8 reads these at run time)

Message = Dict[str, Any]  # noqa: UP006


def load(hello: Message) -> Tuple[Message, Callable[[Message], Any]]:  # noqa: UP006
    """The pipeline in half precision, and a function that draws."""
    torch, diffusers, mulankit = (importlib.import_module(name) for name in ("torch", "diffusers", "mulankit"))
    places = hello["places"]
    pipeline = diffusers.PixArtAlphaPipeline.from_pretrained(places["pixart"])
    pipeline = mulankit.transform(pipeline, adapter_path=places["adapter"])
    pipeline.transformer = diffusers.Transformer2DModel.from_pretrained(places["transformer"], subfolder="pixart-alpha-1024-ms")
    pipeline = pipeline.to("cuda", dtype=torch.float16)

    def draw(request: Message) -> Any:
        options = {"num_inference_steps": hello["steps"], "guidance_scale": hello["guidance"]}
        options.update({name: request[name] for name in ("width", "height")})
        return pipeline(
            prompt=request["prompt"],
            generator=torch.Generator("cpu").manual_seed(request["seed"]),
            **{name: value for name, value in options.items() if value is not None},
        ).images[0]

    return {"model": "mulan-pixart", "revision": places["transformer"], "seeds": True, "device": "cuda"}, draw


if __name__ == "__main__":
    from serving import serve  # type: ignore[import-not-found]  # it lies beside this file

    serve(load)
