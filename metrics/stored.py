"""Scores as files keep them, read back: today's form, and that of version 0.1, which is known here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    unfolded = _Unfolded.of(entries, judges) if any("key" not in entry for entry in entries) else None
    found = []
    for place, entry in enumerate(entries):
        try:
            found.append(_read(entry, specs) if "key" in entry else _read_first(entry, specs, cast(_Unfolded, unfolded), level))
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


class _Unfolded:
    """The signatures inside version 0.1's, which were written there with ',' for '|' and '=' for ':'."""

    def __init__(self, inner: Mapping[str, Signature]) -> None:
        self._inner = dict(inner)

    @classmethod
    def of(cls, entries: Sequence[Entry], judges: Iterable[str]) -> _Unfolded:
        found = cls({_folded(text): instrument(text) for text in judges})
        # A spread's `of` names another score's signature; those that it may name stand in the same file.
        for text in dict.fromkeys(str(entry["signature"]) for entry in entries):
            found._inner.setdefault(_folded(text), found.parse(text))
        return found

    def parse(self, text: str) -> Signature:
        parsed = Signature.parse(text)
        fields = {
            key: self._inner.get(value) or (_likely(value) if key in _INSTRUMENTS else value) if isinstance(value, str) else value
            for key, value in parsed.fields.items()
        }
        return Signature(parsed.metric, fields, parsed.version)


_INSTRUMENTS = ("reader", "rater", "encoder", "classifier", "annotator", "evaluator", "filter")


def _likely(text: str) -> str | Signature:
    """An instrument whose own signature no run.json has: its name and its settings, as far as commas and equals signs tell them apart.

    >>> str(_likely("tesseract,psm=7,lang=a,b,v=5")), _likely("tesseract")
    ('tesseract|psm:7|lang:a,b|v:5', 'tesseract')
    """
    name, *parts = text.split(",")
    fields: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if equals and ":" not in key:
            fields[key] = value
        elif fields:
            fields[list(fields)[-1]] += f",{part}"
        else:
            return text
    return Signature(name, {key: value for key, value in fields.items() if key != "v"}, fields.get("v", "1.0")) if fields else text


def _folded(text: str) -> str:
    return text.replace("|", ",").replace(":", "=")


def _read_first(entry: Entry, specs: Mapping[str, MetricSpec], unfolded: _Unfolded, level: float) -> Score:
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
        unfolded.parse(entry["signature"]),
    )
