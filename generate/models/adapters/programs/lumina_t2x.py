"""Lumina-T2I through its repository's own loading and inference functions, with the settings of its README.

Written from lumina_t2i/utils/cli.py and its README; never run here.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, Tuple  # noqa: UP035 (Python 3.8 reads these at run time)

Message = Dict[str, Any]  # noqa: UP006


def load(hello: Message) -> Tuple[Message, Callable[[Message], Any]]:  # noqa: UP006
    """Autoencoder, transformer, language model and tokenizer, and a function that draws."""
    from serving import told  # type: ignore[import-not-found]  # it lies beside this file

    torch, cli = importlib.import_module("torch"), importlib.import_module("lumina_t2i.utils.cli")
    to_image = importlib.import_module("torchvision.transforms.functional").to_pil_image
    places, dtype = hello["places"], torch.bfloat16
    autoencoder, transformer, language_model, tokenizer, trained = cli.load_model(
        places["checkpoint"], dtype, cli.find_free_port(), ckpt_lm=places["llama"]
    )

    def draw(request: Message) -> Any:
        config = {
            "models": vars(trained),
            "transport": {
                "path_type": "Linear",
                "prediction": "velocity",
                "loss_weight": "velocity",
                "sample_eps": 0.1,
                "train_eps": 0.2,
            },
            "ode": {"atol": 1e-6, "rtol": 1e-3, "reverse": False, "likelihood": False},
            "sde": {},
            "infer": {
                "resolution": f"{told(request, 'width', 1024)}x{told(request, 'height', 1024)}",
                "num_sampling_steps": told(hello, "steps", 60),
                "cfg_scale": told(hello, "guidance", 4.0),
                "solver": "euler",
                "t_shift": 4,
                "ntk_scaling": True,
                "proportional_attn": True,
                # To this code, 0 means: no seed.
                "seed": request["seed"] or 2**32,
            },
        }
        picture = cli.inference(request["prompt"], dtype, config, autoencoder, transformer, language_model, tokenizer)
        if picture is None:
            raise RuntimeError("the inference function gave no image; its traceback is in the log")
        return to_image(picture.float().cpu())

    return {"model": "Lumina-T2I", "revision": str(trained.model), "seeds": True, "device": "cuda"}, draw


if __name__ == "__main__":
    from serving import serve  # it lies beside this file

    serve(load)
