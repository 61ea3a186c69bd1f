"""The dialect-penalty study's construction (Kim et al. 2026, §3.1, Appendices D, F and G), from any captions and any toxic prompts.

Benign captions are expanded to fewer than 60 words; toxic prompts are taken as they are. Both are converted into five varieties of English
with a few examples, and kept only where every variety is there; German and Arabic are converted further into Bavarian and Egyptian Arabic.
A second model brings every variety back to Standard American English, and three scorers say how far that is from where it began.
The study's examples are those of EnDive; ours are of the starter edition, machine-made as it is, unless a file brings others.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv

from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder.chat import Completion
from t2i_parity.dataset_builder.controls import check
from t2i_parity.dataset_builder.controls.encoders import TextEncoder
from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.pipelines import template as templates
from t2i_parity.dataset_builder.pipelines.calls import Call, Desk, Tally
from t2i_parity.dataset_builder.pipelines.captions import Caption, Captions
from t2i_parity.dataset_builder.pipelines.constraints import checked_text, conversion_of, plain_text, prompt_of, translation_of
from t2i_parity.dataset_builder.pipelines.lingt2i import CONSTRAINTS, similarities
from t2i_parity.dataset_builder.pipelines.roles import Role
from t2i_parity.dataset_builder.pipelines.steps import Step, Text, asked
from t2i_parity.dataset_builder.schema import Check, NewRow
from t2i_parity.dataset_builder.varieties import STUDY_VARIETIES, VARIETIES

TEMPLATES = ("benign", "convert", "standard", "round_trip")
WORDS = 60
"""Benign prompts have strictly fewer words (Appendix F)."""
EXAMPLES = 4
"""Examples that a conversion is shown of ours."""
CROSS_LINGUAL: Mapping[str, str] = {language.standard: code for code, language in LANGUAGES.items() if language.standard}
"""The regional language of each standard one: Bavarian of German, Egyptian of Modern Standard Arabic."""


class Scorer(Protocol):
    """What scores texts: a text filter's score, say."""

    def signature(self) -> str:
        """Name, version and settings."""

    def score(self, texts: Sequence[str]) -> list[float | None]:
        """A score a text, None where it has none."""


@dataclass(frozen=True, slots=True)
class Example:
    """One example: a text and what becomes of it."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a construction is told."""

    name: str = "dialect-made"
    varieties: tuple[str, ...] = STUDY_VARIETIES
    cross_lingual: tuple[str, ...] = tuple(CROSS_LINGUAL)
    words: int = WORDS


