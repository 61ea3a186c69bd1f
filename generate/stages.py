"""The stages of a run as functions, prompts → images → observations → scores → pages: the Python interface, which the commands call too.

Every stage resumes: called again with the same arguments, it goes on where it was. Progress and warnings go to standard error, unless
``quiet``. What cannot be carried out raises :class:`InputError`, in words for people; a stage that Ctrl-C ended raises :class:`Stopped`
once all that was finished is kept.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.console import Console

from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import Prompts, load_prompts
from t2i_parity.dataset_builder.schema import PAIRED
from t2i_parity.dataset_builder.settings import Arguments, Pairs, owned, pairs, recorded
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.generate.engine.collect import Tally
from t2i_parity.generate.entries import Scores, ScoreSettings
from t2i_parity.generate.images import Loading, Maker
from t2i_parity.generate.run import Run, fingerprint
from t2i_parity.metrics.text_rendering_precision.core import DEFAULT_TOKENIZER

if TYPE_CHECKING:
    from rich.table import Table

    from t2i_parity.cards.compare import Comparisons as Compared
    from t2i_parity.cards.plan import Plan
    from t2i_parity.cards.report_data import Report as Reported

Place: TypeAlias = str | os.PathLike[str]
"""A folder (any fsspec URL) or, of prompts, a hub id."""

Engine: TypeAlias = Literal["local", "ray"]
"""Where rows are computed: in this machine's processes, or on a Ray cluster."""

Numbers: TypeAlias = float | Mapping[str, float] | Iterable[str] | None
"""A number for every judge, or one each by name; as texts, N or JUDGE=N."""


Amounts: TypeAlias = float | str | Iterable[float]
"""A number or several; as a text, NUMBER,NUMBER."""


