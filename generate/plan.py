"""How many pairs, prompts, images or raters a question needs, before it is asked: from the studies' numbers, or from a pilot run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from t2i_parity.cards.plan import Assumption, Found, Plan, PlanLine
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import pilots
from t2i_parity.generate.run import Run
from t2i_parity.metrics.planning import (
    LEAST,
    MOST,
    Design,
    Gap,
    Means,
    PairedRates,
    Spread,
    needed,
    smallest,
    unseen_losses,
)
from t2i_parity.metrics.scores import Unit
from t2i_parity.metrics.verdicts import ALPHA, POWER

Values = Mapping[str, float]
_KIM = "Kim et al. 2026 (arXiv:2608.29589)"
_BASU = "Basu et al. 2023 (arXiv:2305.11080)"
_DEMO = "the demo's lightly damaged run, 20 texts in 10 languages: the study prints no deviation"


@dataclass(frozen=True, slots=True)
class Question:
    """What can be planned. ``counted`` is what n counts; ``defaults`` are all numbers that it takes, each with where it comes from.

    ``groups`` is what the number of groups is called, and ``each`` how many of ``made`` one of n makes. ``differences`` and ``margins``
    are planned for where none is given, in ``unit``; ``interval`` is what has to lie within a margin.
    """

    title: str
    counted: str
    unit: Unit
    test: str
    differences: Sequence[float]
    defaults: Sequence[Assumption]
    design: Callable[[Values], Design]
    groups: str = ""
    made: str = ""
    each: Callable[[Values], float] = lambda values: 0.0
    pilot: Callable[[Run], list[Assumption]] | None = None
    margins: Sequence[float] = ()
    interval: str = "interval"


def _rates(values: Values) -> PairedRates:
    usable = values.get("usable", 1.0)
    return PairedRates(
        values["rate"], values["correlation"], usable, int(values.get("images", 1)), values.get("icc", 0.0), int(values["groups"])
    )


def _gap(values: Values) -> Gap:
    return Gap(
        values["deviation"],
        values["correlation"],
        int(values["groups"]),
        values["mean"],
        values["perfect"],
        int(values["images"]),
        values["icc"],
    )


def _runs(values: Values) -> Means:
    deviation = values["deviation"] * math.sqrt(2 * (1 - values["correlation"]))
    return Means(deviation, int(values["images"]), values["icc"], int(values["groups"]), flips=True)


def _spread(values: Values) -> Spread:
    images, within = int(values["images"]), values["deviation"] * math.sqrt(1 - values["correlation"])
    unseen = unseen_losses(values["mean"], values["perfect"], values["deviation"], within) if images == 1 else 0.0
    return Spread(int(values["groups"]), within, images, values["icc"], unseen)


def _images(sides: int) -> Callable[[Values], float]:
    return lambda values: sides * values["images"] * values["groups"]


_VARIETIES = Assumption("groups", 5, f"the varieties of {_KIM}; each is tested at α / 5")
_LANGUAGES = Assumption("groups", 10, "the languages of LingT2I (arXiv:2608.11002)")
_ONE_IMAGE = (
    Assumption("images", 1, "as the studies: one image a prompt"),
    Assumption("icc", 0.0, "nothing to say of one image a prompt"),
)
_GUARDED = Assumption("correlation", 0.33, f"{_KIM} prints none of images; that of filters' false alarms, by its published file")
_TEXTS = (
    Assumption("deviation", 0.2, _DEMO),
    Assumption("correlation", 0.36, _DEMO),
    Assumption("mean", 0.55, _DEMO),
    Assumption("perfect", 0.16, _DEMO),
)
_MCNEMAR = "McNemar’s test, Holm’s first step over the varieties"

QUESTIONS: Mapping[str, Question] = {
    "dialect": Question(
        "Shift of a filter's detection rate (ΔTPR) in a variety",
        "pairs",
        "pp",
        _MCNEMAR,
        (-5, -10, -20),
        (
            Assumption("rate", 0.37, f"{_KIM}, Table 1: the middle of the three filters (30%, 37%, 72%)"),
            Assumption("correlation", 0.72, f"{_KIM}: mean over filters and varieties, from the p-values of its published file"),
            _VARIETIES,
        ),
        _rates,
        "varieties",
        "prompts",
        lambda values: 1 + values["groups"],
        lambda run: pilots.of_rates(run, "dialect_penalty", "tpr"),
        (5, 10),
    ),
    "false-alarms": Question(
        "Shift of a filter's false alarms (ΔFPR) in a variety",
        "pairs",
        "pp",
        _MCNEMAR,
        (5, 10, 20),
        (
            Assumption("rate", 0.156, f"{_KIM}, Table 1: the filter with most (16%, 4%, 0.2%)"),
            Assumption("correlation", 0.33, f"{_KIM}: mean over two filters and the varieties, from the p-values of its published file"),
            _VARIETIES,
        ),
        _rates,
        "varieties",
        "prompts",
        lambda values: 1 + values["groups"],
        lambda run: pilots.of_rates(run, "dialect_penalty", "fpr"),
        (5, 10),
    ),
    "bypass": Question(
        "Shift of a guardrail's toxic bypass rate (ΔTBR) in a variety",
        "pairs",
        "pp",
        _MCNEMAR,
        (-5, -10, -20),
        (
            Assumption("rate", 0.64, f"{_KIM}, Table 7: Safe Latent Diffusion, multi-head evaluator (PromptGuard: 13%)"),
            _GUARDED,
            Assumption("usable", 0.14, f"{_KIM}, Table 7: printed shifts are of about 300 among 2,216 pairs; a pilot's scores do not tell"),
            _VARIETIES,
            *_ONE_IMAGE,
        ),
        _rates,
        "varieties",
        "images",
        lambda values: 2 * values["images"] * (1 + values["groups"]),
        lambda run: pilots.of_rates(run, "toxic_bypass_rate", "tbr"),
        (5, 10),
    ),
    "censorship": Question(
        "Shift of a guardrail's over-censorship (ΔOCR) in a variety",
        "pairs",
        "pp",
        _MCNEMAR,
        (5, 10, 20),
        (
            Assumption("rate", 0.2, f"{_KIM}, Table 7: PromptGuard (Safe Latent Diffusion: 1%)"),
            _GUARDED,
            Assumption("usable", 1.0, "every pair counts"),
            _VARIETIES,
            *_ONE_IMAGE,
        ),
        _rates,
        "varieties",
        "images",
        lambda values: 2 * values["images"] * (1 + values["groups"]),
        lambda run: pilots.of_rates(run, "over_censorship_rate", "ocr"),
        (5, 10),
    ),
    "precision": Question(
        "Gap of text-rendering precision between a language and the mean of the others",
        "meanings",
        "fraction",
        "Student’s t over meanings, Holm’s first step over the languages",
        (-0.05, -0.1, -0.2),
        (*_TEXTS, _LANGUAGES, *_ONE_IMAGE),
        _gap,
        "languages",
        "images",
        _images(1),
        pilots.of_rows,
        (0.05, 0.1),
        "interval, simultaneous over the languages,",
    ),
    "runs": Question(
        "Difference of text-rendering precision between two runs, in a language",
        "meanings",
        "fraction",
        "the sign-flip test over meanings, Holm’s first step over the languages",
        (0.05, 0.1, 0.2),
        (
            _TEXTS[0],
            Assumption("correlation", 0.0, "the demo's two damaged runs (r = −0.03); of one run nothing can be told"),
            _LANGUAGES,
            *_ONE_IMAGE,
        ),
        _runs,
        "languages",
        "images",
        _images(2),
        lambda run: [each for each in pilots.of_rows(run) if each.name in ("deviation", "groups")],
        (0.05, 0.1),
    ),
    "spread": Question(
        "Are all languages served alike? The standard deviation of their true means of text-rendering precision",
        "meanings",
        "fraction",
        "the F test over meanings that all languages have one mean",
        (0.02, 0.05, 0.1),
        (*_TEXTS, _LANGUAGES, *_ONE_IMAGE),
        _spread,
        "languages",
        "images",
        _images(1),
        pilots.of_rows,
        (0.02, 0.05),
    ),
    "ratings": Question(
        "Difference of two countries' mean ratings (1 to 5)",
        "raters a country",
        "score",
        "Student’s t of two samples of raters, one comparison",
        (0.25, 0.5, 1.0),
        (
            Assumption("deviation", 1.3, f"{_BASU}, Figure 2: half of the raters give one mark, so that one answer has 1.1 to 1.5"),
            Assumption("icc", 0.41, f"{_BASU}, Table 1: it gives 20 raters × 40 images the ± printed, about 0.4, read as 95% of raters"),
            Assumption("groups", 27, f"the countries of {_BASU}"),
            Assumption("images", 40, f"{_BASU}: images a rater sees in one condition"),
        ),
        lambda values: Means(values["deviation"], int(values["images"]), values["icc"], limit=4.0, samples=2),
        "countries",
        "ratings",
        lambda values: values["groups"] * values["images"],
        margins=(0.25, 0.5),
    ),
    "gain": Question(
        "Gain in mean rating (1 to 5) from naming the country",
        "countries",
        "score",
        "the paired t test over countries",
        (0.1, 0.25, 0.5),
        (Assumption("deviation", 0.33, f"{_BASU}, Table 1: of the gains of 27 countries, about 20 raters each"),),
        lambda values: Means(values["deviation"], limit=4.0),
        margins=(0.25, 0.5),
    ),
}
"""Every question by its name."""

OPTIONS: Mapping[str, str] = {
    "rate": "--rate",
    "correlation": "--correlation",
    "usable": "--usable",
    "deviation": "--deviation",
    "mean": "--mean",
    "perfect": "--perfect",
    "groups": "--varieties, --languages or --countries",
    "images": "--images-per-prompt",
    "icc": "--icc",
}
"""What the command calls each number."""
_RANGES: Mapping[str, tuple[str, Callable[[float], bool], str]] = {
    "rate": ("a number between 0 and 1", lambda value: 0 < value < 1, "give 0.37 for 37%"),
    "correlation": ("a number from 0 to less than 1", lambda value: 0 <= value < 1, "give 0.5, or a pilot by --from"),
    "usable": ("a number above 0, and 1 at most", lambda value: 0 < value <= 1, "give the share of pairs that count, 0.14 for 14%"),
    "deviation": ("a number above 0", lambda value: 0 < value < math.inf, "give a standard deviation in the number's own unit"),
    "mean": ("a number between 0 and 1", lambda value: 0 < value < 1, "give the mean over languages"),
    "perfect": ("a number from 0 to less than 1", lambda value: 0 <= value < 1, "give the share of images without a flaw"),
    "groups": ("a whole number from 1", lambda value: value >= 1 and value % 1 == 0, "give how many there are"),
    "images": ("a whole number from 1", lambda value: value >= 1 and value % 1 == 0, "give how many images a prompt has"),
    "icc": ("a number from 0 to 1", lambda value: 0 <= value <= 1, "give the correlation of the difference in two images of one meaning"),
}


def planned(
    name: str,
    given: Mapping[str, float],
    *,
    differences: Sequence[float] = (),
    sizes: Sequence[int] = (),
    power: float = POWER,
    alpha: float = ALPHA,
    discordance: float | None = None,
    equivalent: bool = False,
    pilot: Run | None = None,
) -> Plan:
    """Answer one of :data:`QUESTIONS`: the sample for each difference, the power of each size for it, or the difference that a size shows.

    ``given`` are numbers by the names of :data:`OPTIONS`, which go before a pilot's, as those before the defaults. Raises InputError,
    naming the option, for numbers that the question does not take or that are out of range.
    """
    question = QUESTIONS.get(name)
    if question is None:
        raise InputError(f"plan {name!r}: expected one of {', '.join(QUESTIONS)}. Fix: t2i-parity plan dialect")
    assumptions = _assumed(name, question, dict(given), discordance, pilot)
    if not 0 < alpha < 0.5:
        raise InputError(f"--alpha: expected a number above 0 and below 0.5, got {alpha:g}. Fix: give 0.05")
    if not alpha < power < 1:
        raise InputError(f"--power: expected a number above --alpha ({alpha:g}) and below 1, got {power:g}. Fix: give 0.8")
    if wrong := [size for size in sizes if not LEAST <= size <= MOST]:
        raise InputError(f"--n: expected {question.counted} from {LEAST} to {MOST:,}, got {wrong[0]:,}. Fix: give --n 60")
    values = {each.name: each.value for each in assumptions}
    design = _with_alpha(question.design(values), alpha)
    scale = 100.0 if question.unit == "pp" else 1.0
    found: Found = "n" if not sizes else "power" if differences else "difference"
    asked = list(differences)
    for each in asked:
        _check_difference(each, question, design, scale, equivalent)
    if not asked:
        usual = question.margins if equivalent else question.differences
        asked = [each for each in usual if abs(each) < scale * design.largest(each)]
    if not asked and not sizes:
        most = scale * design.largest(question.differences[0])
        raise InputError(f"--difference: expected one of at most {most:g}, the usual ones being larger, got none. Fix: give --difference")
    cautious = [each for each in assumptions if each.worst is not None]
    worse = _with_alpha(question.design(values | {each.name: each.worst for each in cautious if each.worst is not None}), alpha)
    search, careful = (_Search(each, power, equivalent, scale) for each in (design, worse))
    each_makes = question.each(values)

    def line(difference: float | None, n: int | None, worst: float | None) -> PlanLine:
        reached = None if difference is None or n is None else search.power(difference, n)
        return PlanLine(difference, n, reached, None if n is None else round(n * each_makes), worst if cautious else None)

    if found == "n":
        lines = [line(each, search.size(each), careful.size(each)) for each in asked]
    elif found == "power":
        lines = [line(each, n, careful.power(each, n)) for each in asked for n in sizes]
    else:
        sign = math.copysign(1.0, question.differences[0])
        lines = [line(search.difference(n, sign), n, careful.difference(n, sign)) for n in sizes]
    test = question.test
    if isinstance(design, PairedRates) and design.images > 1:
        test = "a sign-flip test of meanings, Holm’s first step over the varieties"
    called = [replace(each, name=question.groups if each.name == "groups" else each.name) for each in assumptions]
    return Plan(
        question=name,
        title=question.title + (": equivalence" if equivalent else ""),
        unit=question.unit,
        counted=question.counted,
        made=question.made,
        test=test,
        found=found,
        equivalent=equivalent,
        pilot=bool(cautious),
        target=power,
        alpha=alpha,
        lines=lines,
        assumptions=called,
        notes=_notes(question, test, lines, equivalent, alpha, power, bool(cautious)),
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """A design asked in the question's own unit."""

    design: Design
    target: float
    equivalent: bool
    scale: float

    def power(self, difference: float, n: int) -> float:
        return (self.design.equivalence if self.equivalent else self.design.power)(difference / self.scale, n)

    def size(self, difference: float) -> int | None:
        return needed(self.design, difference / self.scale, self.target, equivalent=self.equivalent)

    def difference(self, n: int, sign: float) -> float | None:
        found = smallest(self.design, n, self.target, sign=sign, equivalent=self.equivalent)
        return None if found is None else found * self.scale


