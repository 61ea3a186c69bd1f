"""``t2i-parity geography``: ratings to tables, answers, maps and a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.dataset_builder.errors import InputError

if TYPE_CHECKING:
    from t2i_parity.validation.geography.analysis import Analysis


def geography(
    ratings: Annotated[
        str | None, typer.Argument(metavar="RATINGS", help="Ratings that the survey wrote: a folder (any fsspec URL), or a hub dataset.")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Write geography.json, tables.csv and index.html here.")] = None,
    published: Annotated[bool, typer.Option("--published", help="Analyse the means that the study printed, instead of ratings.")] = False,
    run: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RUN", help="A run with the rated images, judged by clip-countries or features: validates proxies; may be given again."
        ),
    ] = None,
    neighbours: Annotated[
        int, typer.Option(min=1, metavar="K", help="How many neighbours the proxy by features asks; 1 in the study.")
    ] = 1,
    cover: Annotated[
        str | None,
        typer.Option(metavar="SET", help="Also estimate the unrated countries of studied, contacted or all, by partial pooling."),
    ] = None,
    power: Annotated[
        list[float] | None,
        typer.Option(metavar="HALF_WIDTH", help="How many participants a country give an interval of ± so much; may be given again."),
    ] = None,
    deviation: Annotated[
        float | None, typer.Option(metavar="SD", help="With --power and without ratings: the standard deviation of participants' means.")
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    title: Annotated[str, typer.Option(help="The page's title.")] = "Geographical representativeness",
) -> None:
    """Analyse people's ratings of images: how well do they reflect each country, and whom do they favour?

    Example: t2i-parity geography ratings --out geography

    Example: t2i-parity geography --published --out published

    Example: t2i-parity geography --power 0.3 --deviation 0.6
    """
    if deviation is not None and (ratings is not None or published or not power):
        raise InputError("--deviation goes with --power alone: with ratings, the spread is theirs")
    if power and ratings is None and not published:
        _power(power, deviation, level)
        return
    if (ratings is None) == (not published):
        raise InputError(
            "give either a folder of ratings, or --published for the study's own means; or --power with --deviation for a plan"
        )
    if published and (run or cover or power):
        raise InputError("--published analyses printed means: --run, --cover and --power need single ratings")
    from t2i_parity.dataset_builder.countries import SETS
    from t2i_parity.validation.geography.analysis import HALF_WIDTHS, analyse, analyse_published

    if cover is not None and cover not in SETS:
        raise InputError(f"--cover {cover!r}: expected one of {', '.join(SETS)}")
    if ratings is None:
        analysis = analyse_published(level)
    else:
        from t2i_parity.validation.geography.proxies import read_runs
        from t2i_parity.validation.survey.ratings import read_ratings

        table = read_ratings(ratings)
        analysis = analyse(
            table,
            source=_name(ratings),
            seen=read_runs(run) if run else None,
            k=neighbours,
            cover=cover,
            half_widths=tuple(power) if power else HALF_WIDTHS,
            level=level,
        )
    _show(analysis)
    if out is not None:
        _write(analysis, out, title)


def _name(source: str) -> str:
    """A hub id as it is, of a folder its name: no path of somebody's machine goes into a page."""
    return source if "/" in source and not Path(source).exists() and "://" not in source else Path(source.rstrip("/")).resolve().name


def _write(analysis: Analysis, out: str, title: str) -> None:
    from t2i_parity.cards.geography import render
    from t2i_parity.dataset_builder.storage import Folder
    from t2i_parity.validation.geography.report import page_of
    from t2i_parity.validation.geography.tables import as_csv

    folder = Folder(out)
    content = json.dumps(analysis.as_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    folder.write(content.encode("utf-8"), "geography.json")
    folder.write(as_csv(analysis.cells), "tables.csv")
    folder.write(render(page_of(analysis, title)).encode("utf-8", "backslashreplace"), "index.html")
    say(f"{out}: geography.json, tables.csv and index.html")


def _power(half_widths: list[float], deviation: float | None, level: float) -> None:
    from t2i_parity.validation.geography.power import participants_needed

    if deviation is None:
        raise InputError(
            "--power needs the spread of participants: give ratings of an earlier study, or --deviation, the standard deviation of "
            "participants' means in ratings (about 0.5 to 0.9 over 40 images a condition)"
        )
    for width in half_widths:
        needed = participants_needed(width, deviation, level)
        say(f"± {width:g}: {needed:,} participants a country, whose means differ by {deviation:g} (standard deviation)")


def _show(analysis: Analysis) -> None:
    from rich.table import Table
    from rich.text import Text

    from t2i_parity.cards.environment import visible
    from t2i_parity.validation.geography.report import name_of, page_of

    console = output()
    page = page_of(analysis, "")
    table = Table(title="Representativeness by country", title_justify="left")
    table.add_column("country")
    for heading in ("without its name", "interval", "with its name", "interval"):
        table.add_column(heading, justify="right")
    for place in page.countries:
        cells = [text for score in (place.unspecified, place.country) for text in (_number(score.value), _interval(score.low, score.high))]
        table.add_row(Text(name_of(place.code)), *cells)
    console.print(table)
    for section in page.sections:
        if section.anchor in ("questions", "power"):
            for each in section.tables:
                shown = Table(title=Text(each.caption), title_justify="left")
                for number, heading in enumerate(each.headings):
                    shown.add_column(heading, justify="left" if number < each.left else "right", overflow="fold")
                for row in each.rows:
                    shown.add_row(*(Text(visible(cell)) for cell in row))
                console.print(shown)
    if analysis.excluded:
        say(f"{len(analysis.excluded):,} of {analysis.participants:,} participants fail the trick questions and are left out")
    for finding in page.findings:
        say(visible(finding))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.2f} … {high:.2f}"