class Stopped(KeyboardInterrupt):
    """A signal ended a stage; what was finished is kept in ``run``, and the same call goes on from there."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"stopped; the same call goes on from what {run.url} holds")
        self.run = run


def generate(
    model: str,
    prompts: Prompts | Place,
    *,
    out: Place,
    settings: Pairs = None,
    guardrail: str | None = None,
    guard: Pairs = None,
    seed: int = 42,
    images_per_prompt: int = 1,
    batch_size: int | None = None,
    retry_failed: bool = False,
    retries: int = 2,
    repair: bool = False,
    devices: str | Iterable[str] = (),
    engine: Engine = "local",
    ray_address: str | None = None,
    actors: int = 1,
    gpus_per_actor: float | None = None,
    quiet: bool = False,
) -> Run:
    """Generate images from prompts into the run's folder ``out``; the run, whose ``tallies["images"]`` tells how it went.

    ``model`` is a name that ``t2i-parity models`` lists, FAMILY:SOURCE, or a diffusers pipeline by folder or hub id, and ``settings`` are
    its own; ``guardrail`` (with its own settings, ``guard``) stands around it. Rows of one ``pair_id`` begin from the same noise. A row
    that fails is kept with its reason, and made anew with ``retry_failed``; ``repair`` sets unreadable files aside and makes their rows
    anew.

    >>> prompts = load_prompts("demo/prompts", "lingt2i_text", languages=["en", "hi"], limit=8)  # doctest: +SKIP
    >>> run = generate("glyph", prompts, out="runs/mine", settings={"damage": "light"})  # doctest: +SKIP
    >>> run.tallies["images"].done  # doctest: +SKIP
    8
    """
    from t2i_parity.generate import images
    from t2i_parity.generate.guardrails.model import load
    from t2i_parity.generate.layout import with_condition_images
    from t2i_parity.generate.models.catalog import columns_of

    arguments, console = recorded(generate, locals()), _console(quiet)
    options, guards = pairs(settings), pairs(guard, "--guard")
    # The light one first: the rows' errors come before a model is loaded.
    opened = _opened(prompts).need(columns_of(model))
    rows = with_condition_images(opened.rows, opened.table, model)
    loading = images.Loading(partial(load, model, guardrail=guardrail, guards=guards), options, retries)
    with _maker(loading, engine, devices, ray_address, actors, gpus_per_actor) as maker:
        maker.ask("check", rows)
        cut = maker.ask("truncated", rows)
        for part, languages_cut in cut.items():
            counts = ", ".join(f"{code} {number}" for code, number in languages_cut.items())
            console.print(f"{part} sees only the beginning of some prompts: {counts}", markup=False, style="yellow", soft_wrap=True)
        record = maker.ask("record")
        guarded_by = maker.ask("guardrail_record") if guardrail is not None else None
        run = Run.start(
            os.fspath(out),
            "generation",
            identity={"model": record, "guardrail": guarded_by, "seed": seed, "prompts": opened.origin},
            details={
                "device": maker.ask("device"),
                "engine": engine,
                "execution": maker.ask("execution"),
                "truncated": cut,
                "arguments": _joined(opened.arguments, arguments),
            },
        )
        guarded = None if guarded_by is None else fingerprint(guarded_by)
        plan = images.planned(rows, record, seed=seed, images_per_prompt=images_per_prompt, guardrail=guarded)
        size = batch_size or maker.ask("rows_at_once") or (32 if model == "glyph" else 4)
        with run.locked():
            tally = images.generate(run, plan, maker, batch_size=size, console=console, retry_failed=retry_failed, repair=repair)
            run.write_card()
    return _ended(run, {"images": tally})


def judge(
    run: Run | Place,
    *instruments: str,
    settings: Pairs = None,
    name: str | None = None,
    batch_size: int = 64,
    retries: int = 2,
    repair: bool = False,
    engine: Engine = "local",
    ray_address: str | None = None,
    actors: Numbers = None,
    gpus_per_actor: Numbers = None,
    quiet: bool = False,
) -> Run:
    """Observe every image of a run that the judges ``instruments`` have not seen yet; the run, with a tally by judge.

    Each image is read and decoded once for all of them. With several, a setting says whose it is: ``{"clip.anchor": "reference"}``.
    ``name`` is what one judge's observations are called, to keep those under other settings beside.

    >>> judge("runs/mine", "tesseract", "rapidocr")  # doctest: +SKIP
    Run('runs/mine')
    """
    from t2i_parity.generate import observe
    from t2i_parity.generate.judges import JUDGES, load

    opened, console = open_run(run), _console(quiet)
    if not instruments:
        raise InputError("judge needs a judge, such as hybrid: t2i-parity judge RUN --with JUDGE")
    if opened.record["kind"] != "generation":
        raise InputError(f"{opened.url} is an audit of a text filter and has no images to judge")
    names = [JUDGES.find(each).name for each in instruments]
    options = judge_settings(names, settings, name)
    named = dict(zip(names, instruments, strict=True))
    with opened.locked():
        # What a crash left of the images half written is no image to judge; generate makes those rows anew.
        opened.tell_set_aside(opened.images().recover(), console)
        if engine == "ray":
            from t2i_parity.generate.engine import ray_data

            plans = {
                (name or each): ray_data.JudgePlan(
                    partial(load, spec, options[each]),
                    actors=int(_of_judge("--actors", actors, each, list(named), 1)),
                    gpus=_of_judge("--gpus-per-actor", gpus_per_actor, each, list(named), 0),
                    retries=retries,
                )
                for each, spec in named.items()
            }
            with ray_data.cluster(ray_address):
                tallies = ray_data.judge(opened, plans, batch_size=batch_size, console=console, repair=repair)
        else:
            _only_with_ray(engine, ray_address=ray_address, actors=actors, gpus_per_actor=gpus_per_actor)
            loaded = {(name or each): load(spec, options[each]) for each, spec in named.items()}
            tallies = observe.judge(opened, loaded, batch_size=batch_size, console=console, retries=retries, repair=repair)
            for stage, each in loaded.items():
                if bill := getattr(each, "bill", None):
                    console.print(f"{stage}: {bill()}", markup=False, highlight=False, soft_wrap=True)
        opened.write_card()
    return _ended(opened, tallies)


def score(
    run: Run | Place,
    *,
    tokenizer: str = DEFAULT_TOKENIZER,
    normalization: str = "none",
    variant: str = "paper",
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    calibration: Place = "",
    ceiling: str = "sign",
    margin: float | None = None,
) -> Scores:
    """Turn all that was observed of a run into scores with intervals and signatures; they are kept in the run, and returned.

    ``tokenizer`` cuts texts for the token-level distance: a hub id, a folder, or "tekken", which works offline. ``calibration`` is a folder
    that ``t2i-parity judge --calibrate`` wrote, and sets the reader's ceiling (in the setting ``ceiling``) beside what was read.
    ``margin`` is the difference in percentage points within which an audit's rates are called equivalent; 5 when left out.

    >>> scores = score("runs/mine", tokenizer="tekken", resamples=0)  # doctest: +SKIP
    """
    from t2i_parity.generate.score import score as score_run

    opened, margin = open_run(run), _margin(margin)
    how = ScoreSettings(tokenizer, normalization, variant, confidence, resamples, seed, os.fspath(calibration), ceiling)
    with opened.locked():
        return score_run(opened, how, margin=margin).scores


def audit(
    filters: str | Iterable[str],
    prompts: Prompts | Place,
    *,
    out: Place,
    names: Iterable[str] = (),
    settings: Pairs = None,
    encoder: str | None = None,
    unguarded: Run | Place | None = None,
    guarded: Iterable[Run | Place] = (),
    batch_size: int | None = None,
    retry_failed: bool = False,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    margin: float | None = None,
    title: str = "T2I Parity dialect audit",
    quiet: bool = False,
) -> Run:
    """Audit text filters over paired prompts, whole: ask, gather, score, and write report.html into the run's folder ``out``.

    The arguments are those of :func:`audit_filter` and :func:`score`.

    >>> run = audit("profanity-check", load_prompts(config="dialect"), out="runs/dialect")  # doctest: +SKIP
    >>> scores = run.scores()  # doctest: +SKIP
    """
    margin = _margin(margin)
    run = audit_filter(
        filters, prompts, out=out, names=names, settings=settings, encoder=encoder, unguarded=unguarded, guarded=guarded,
        batch_size=batch_size, retry_failed=retry_failed, quiet=quiet,
    )  # fmt: skip
    score(run, confidence=confidence, resamples=resamples, seed=seed, margin=margin)
    report([run], title=title, out=run.folder.path("report.html"))
    return run


def audit_filter(
    filters: str | Iterable[str],
    prompts: Prompts | Place,
    *,
    out: Place,
    names: Iterable[str] = (),
    settings: Pairs = None,
    encoder: str | None = None,
    unguarded: Run | Place | None = None,
    guarded: Iterable[Run | Place] = (),
    batch_size: int | None = None,
    retry_failed: bool = False,
    quiet: bool = False,
) -> Run:
    """Ask text filters about paired prompts, and gather what else is known of the pairs; the run, with a tally by filter.

    ``names`` are what the filters' verdicts are called; with several filters a setting says whose it is, ``{"FILTER.threshold": 0.3}``.
    An ``encoder`` tells where the varieties' wordings lie; judged runs of the same prompts, ``unguarded`` and ``guarded``, tell what a
    guardrail does to their images.
    """
    from t2i_parity.generate.audit.stages import Asked, perform

    arguments, guarded = recorded(audit_filter, locals()), list(guarded)
    if guarded and not unguarded:
        raise InputError("--guarded is compared with the same model without a guardrail: give that run as --unguarded RUN")
    asked = Asked(
        filters=[filters] if isinstance(filters, str) else list(filters),
        names=list(names),
        settings=pairs(settings),
        encoder=encoder,
        unguarded=None if unguarded is None else open_run(unguarded),
        guarded=[open_run(each) for each in guarded],
        batch_size=batch_size,
        retry_failed=retry_failed,
    )
    opened = _opened(prompts).need(PAIRED)
    return _ended(*perform(os.fspath(out), opened, asked, _joined(opened.arguments, arguments), _console(quiet)))


def compare(
    runs: Sequence[Run | Place],
    *,
    all_pairs: bool = False,
    on: str = "prompt",
    confidence: float = 0.95,
    margin: float | None = None,
    permutations: int = 9999,
    seed: int = 0,
    out: Place | None = None,
    title: str = "Runs compared",
) -> Comparisons:
    """Compare scored runs row by row with the first one, or every two: verdicts, differences, intervals, p-values corrected after Holm.

    Rows are matched ``on`` their prompt, or their "pair" (meaning and language). ``margin`` is the difference δ within which two runs are
    equivalent, in the scores' unit; each score's own when left out. With ``out``, the page is written there.

    >>> compare(["runs/light", "runs/heavy"]).save("compare.html")  # doctest: +SKIP
    """
    from t2i_parity.generate.compare import CompareSettings
    from t2i_parity.generate.compare import compare as compare_runs

    if on not in ("prompt", "pair"):
        raise InputError(f"--on {on!r}: expected prompt or pair")
    how = CompareSettings("prompt" if on == "prompt" else "pair", all_pairs, confidence, margin, permutations, seed)
    found = Comparisons(compare_runs([open_run(run) for run in runs], how, title=title))
    if out is not None:
        found.save(out)
    return found


def plan(
    question: str,
    *,
    difference: Amounts = (),
    n: Amounts = (),
    power: float = 0.8,
    alpha: float = 0.05,
    groups: int | None = None,
    images_per_prompt: int | None = None,
    icc: float | None = None,
    rate: float | None = None,
    correlation: float | None = None,
    discordance: float | None = None,
    usable: float | None = None,
    deviation: float | None = None,
    mean: float | None = None,
    perfect: float | None = None,
    equivalent: bool = False,
    pilot: Run | Place | None = None,
) -> Plan:
    """How many pairs, meanings or raters show a stated difference; with ``n``, what so many show.

    ``question`` is dialect, false-alarms, bypass, censorship (shifts of rates, in percentage points), precision, runs, spread (in [0, 1]),
    ratings or gain (in marks). Numbers that are left out come from the scored run ``pilot``, else from the studies; the plan names each
    with its source. With ``equivalent``, differences are margins within which none is to be shown.

    >>> found = plan("dialect", difference=-10, n=60)
    >>> f"{found.lines[0].power:.2f}", plan("dialect", difference=-10).lines[0].n
    ('0.19', 152)
    """
    from t2i_parity.generate.plan import planned

    numbers = {
        "groups": groups, "images": images_per_prompt, "icc": icc, "rate": rate, "correlation": correlation, "usable": usable,
        "deviation": deviation, "mean": mean, "perfect": perfect,
    }  # fmt: skip
    return planned(
        question,
        {name: float(number) for name, number in numbers.items() if number is not None},
        differences=_amounts("--difference", difference),
        sizes=[int(number) for number in _amounts("--n", n, whole=True)],
        power=power,
        alpha=alpha,
        discordance=discordance,
        equivalent=equivalent,
        pilot=None if pilot is None else open_run(pilot),
    )


def report(
    runs: Sequence[Run | Place],
    *,
    out: Place | None = None,
    title: str = "T2I Parity report",
    samples: bool = True,
    margin: float | None = None,
) -> Report:
    """One self-contained page over scored runs, side by side; with ``out``, it is written there. ``samples`` shows some of their images.

    ``margin`` is the difference in percentage points within which audits' rates are called equivalent, when left out that of each run.

    >>> report(["runs/light", "runs/dialect"], out="report.html")  # doctest: +SKIP
    """
    from t2i_parity.generate.report import gather

    made = Report(gather([open_run(run) for run in runs], title=title, samples=samples, margin=_margin(margin)))
    if out is not None:
        made.save(out)
    return made


@dataclass(frozen=True, slots=True)
class Report:
    """The report over runs: ``content`` is all that its page shows."""

    content: Reported = field(repr=False)

    def html(self) -> str:
        """The page, which asks for nothing outside itself."""
        from t2i_parity.cards.report import render

        return render(self.content)

    def tables(self) -> list[Table]:
        """Its tables, for a terminal (``rich.print``)."""
        from t2i_parity.cards.report import console_tables

        return console_tables(self.content)

    def save(self, out: Place) -> None:
        """Write the page."""
        _write(self.html(), out)


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Runs against each other: ``content`` is all that the page shows."""

    content: Compared = field(repr=False)

    def as_json(self) -> JsonObject:
        """Every number, in plain lists and dictionaries."""
        return self.content.as_json()

    def html(self) -> str:
        """The page, which asks for nothing outside itself."""
        from t2i_parity.cards.compare import render

        return render(self.content)

    def tables(self) -> list[Table]:
        """Its tables, for a terminal (``rich.print``)."""
        from t2i_parity.cards.compare import console_tables

        return console_tables(self.content)

    def save(self, out: Place) -> None:
        """Write the page."""
        _write(self.html(), out)


