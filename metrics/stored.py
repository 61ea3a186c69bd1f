"""Scores as files keep them, read back: today's form, and that of version 0.1, which is known here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from t2i_parity.metrics._common import Signature, _escaped
from t2i_parity.metrics.scores import Direction, Group, Interval, MetricSpec, Score, ScoreSpec, Unit

Entry = Mapping[str, Any]


def read(entries: Iterable[Entry], specs: Mapping[str, MetricSpec], *, judges: Iterable[str] = (), level: float = 0.95) -> list[Score]:
    """The scores of a scores.json or a record, whichever version wrote it.

    ``judges`` are the signatures of the instruments behind them and ``level`` that of the intervals (run.json has both), which version 0.1
    did not write beside its scores. A score that no metric here declares keeps the names, unit and direction that the file gives it.
    Raises ValueError, naming the entry, when one is not of either form.
    """
    entries = list(entries)
    known: dict[str, Signature] = {}
    if first := {str(entry["signature"]) for entry in entries if "key" not in entry}:
        known = by_folding(map(instrument, judges))
        # A spread's `of` names another score's signature; those that it may name stand in the same file, and are shorter.
        for signature in map(Signature.parse, sorted(first, key=len)):
            known.setdefault(folded(signature), unfolded(signature, known))
    found = []
    for place, entry in enumerate(entries):
        try:
            found.append(_read(entry, specs) if "key" in entry else _read_first(entry, specs, known, level))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"score {place}: expected an entry of scores.json, got {entry!r:.200} ({error!r:.100})") from error
    return found


def _read(entry: Entry, specs: Mapping[str, MetricSpec]) -> Score:
    spec = _spec(specs, entry["metric"], entry["key"], entry["unit"], entry["direction"])
    ends = entry["interval"]
    interval = None if ends is None else Interval(ends[0], ends[1], entry["level"], entry["method"])
    return Score(
        spec,
        entry["subset"],
        Group(entry["group"]),
        entry["value"],
        entry["n"],
        entry["n_missing"],
        interval,
        Signature.parse(entry["signature"]),
        published=entry.get("published"),
        reason=entry.get("reason", ""),
    )


def _spec(specs: Mapping[str, MetricSpec], metric: str, key: str, unit: str, direction: str) -> ScoreSpec:
    declared = specs.get(metric)
    for spec in declared.scores if declared is not None else ():
        if spec.key == key:
            return spec
    if unit not in get_args(Unit) or direction not in get_args(Direction):
        raise ValueError(f"unit {unit!r} or direction {direction!r} is none that there is")
    return ScoreSpec(metric, key, key.replace("_", " ").capitalize(), unit=cast(Unit, unit), direction=cast(Direction, direction))


def instrument(text: str) -> Signature:
    """A judge's signature as a run keeps it. Version 0.1 wrote braces as they are, which a signature inside another has now.

    >>> instrument('http|request:{"text": "{text}"}|v:1').fields["request"]
    '{"text": "{text}"}'
    """
    try:
        return Signature.parse(text)
    except ValueError:
        return Signature.parse(_escaped(text))


# Version 0.1 --------------------------------------------------------------------------------------------------------

_AXES = (
    "language",
    "variety",
    "varieties",
    "dimension",
    "category",
    "country",
    "branch",
    "script",
    "label",
    "verdict",
    "setting",
    "damage",
)


def first_group(text: str) -> Group:
    """A group's text of version 0.1, ``dimension:IQ-R,language:hi``; a part that begins with no axis belongs to the one before it.

    >>> first_group("variety:AAVE,category:guns, knives"), first_group("all")
    (Group(variety='AAVE', category='guns, knives'), Group())
    """
    codes: dict[str, str] = {}
    for part in [] if text == "all" else text.split(","):
        axis, colon, code = part.partition(":")
        if colon and axis in _AXES:
            codes[axis] = code
        elif codes:
            codes[list(codes)[-1]] += f",{part}"
        else:
            raise ValueError(f"{text!r} is no group")
    if "varieties" in codes:
        # Two varieties beside each other.
        codes["variety"], _, codes["other"] = codes.pop("varieties").partition("+")
    return Group(codes)


def folded(signature: Signature) -> str:
    """A signature as version 0.1 wrote it inside another one: ',' for '|', '=' for ':'.

    >>> folded(Signature("m", {"reader": Signature("tesseract", {"psm": "7"}, "5")}, "1.0"))
    'm,reader=tesseract,psm=7,v=5,v=1.0'
    """
    fields = {key: value if isinstance(value, str) else folded(value) for key, value in signature.fields.items()}
    return ",".join([signature.metric, *(f"{key}={value}" for key, value in {**fields, "v": signature.version}.items())]).replace(":", "=")


def by_folding(signatures: Iterable[Signature]) -> dict[str, Signature]:
    """Signatures, and those that stand inside them, by their folded form; of several of one form nobody can say which is meant."""
    found: dict[str, set[Signature]] = {}
    waiting = list(signatures)
    while waiting:
        signature = waiting.pop()
        found.setdefault(folded(signature), set()).add(signature)
        waiting += [value for value in signature.fields.values() if isinstance(value, Signature)]
    return {text: each.pop() for text, each in found.items() if len(each) == 1}


def unfolded(signature: Signature, known: Mapping[str, Signature]) -> Signature:
    """A signature of version 0.1 with what it holds folded put back, as far as it is known."""
    if (whole := known.get(folded(signature))) is not None:
        return whole
    fields = {key: known.get(value, value) if isinstance(value, str) else unfolded(value, known) for key, value in signature.fields.items()}
    return Signature(signature.metric, fields, signature.version)


def _read_first(entry: Entry, specs: Mapping[str, MetricSpec], known: Mapping[str, Signature], level: float) -> Score:
    metric, _, key = str(entry["metric"]).partition(".")
    better = entry["higher_is_better"]
    direction = "none" if better is None else "higher" if better else "lower"
    group = first_group(entry["group"])
    if group.get("language") == "None":
        group = Group()
    low, high = entry["ci_low"], entry["ci_high"]
    return Score(
        _spec(specs, metric, key or metric, entry["unit"], direction),
        entry["subset"],
        group,
        entry["value"],
        entry["n"],
        entry["n_missing"],
        None if low is None or high is None else Interval(low, high, level),
        unfolded(Signature.parse(entry["signature"]), known),
    )
