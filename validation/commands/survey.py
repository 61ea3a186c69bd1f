"""The command ``survey``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from t2i_parity.dataset_builder.console import output
from t2i_parity.dataset_builder.errors import InputError, require

if TYPE_CHECKING:
    from t2i_parity.validation.survey.pictures import Picture
    from t2i_parity.validation.survey.service import Settings


def survey(
    runs: Annotated[list[str], typer.Argument(metavar="RUN …", help="Runs over the config geo; participants do not see which.")],
    country: Annotated[list[str] | None, typer.Option(metavar="ALPHA3", help="A country to survey, e.g. IND; may be given again.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Ratings go here; a survey that is there goes on.")] = None,
    ratings_hub: Annotated[
        str | None, typer.Option(metavar="NAMESPACE/RATINGS", help="Commit them to this private dataset on the hub too.")
    ] = None,
    per_participant: Annotated[int, typer.Option(min=2, max=1000, help="Images that each participant rates.")] = 80,
    quota: Annotated[int, typer.Option(min=1, max=100_000, help="Participants a country who pass the checks.")] = 20,
    seed: Annotated[int, typer.Option(help="Decides which images each participant sees, and in which order.")] = 0,
    trick_pictures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Your own mango, water, pen and sun (PNG, JPEG, WebP) for the trick questions.")
    ] = None,
    completion_code: Annotated[str | None, typer.Option(help="Shown at the end, for a platform that asks for one.")] = None,
    host: Annotated[str, typer.Option(help="0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535)] = 7860,
    space: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Start nothing: write the survey as a hub Space here.")] = None,
) -> None:
    """Ask people how well images reflect what they see around them: the geographical study as a web page in ten languages.

    Example: t2i-parity survey runs/geo --country IND --country JPN --out ratings
    """
    from t2i_parity.validation.survey import space as spaces
    from t2i_parity.validation.survey.service import Settings
    from t2i_parity.validation.survey.serving import serve
    from t2i_parity.validation.survey.study import Design

    countries = _countries(country or [])
    if (out is None) == (space is None):
        raise InputError("give either --out FOLDER, where the ratings go, or --space FOLDER, to write the survey as a Space")
    if space is not None and ratings_hub is None:
        raise InputError("a Space needs --ratings-hub NAMESPACE/RATINGS: its own disk does not last")
    if ratings_hub is not None and (ratings_hub.count("/") != 1 or not all(ratings_hub.split("/"))):
        raise InputError(f"--ratings-hub {ratings_hub!r}: expected NAMESPACE/NAME, as in lab/ratings")
    require("gradio", package="gradio", extra="survey")
    settings = Settings(countries, Design(seed=seed, per_participant=per_participant), quota, completion_code)
    tricks = None if trick_pictures is None else str(trick_pictures)
    if space is not None:
        assert ratings_hub is not None
        spaces.write(space, _pictures(runs, settings), settings, ratings_hub, tricks)
        _say(f"{space}/space is the Space, {space}/dataset its private dataset; {space}/space/README.md says how to publish them")
        return
    assert out is not None
    serve(out, settings, lambda: _pictures(runs, settings), trick_folder=tricks, hub=ratings_hub, host=host, port=port, say=_say)


def _countries(given: list[str]) -> tuple[str, ...]:
    from t2i_parity.dataset_builder.countries import countries

    known = countries("all")
    if not given:
        raise InputError("no country was named: give --country ALPHA3, such as --country IND, once or more")
    for code in given:
        if code not in known:
            raise InputError(f"--country {code!r}: expected an ISO 3166-1 alpha-3 code, such as IND or JPN")
    return tuple(dict.fromkeys(given))


def _pictures(runs: list[str], settings: Settings) -> list[Picture]:
    from rich.progress import Progress

    from t2i_parity.validation.survey.pictures import gather

    console = output()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("pictures", total=None)
        pictures, left_out = gather(runs, settings.countries, done=lambda n: progress.advance(bar, n))
    models = sorted({picture.model for picture in pictures})
    _say(f"{len(pictures)} pictures of {len(models)} model{'s' if len(models) > 1 else ''}: {', '.join(models)}")
    if left_out:
        _say(f"left out: {'; '.join(f'{n} {reason}' for reason, n in left_out.most_common())}")
    half = settings.design.per_participant // 2
    for country in settings.countries:
        counts = [sum(picture.country == wanted for picture in pictures) for wanted in (country, None)]
        if min(counts) < half:
            _say(
                f"{country}: {counts[0]} pictures with the country's name and {counts[1]} without, so that its participants rate "
                f"{sum(min(count, half) for count in counts)} images and not {settings.design.per_participant}"
            )
    return pictures


def _say(text: Any) -> None:
    # A participant may come before the buffer of a pipe is full.
    console = output()
    console.print(str(text), markup=False, highlight=False, soft_wrap=True)
    console.file.flush()