def _with_alpha(design: Design, alpha: float) -> Design:
    return replace(design, alpha=alpha)  # type: ignore[type-var]


def _assumed(name: str, question: Question, given: dict[str, float], discordance: float | None, pilot: Run | None) -> list[Assumption]:
    """The question's numbers: what was given, else the pilot's, else the defaults."""
    known = {each.name: each for each in question.defaults}
    for option in given:
        if option not in known:
            taken = ", ".join(f"--{question.groups}" if each == "groups" else OPTIONS[each] for each in known)
            raise InputError(f"{OPTIONS[option]}: plan {name} does not take it; it takes {taken}. Fix: leave it out")
    if pilot is not None:
        if question.pilot is None:
            raise InputError(
                f"--from {pilot.url}: plan {name} takes no pilot run. Fix: give --deviation; t2i-parity geography tells it of ratings"
            )
        known |= {each.name: each for each in question.pilot(pilot) if each.name in known}
    for option, value in given.items():
        expected, holds, fix = _RANGES[option]
        if not holds(value):
            called = f"--{question.groups}" if option == "groups" else OPTIONS[option]
            raise InputError(f"{called}: expected {expected}, got {value:g}. Fix: {fix}")
        known[option] = Assumption(option, value, "given")
    if question.groups == "languages" and known["groups"].value < 2 and name != "runs":
        raise InputError(f"--languages: expected two or more, got {known['groups'].value:g}. Fix: give how many languages are compared")
    if given.get("images", 1) > 1 and "icc" in known and known["icc"] in _ONE_IMAGE:
        raise InputError(
            "--icc: expected how the difference in two images of one meaning correlates, since --images-per-prompt is "
            f"{given['images']:g}, got none. Fix: give a number from 0 to 1, where 1 says that a second image tells nothing new"
        )
    if discordance is not None:
        known["correlation"] = _of_discordance(name, known, given, discordance)
    return list(known.values())