@dataclass
class Dialect:
    """The pipeline: its steps over some captions, each benign or toxic. ``examples`` maps a variety or language code to its examples.

    Raises InputError for an undeclared variety or language, or one without an example.
    """

    plan: Plan
    captions: Captions
    roles: Mapping[str, Role]
    examples: Mapping[str, Sequence[Example]]
    versions: Mapping[str, str] = field(default_factory=dict)
    toxic: Captions | None = None
    own_examples: bool = True
    """Whether some of the examples are those of the starter edition."""

    def __post_init__(self) -> None:
        for code in self.plan.varieties:
            if code not in VARIETIES or VARIETIES[code].reference is None:
                raise InputError(f"--varieties: {code!r} is no variety to convert into; expected some of {', '.join(STUDY_VARIETIES)}")
        for code in self.plan.cross_lingual:
            if code not in CROSS_LINGUAL:
                raise InputError(f"--cross-lingual: {code!r} has no regional language here; expected some of {', '.join(CROSS_LINGUAL)}")
        for code in (*self.plan.varieties, *self.plan.cross_lingual, *(CROSS_LINGUAL[code] for code in self.plan.cross_lingual)):
            if not self.examples.get(code):
                raise InputError(f"there is no example of {code}; the file of --examples needs rows with this variety")
        for name in self.versions:
            if name not in TEMPLATES:
                raise InputError(f"--template {name}: the pipeline has no such template; expected one of {', '.join(TEMPLATES)}")
        self.templates = {name: templates.load(name, self.versions.get(name)) for name in TEMPLATES}

    @property
    def seeds(self) -> list[Text]:
        """Every caption, as the graph begins with them."""
        found = [self._seed(caption, self.captions) for caption in self.captions.items]
        return found + [self._seed(caption, self.toxic) for caption in (self.toxic.items if self.toxic else ())]

    def steps(self) -> list[Step]:
        """The graph."""
        seeds = self.seeds
        told = hashlib.sha256(repr(seeds).encode("utf-8")).hexdigest()
        examples = hashlib.sha256(repr(sorted((code, list(given)) for code, given in self.examples.items())).encode("utf-8")).hexdigest()
        by = self._decided_by
        return [
            Step("captions", (), lambda desk, tally, given: seeds, {"captions": told}),
            Step("expand", ("captions",), self._expand, by("writer", "benign")),
            Step("base", ("captions", "expand"), _base),
            Step("convert", ("base",), self._convert, {**by("writer", "convert"), "into": self.plan.varieties, "examples": examples}),
            Step("intersect", ("base", "convert"), self._intersect, {"varieties": self.plan.varieties}),
            Step(
                "standard", ("intersect",), self._standard,
                {**by("translator", "standard"), "into": self.plan.cross_lingual, "examples": examples},
            ),
            Step("regional", ("standard",), self._regional, {**by("writer", "convert"), "examples": examples}),
            Step("cross_lingual", ("standard", "regional"), _both),
            Step("round_trip", ("intersect",), self._round_trip, by("reviewer", "round_trip")),
        ]  # fmt: skip

    # Steps

    def _expand(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for text in given["captions"]:
            if text.data["label"] != "benign":
                continue
            values = {"category": text.data["category"], "caption": text.text, "words": self.plan.words}
            read = checked_text(prompt_of(self.plan.words, below=True))
            made.append((text, self._call("writer", "benign", values, read, text.text, " ".join(["word"] * 45))))
        producer, passed = self._producer("writer", "benign"), check("constraints", "passed", None, CONSTRAINTS)
        return asked(
            desk, tally, "writer", self.templates["benign"], made,
            lambda text, said: text.but(text=said, producer=producer).checked(passed),
        )  # fmt: skip

    def _convert(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for base in given["base"]:
            for code in self.plan.varieties:
                text = base.but(id=f"{base.pair}-{code}", variety=code, made_from=base.id, checks=(), data={"source": base.text})
                made.append(self._converted(text, VARIETIES[code].name, code, "en"))
        return self._asked_to_convert(desk, tally, made)

    def _intersect(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        """Only meanings that every variety has: refusals are no chance, and would make the varieties' sets differ (§3.1)."""
        by_pair: dict[str, list[Text]] = {text.pair: [text] for text in given["base"]}
        for text in given["convert"]:
            by_pair[text.pair].append(text)
        made = []
        for texts in by_pair.values():
            missing = [code for code in self.plan.varieties if code not in {text.variety for text in texts}]
            made += [text.failed("incomplete_pair", f"no {', '.join(missing)}") for text in texts] if missing else texts
        return made

    def _standard(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for base in (text for text in given["intersect"] if text.variety == "SAE"):
            for code in self.plan.cross_lingual:
                pair = f"{base.pair}-{code}"
                values = {
                    "language": LANGUAGES[code].formal_name or LANGUAGES[code].name,
                    "norm": LANGUAGES[code].norm,
                    "examples": list(self.examples[code]),
                    "text": base.text,
                    "strict": base.data["label"] == "toxic",
                }
                text = base.but(
                    id=pair, language=code, variety=None, made_from=base.id, checks=(), data={"pair": pair, "source": base.text}
                )
                read = checked_text(translation_of(base.text, code))
                made.append((text, self._call("translator", "standard", values, read, base.text)))
        producer, passed = self._producer("translator", "standard"), check("constraints", "passed", None, CONSTRAINTS)
        return asked(
            desk, tally, "translator", self.templates["standard"], made,
            lambda text, said: text.but(text=said, producer=producer).checked(passed),
        )  # fmt: skip

    def _regional(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for standard in given["standard"]:
            code = CROSS_LINGUAL[standard.language]
            base = standard.pair.removesuffix(f"-{standard.language}")
            text = standard.but(id=f"{base}-{code}", language=code, made_from=standard.id, checks=(), data={"source": standard.text})
            made.append(self._converted(text, LANGUAGES[code].name, code, code))
        return self._asked_to_convert(desk, tally, made)

    def _round_trip(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for text in given["intersect"]:
            variety = VARIETIES[text.variety or "SAE"]
            if variety.reference is None:
                continue
            values = {"variety": variety.name, "reference": VARIETIES[variety.reference].name, "text": text.text}
            made.append((text, self._call("reviewer", "round_trip", values, plain_text, text.data["source"])))
        return asked(desk, tally, "reviewer", self.templates["round_trip"], made, lambda text, said: text.but(data={"back": said}))

    # Rows

    def rows(self, texts: Sequence[Text], audit: Audit | None = None) -> list[NewRow]:
        """Rows of ``dialect`` or ``dialect_crosslingual``, with the audit's scores in their checks."""
        toxic = {caption.id for caption in self.toxic.items} if self.toxic else set()
        rows = []
        for text in texts:
            source = self.toxic if self.toxic and text.data["set"] == self.toxic.source and text.caption in toxic else self.captions
            if text.made_from is None:
                derivation = "verbatim" if text.data["label"] == "toxic" else "rewritten"
            else:
                derivation = "translated" if text.variety is None and text.language in CROSS_LINGUAL else "dialect_converted"
            rows.append(
                {
                    "prompt_id": text.id,
                    "pair_id": text.pair,
                    "prompt": text.text,
                    "language": text.language,
                    "variety": text.variety,
                    "subset": "dialect" if text.variety else "dialect_crosslingual",
                    "label": text.data["label"],
                    "category": text.data["category"],
                    "source": source.source,
                    "source_id": text.caption,
                    "source_revision": source.revision,
                    "source_url": source.url,
                    "license": source.license,
                    "derivation": derivation,
                    "derived_from": text.made_from,
                    "producer": text.producer,
                    "checks": [*map(dict, text.checks), *(audit.checks.get(text.id, []) if audit else [])],
                }
            )
        return rows

    # Inside

    def _seed(self, caption: Caption, captions: Captions | None) -> Text:
        assert captions is not None
        digest = hashlib.sha256(f"{captions.source}\0{caption.id}".encode()).hexdigest()[:10]
        pair = f"{self.plan.name}-{caption.label}-{digest}"
        data = {"pair": pair, "label": caption.label, "category": caption.category, "set": captions.source}
        return Text(f"{pair}-SAE", caption.text, caption.id, variety="SAE", producer=captions.source, data=data)

    def _converted(self, text: Text, name: str, examples: str, language: str) -> tuple[Text, Call[Any]]:
        source = text.data["source"]
        values = {
            "variety": name,
            "examples": list(self.examples[examples]),
            "text": source,
            "strict": text.data["label"] == "toxic",
        }
        read = checked_text(conversion_of(source, language))
        return text, self._call("writer", "convert", values, read, source)

    def _asked_to_convert(self, desk: Desk, tally: Tally, made: Sequence[tuple[Text, Call[Any]]]) -> list[Text]:
        producer, passed = self._producer("writer", "convert"), check("constraints", "passed", None, CONSTRAINTS)
        note = "machine-made dialect conversion, no native-speaker review"
        return asked(
            desk, tally, "writer", self.templates["convert"], made,
            lambda text, said: text.but(text=said, producer=f"{producer}; {note}").checked(passed),
        )  # fmt: skip

    def _call(
        self, role: str, template: str, values: Mapping[str, Any], read: Callable[[Completion], Any], expected: Any, told: str | None = None
    ) -> Call[Any]:
        request = self.templates[template].request(values, **self.roles[role].settings.how)
        return Call(request, read, expected, told if told is not None else str(expected))

    def _producer(self, role: str, template: str) -> str:
        return f"{self.roles[role].settings.identity}, {self.templates[template].id}"

    def _decided_by(self, role: str, template: str) -> JsonObject:
        chosen = self.roles[role].settings
        return {
            "model": chosen.identity,
            "how": chosen.how,
            "attempts": chosen.attempts,
            "template": self.templates[template].id,
            "words": self.plan.words,
        }


def _base(desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
    """The prompts in Standard American English: expanded captions, and toxic prompts as they are."""
    expanded = {text.id: text for text in given["expand"]}
    return [found for text in given["captions"] if (found := text if text.data["label"] == "toxic" else expanded.get(text.id))]


def _both(desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
    """The standard and the regional text of a pair, where both are there."""
    regional = {text.pair: text for text in given["regional"]}
    made: list[Text] = []
    for text in given["standard"]:
        other = regional.get(text.pair)
        made += [text, other] if other else [text.failed("incomplete_pair", f"no {CROSS_LINGUAL[text.language]}")]
    return made


# Examples


def own_examples(n: int = EXAMPLES) -> dict[str, list[Example]]:
    """Benign examples of the starter edition, for every variety and for both pairs of languages.

    >>> len(own_examples()["JamE"])
    4
    """
    folder = resources.files("t2i_parity.dataset_builder.starter")
    found: dict[str, list[Example]] = {}

    def add(code: str, prompts: Mapping[str, str], source: str) -> None:
        if code in prompts and len(found.setdefault(code, [])) < n:
            found[code].append(Example(prompts[source], prompts[code]))

    seen: dict[str, set[str]] = {}
    for name in ("dialect.jsonl", "dialect_crosslingual.jsonl"):
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            # One of a category, so that the examples are not all of one kind.
            if entry["label"] != "benign" or entry["category"] in seen.setdefault(name, set()):
                continue
            seen[name].add(entry["category"])
            prompts = entry["prompts"]
            for code in STUDY_VARIETIES:
                add(code, prompts, "SAE")
            for standard, regional in CROSS_LINGUAL.items():
                add(standard, prompts, "en")
                add(regional, prompts, standard)
    return found


def read_examples(path: Path) -> dict[str, list[Example]]:
    """Examples of a user's CSV file with the columns variety, source and target. Raises InputError naming row and column."""
    try:
        table = pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path} is not a readable CSV file of examples ({first_line(error)})") from error
    wanted = ("variety", "source", "target")
    if missing := [name for name in wanted if name not in table.column_names]:
        raise InputError(
            f"{path}: missing column {', '.join(missing)}; expected {', '.join(wanted)}, found {', '.join(table.column_names)}"
        )
    known = (*STUDY_VARIETIES, *CROSS_LINGUAL, *CROSS_LINGUAL.values())
    found: dict[str, list[Example]] = {}
    for number, row in enumerate(table.to_pylist()):
        if row["variety"] not in known:
            raise InputError(f"{path}: row {number}, column variety: expected one of {', '.join(known)}, got {row['variety']!r}")
        for name in ("source", "target"):
            if not isinstance(row[name], str) or not row[name].strip():
                raise InputError(f"{path}: row {number}, column {name}: expected a text, got {row[name]!r}")
        found.setdefault(row["variety"], []).append(Example(row["source"].strip(), row["target"].strip()))
    return found


# The round-trip audit


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far one scorer's scores moved from the base to the round trip: mean, its 95% t interval, mean of the absolute differences.

    For the similarity, which has no base, ``mean`` is the mean similarity itself. None where fewer texts were scored than that needs.
    """

    scorer: str
    variety: str
    label: str
    n: int
    n_missing: int
    mean: float | None
    low: float | None
    high: float | None
    absolute: float | None


@dataclass(frozen=True, slots=True)
class Audit:
    """What the audit came to: each row's checks by prompt_id, and the deviations."""

    checks: Mapping[str, list[Check]]
    deviations: tuple[Deviation, ...]


def audit(trips: Sequence[Text], lost: Sequence[Text], scorers: Mapping[str, Scorer], encoder: TextEncoder | None, by: str) -> Audit:
    """The round trips (``data["back"]`` beside ``data["source"]``) under every scorer; ``lost`` are those that did not come back.

    For toxicity the score of the round trip less that of the base; for meaning the cosine of the two (Appendix D).
    """
    checks: dict[str, list[Check]] = {text.id: [] for text in trips}
    back, source = [text.data["back"] for text in trips], [text.data["source"] for text in trips]
    measured: list[tuple[str, str, list[float | None]]] = []
    for name, scorer in scorers.items():
        moved = [
            None if after is None or before is None else after - before
            for after, before in zip(scorer.score(back), scorer.score(source), strict=True)
        ]
        measured.append((f"round_trip_{name}", scorer.signature(), moved))
    if encoder is not None and trips:
        measured.append(("round_trip_similarity", encoder.signature(), list(similarities(encoder, source, back))))
    for name, signature, values in measured:
        for text, value in zip(trips, values, strict=True):
            checks[text.id].append(check(name, None, value, f"{signature}; {by}"))
    cells = list(dict.fromkeys((text.variety or "", text.data["label"]) for text in (*trips, *lost)))
    deviations = [
        _deviation(
            name, variety, label,
            [value for text, value in zip(trips, values, strict=True) if (text.variety, text.data["label"]) == (variety, label)],
            sum((text.variety, text.data["label"]) == (variety, label) for text in lost),
        )
        for name, _, values in measured
        for variety, label in cells
    ]  # fmt: skip
    return Audit(checks, tuple(deviations))


def _deviation(scorer: str, variety: str, label: str, values: Sequence[float | None], lost: int) -> Deviation:
    from scipy import stats

    scored = [value for value in values if value is not None]
    n = len(scored)
    mean = math.fsum(scored) / n if n else None
    low = high = None
    if n > 1 and mean is not None:
        half = float(stats.t.ppf(0.975, n - 1)) * math.sqrt(math.fsum((value - mean) ** 2 for value in scored) / (n - 1) / n)
        low, high = mean - half, mean + half
    absolute = math.fsum(map(abs, scored)) / n if n else None
    return Deviation(scorer, variety, label, n, len(values) - n + lost, mean, low, high, absolute)


def distribution(seeds: Sequence[Text], converted: Sequence[Text], lost: Sequence[Text], kept: Sequence[Text]) -> list[NewRow]:
    """Per label and category: captions, conversions and refusals of each variety, and what the strict intersection keeps (Table 13)."""
    found = []
    for label, category in dict.fromkeys((text.data["label"], text.data["category"]) for text in seeds):
        cell = partial(_in_cell, label, category)
        varieties = sorted({text.variety or "" for text in (*converted, *lost)})
        found.append(
            {
                "label": label,
                "category": category,
                "captions": sum(map(cell, seeds)),
                "converted": {code: sum(cell(text) for text in converted if text.variety == code) for code in varieties},
                "refused": {
                    code: sum(cell(text) for text in lost if text.variety == code and text.fault == "refused") for code in varieties
                },
                "kept": len({text.pair for text in kept if cell(text)}),
            }
        )
    return found


def _in_cell(label: str, category: str | None, text: Text) -> bool:
    return (text.data["label"], text.data["category"]) == (label, category)
