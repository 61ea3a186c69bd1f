"""T2I Parity: does a text-to-image system serve everyone equally, whatever their language, dialect or country?

From prompts to a report, in Python; every function is a command of ``t2i-parity`` too, with the same options:

>>> import t2i_parity as tp
>>> prompts = tp.load_prompts("demo/prompts", "lingt2i_text", languages=["en", "hi"], limit=8)  # doctest: +SKIP
>>> run = tp.generate("glyph", prompts, out="runs/mine", settings={"damage": "light"})  # doctest: +SKIP
>>> tp.judge(run, "tesseract")  # doctest: +SKIP
Run('runs/mine')
>>> scores = tp.score(run, tokenizer="tekken")  # doctest: +SKIP
>>> tp.report([run], out="runs/mine.html")  # doctest: +SKIP

The rooms (``dataset_builder``, ``metrics``, ``generate``, ``validation``, ``cards``) stand at the top of the repository, where people look
for them; the links in this folder make them one package, so that an installation takes a single name in the user's environment.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from t2i_parity.dataset_builder.errors import InputError as InputError
    from t2i_parity.dataset_builder.prompts import Prompt as Prompt
    from t2i_parity.dataset_builder.prompts import Prompts as Prompts
    from t2i_parity.dataset_builder.prompts import load_prompts as load_prompts
    from t2i_parity.generate.run import Run as Run
    from t2i_parity.generate.stages import Comparisons as Comparisons
    from t2i_parity.generate.stages import Report as Report
    from t2i_parity.generate.stages import Stopped as Stopped
    from t2i_parity.generate.stages import audit as audit
    from t2i_parity.generate.stages import compare as compare
    from t2i_parity.generate.stages import generate as generate
    from t2i_parity.generate.stages import judge as judge
    from t2i_parity.generate.stages import open_run as open_run
    from t2i_parity.generate.stages import plan as plan
    from t2i_parity.generate.stages import report as report
    from t2i_parity.generate.stages import score as score

_STANDS_IN = {
    "InputError": "dataset_builder.errors",
    **dict.fromkeys(("Prompt", "Prompts", "load_prompts"), "dataset_builder.prompts"),
    "Run": "generate.run",
    **dict.fromkeys(
        ("Comparisons", "Report", "Stopped", "audit", "compare", "generate", "judge", "open_run", "plan", "report", "score"),
        "generate.stages",
    ),
}
"""Where each name of the interface is defined: it is imported when it is first used, so that ``import t2i_parity`` costs nothing."""

__all__ = ["__version__", *_STANDS_IN]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    if name not in _STANDS_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        # A room of the same name is there from now on in any case, and can be called.
        return (
            import_module(f"{__name__}.generate") if name == "generate" else getattr(import_module(f"{__name__}.{_STANDS_IN[name]}"), name)
        )
    except ModuleNotFoundError as error:
        from t2i_parity.dataset_builder.errors import not_installed

        raise not_installed(error) from error


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("t2i-parity")
    except PackageNotFoundError:  # the code of a Space, which is copied and not installed
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
