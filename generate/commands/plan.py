"""The command ``plan``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from t2i_parity.dataset_builder.console import output, say


def plan(
    question: Annotated[
        str,
        typer.Argument(
            metavar="QUESTION",
            help="dialect, false-alarms, bypass, censorship, precision, runs, spread, ratings or gain.",
        ),
    ],
    difference: Annotated[
        str,
        typer.Option(metavar="NUMBER,…", help="True differences (or margins): of rates in pp, else in the number's own unit."),
    ] = "",
    n: Annotated[str, typer.Option("--n", metavar="NUMBER,…", help="Sizes of a sample; their power, or what they show, is told.")] = "",
    power: Annotated[float, typer.Option(help="With what chance a difference is to be shown.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Level of the tests.")] = 0.05,
    groups: Annotated[
        int | None, typer.Option("--varieties", "--languages", "--countries", help="How many there are; tests are corrected over them.")
    ] = None,
    images: Annotated[
        int | None, typer.Option("--images-per-prompt", help="Images of each prompt (ratings: that one rater sees); needs --icc.")
    ] = None,
    icc: Annotated[
        float | None, typer.Option(help="Correlation of the difference in two images of one meaning (ratings: of two by one rater).")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Share of the reference's wordings that is flagged.")] = None,
    correlation: Annotated[
        float | None, typer.Option(help="Of the two wordings' flags; of the languages, or of two runs, within a meaning.")
    ] = None,
    discordance: Annotated[
        float | None, typer.Option(help="In place of --correlation: share of pairs in which one wording alone is flagged.")
    ] = None,
    usable: Annotated[float | None, typer.Option(help="Share of the pairs that count.")] = None,
    deviation: Annotated[float | None, typer.Option(help="Standard deviation of one image's number, or of one answer.")] = None,
    mean: Annotated[float | None, typer.Option(help="Mean precision over the languages.")] = None,
    perfect: Annotated[float | None, typer.Option(help="Share of images at the scale's end, 1 (0 where the mean is below 0.5).")] = None,
    equivalent: Annotated[bool, typer.Option("--equivalent", help="Show that there is no difference beyond a margin.")] = False,
    pilot: Annotated[str | None, typer.Option("--from", metavar="RUN", help="A scored pilot run or audit that tells the numbers.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write every number here.")] = None,
) -> None:
    """How many pairs, prompts, images or raters show a stated difference; with --n, what so many show.

    Example: t2i-parity plan dialect --difference -10 --n 60,150
    """
    from t2i_parity.dataset_builder.storage import Folder
    from t2i_parity.generate import stages

    found = stages.plan(
        question,
        difference=difference,
        n=n,
        power=power,
        alpha=alpha,
        groups=groups,
        images_per_prompt=images,
        icc=icc,
        rate=rate,
        correlation=correlation,
        discordance=discordance,
        usable=usable,
        deviation=deviation,
        mean=mean,
        perfect=perfect,
        equivalent=equivalent,
        pilot=pilot,
    )
    if json_file is not None:
        text = json.dumps(found.as_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        Folder(str(json_file.parent)).write(text.encode("utf-8"), json_file.name)
    say(found.title)
    for table in found.tables():
        output().print(table)
        say("")
    for note in found.notes:
        say(note)
