"""A model behind a guardrail, with the interface of a model, so that every engine runs it like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from PIL import Image

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import guardrails
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.guardrails import Guardable, Guardrail
from t2i_parity.generate.models import TextToImageModel
from t2i_parity.generate.models import load as load_model
from t2i_parity.generate.rows import PlannedRow, Record

Made = Image.Image | Failure | Future[Image.Image | Failure]
Result = TypeVar("Result")


def load(spec: str, options: Mapping[str, str], *, guardrail: str | None, guards: Mapping[str, str]) -> TextToImageModel:
    """The model a user named, behind the guardrail that they named, if any.

    Raises InputError for an unknown name or setting of either, and for a guardrail that cannot guard this model.
    """
    if guardrail is None:
        if guards:
            raise InputError(f"--guard {next(iter(guards))}=…: there is no guardrail to set; give --guardrail NAME too")
        return load_model(spec, options)
    # The guardrail first: it is small, and what is wrong with it is told before a model is loaded.
    around = guardrails.load(guardrail, guards)
    return cast(TextToImageModel, GuardedModel(load_model(spec, options), around))


class GuardedModel:
    """The given model with images that went past the guardrail. Everything but ``generate`` is the model's own answer.

    A model that runs a pipeline puts the guardrail around it; the images of any other are looked at here.
    """

    def __init__(self, model: Any, guardrail: Guardrail) -> None:
        self._inside = isinstance(model, Guardable)
        if self._inside:
            model.guard(guardrail)
        elif guardrail.reads_prompts:
            raise InputError(
                f"{guardrail.name} guards pipelines of diffusers from the inside, and {model.name} is none. "
                "Give such a model, or --guardrail safety-checker, which looks at finished images of any model"
            )
        self._model = model
        self._guardrail = guardrail

    def __getattr__(self, name: str) -> Any:
        if name in ("_model", "_guardrail"):  # not there yet, as while a copy is made
            raise AttributeError(name)
        return getattr(self._model, name)

    def guardrail_record(self) -> Record:
        """Every setting of the guardrail that changes an image."""
        return self._guardrail.record()

    def generate(self, rows: Sequence[PlannedRow], seeds: Sequence[int]) -> list[Made]:
        """One image a row, or why there is none; an image that the guardrail withholds is a refusal."""
        made: Sequence[Made] = self._model.generate(rows, seeds)
        if self._inside:
            return list(made)
        if any(isinstance(each, Future) for each in made):
            return [_then(each, self._let_through_one) if isinstance(each, Future) else self._let_through_one(each) for each in made]
        return list(self._let_through([each for each in made if not isinstance(each, Future)]))

    def _let_through(self, made: Sequence[Image.Image | Failure]) -> list[Image.Image | Failure]:
        images = [each for each in made if not isinstance(each, Failure)]
        reasons = iter(self._guardrail.withheld(images))
        answers: list[Image.Image | Failure] = []
        for each in made:
            reason = None if isinstance(each, Failure) else next(reasons)
            answers.append(each if reason is None else Failure(reason, refused=True))
        return answers

    def _let_through_one(self, made: Image.Image | Failure) -> Image.Image | Failure:
        return self._let_through([made])[0]


def _then(future: Future[Result], change: Callable[[Result], Result]) -> Future[Result]:
    """A future of the changed result, computed by the thread that finishes the given one."""
    changed: Future[Result] = Future()

    def done(finished: Future[Result]) -> None:
        try:
            changed.set_result(change(finished.result()))
        except BaseException as error:
            changed.set_exception(error)

    future.add_done_callback(done)
    return changed