def open_run(run: Run | Place) -> Run:
    """A run, or the one in a folder. Raises InputError when there is none."""
    if isinstance(run, Run):
        return run
    url = os.fspath(run)
    folder = Folder(url)
    if not folder.exists("run.json") and any(name.endswith((".parquet", ".jsonl")) for name in [*folder.names(), *folder.names("ratings")]):
        raise InputError(
            f"{url} holds no run but rows, such as people's ratings. Those are analysed by: t2i-parity geography {url} --out DIR"
        )
    return Run.open(url)


def judge_settings(instruments: Sequence[str], given: Pairs, name: str | None = None) -> dict[str, dict[str, str]]:
    """The settings of each judge. Raises InputError for a judge given twice, and for one ``name`` of several."""
    if len(set(instruments)) < len(instruments):
        raise InputError("the same judge is given twice; judge with one of its settings first, then with the other and --as NAME")
    if name is not None and len(instruments) > 1:
        raise InputError("--as names one judge's observations, and several judges are given; run the one that needs a name alone")
    return owned(instruments, instruments, given, what="JUDGE")


# Inside


def _opened(prompts: Prompts | Place) -> Prompts:
    return prompts if isinstance(prompts, Prompts) else load_prompts(prompts)


def _amounts(option: str, given: Amounts, *, whole: bool = False) -> list[float]:
    several: Iterable[object] = given.split(",") if isinstance(given, str) and given else given if isinstance(given, Iterable) else [given]
    numbers = []
    for each in several:
        try:
            number = float(str(each))
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or (whole and number % 1):
            raise InputError(f"{option}: expected {'whole numbers' if whole else 'numbers'}, got {each!r}. Fix: give {option} 10,20")
        numbers.append(number)
    return numbers