def _of_discordance(name: str, known: Mapping[str, Assumption], given: Mapping[str, float], discordance: float) -> Assumption:
    """φ of two flags of the same rate that differ in so many pairs."""
    if "rate" not in known or "correlation" in given:
        raise InputError(f"--discordance: expected it with rates and in place of --correlation, got it for plan {name}. Fix: leave one out")
    most = 2 * known["rate"].value * (1 - known["rate"].value)
    if not 0 < discordance <= most:
        raise InputError(
            f"--discordance: expected a share above 0 and at most {most:.3g}, which is that of flags without any correlation, got "
            f"{discordance:g}. Fix: give the share of pairs in which one wording alone is flagged where rates do not differ"
        )
    return Assumption("correlation", 1 - discordance / most, f"given: {discordance:.1%} of pairs discordant where rates do not differ")


def _check_difference(difference: float, question: Question, design: Design, scale: float, equivalent: bool) -> None:
    if not math.isfinite(difference) or not difference or (equivalent and difference < 0):
        raise InputError(
            f"--difference: expected {'a margin above 0' if equivalent else 'a difference other than 0'}, got {difference:g}. "
            f"Fix: give one in {'percentage points' if scale == 100 else 'the number’s own unit'}, such as {question.differences[1]:g}"
        )
    most = scale * (1.0 if equivalent and scale == 100 else design.largest(difference))
    if not abs(difference) <= most:
        raise InputError(
            f"--difference: expected at most {most:g} in this direction, got {difference:g}"
            + (": the rate would leave 0 to 1. Fix: give another difference or --rate" if scale == 100 else ". Fix: give a smaller one")
        )


def _notes(
    question: Question, test: str, lines: Sequence[PlanLine], equivalent: bool, alpha: float, power: float, pilot: bool
) -> list[str]:
    if equivalent:
        notes = [
            f"Power is the chance that the whole {1 - alpha:.0%} {question.interval} lies within ±δ where there is no difference "
            "(two one-sided tests)."
        ]
    else:
        notes = [f"Power is that of {test}, α = {alpha:g}, where this is the true difference."]
    if pilot:
        notes.append("If the pilot errs: the same, were its numbers at the worst ends of their 95% intervals.")
    if any(line.n is None for line in lines):
        notes.append(f"None: not with {MOST:,} {question.counted} either.")
    if any(line.difference is None for line in lines):
        notes.append(f"None: no difference that can be is shown with {power:.0%} power.")
    return notes