def _joined(*stages: Arguments) -> Arguments:
    return {kind: {name: value for stage in stages for name, value in stage[kind].items()} for kind in ("given", "defaulted")}


def _margin(given: float | None) -> float | None:
    if given is not None and not 0 < given < 100:
        raise InputError(f"--margin {given:g}: expected percentage points above 0 and below 100, such as 5")
    return given


def _console(quiet: bool) -> Console:
    return Console(stderr=True, quiet=quiet)


def _ended(run: Run, tallies: Mapping[str, Tally]) -> Run:
    run.tallies.update(tallies)
    if any(tally.stopped for tally in tallies.values()):
        raise Stopped(run)
    return run


def _write(page: str, out: Place) -> None:
    folder, _, name = os.fspath(out).rpartition("/")
    Folder(folder or ".").write(page.encode("utf-8"), name)


def _maker(
    loading: Loading, engine: Engine, devices: str | Iterable[str], ray_address: str | None, actors: int, gpus: float | None
) -> AbstractContextManager[Maker]:
    """What makes the images, as a context that ends the processes that it began."""
    # One device may be named twice: it then holds two copies of the model.
    chosen = tuple(part.strip() for part in devices.split(",") if devices) if isinstance(devices, str) else tuple(devices)
    if engine == "ray":
        if chosen:
            raise InputError("--devices goes with --engine local; with ray, --actors and --gpus-per-actor say where the model runs")
        from t2i_parity.generate.engine import ray_data

        return ray_data.RayImages.on(ray_address, loading, actors=actors, gpus=gpus)
    _only_with_ray(engine, ray_address=ray_address, actors=actors if actors != 1 else None, gpus_per_actor=gpus)
    if chosen:
        from t2i_parity.generate.engine.devices import Devices

        return Devices(loading, list(chosen))
    return nullcontext(loading())


def _only_with_ray(engine: str, **given: object) -> None:
    if engine != "local":
        raise InputError(f"--engine {engine}: expected local or ray")
    for name, value in given.items():
        if value:
            raise InputError(f"--{name.replace('_', '-')} goes with --engine ray")


def _of_judge(option: str, given: Numbers, judge: str, instruments: Sequence[str], default: float) -> float:
    """A number for one judge from one for all, or from those by judge."""
    if isinstance(given, Mapping):
        given = [f"{name}={number}" for name, number in given.items()]
    found = default
    for value in [str(given)] if isinstance(given, int | float) else given or ():
        owner, equals, number = value.rpartition("=")
        if equals and owner not in instruments:
            raise InputError(f"{option} {value}: expected N or JUDGE=N with one of {', '.join(instruments)}")
        try:
            amount = float(number)
        except ValueError:
            raise InputError(f"{option} {value}: {number!r} is no number") from None
        if amount < 0 or (option == "--actors" and (amount < 1 or amount % 1)):
            raise InputError(f"{option} {value}: expected {'a whole number from 1' if option == '--actors' else 'a number from 0'}")
        if not equals or owner == judge:
            found = amount
    return found
