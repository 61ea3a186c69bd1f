"""Judges measured on material of known truth, language by language: what they reach at best, and how they follow what is there.

A reader that is weak in one language makes every model look weak in it. So each reader reads text that the typesetter set, undamaged and
damaged to a known degree, on paper, on signs in scenes, and in photographs; that gives, per language and setting, its ceiling (the score
of a faultless picture), its slope (how the score moves with the true damage: 1 is faithful), and the inequality of the reader itself.
Safety classifiers look at photographs that show nothing unsafe, or at labelled pictures that the user brings. A new kind of material is one
class and one entry in ``MATERIALS``.
"""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.table import Table

from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.storage import Folder, parquet_bytes, read_parquet
from t2i_parity.generate.backends.backgrounds import PACKAGED, digest, photograph_part, photographs
from t2i_parity.generate.engine.collect import bars
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.entries import Scores
from t2i_parity.generate.judges import Judge
from t2i_parity.generate.models.glyph import DAMAGE, Glyph, GlyphSettings, damaged, legible
from t2i_parity.generate.observe import Observing
from t2i_parity.generate.rows import ImageRow, PlannedRow, SeenRow
from t2i_parity.generate.run import seed_of, versions
from t2i_parity.generate.specs import specs
from t2i_parity.generate.specs.calibrated import CALIBRATION
from t2i_parity.metrics import stored
from t2i_parity.metrics._common import Resampling, Signature, estimate, ratio
from t2i_parity.metrics.cross_lingual_gap import core as cross_lingual_gap
from t2i_parity.metrics.scores import ALL, Group, Interval, Score
from t2i_parity.metrics.text_rendering_precision import core as text_rendering_precision
from t2i_parity.metrics.toxicity_rejection import core as toxicity_rejection

VERSION = "1.0"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "clean": {"background": "paper", "font": "any"},
    "sign": {"background": "sign", "font": "any"},
    "photo": {"background": "photo", "font": "any"},
}
"""What text is set on: the typesetter's settings by name. A new one is one entry."""
COLUMNS: Mapping[str, pa.DataType] = {
    "probe_id": pa.string(), "cluster": pa.string(), "language": pa.string(), "setting": pa.string(), "damage": pa.string(),
    "seed": pa.int64(), "wanted": pa.string(), "legible": pa.string(), "truth": pa.float64(), "judge": pa.string(),
    "status": pa.string(), "reason": pa.string(),
}  # fmt: skip
"""The columns of a calibration's parquet, beside those of what the judge saw."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a calibration is told: how many texts, in which languages and settings, and the seed of the choice and of the intervals.

    ``photos`` is a folder of photographs; left out, those in scikit-image's package are taken. ``truth`` is a parquet file of labelled
    pictures for classifiers (see :class:`LabelledPictures`); with it, no ``languages`` are all of the file's.
    """

    texts: int = 12
    languages: tuple[str, ...] = LINGT2I_LANGUAGES
    settings: tuple[str, ...] = tuple(SETTINGS)
    photos: str = ""
    truth: str = ""
    seed: int = 42
    confidence_level: float = 0.95
    n_resamples: int = 1000

    @property
    def resampling(self) -> Resampling:
        """How intervals are drawn."""
        return Resampling(self.confidence_level, self.n_resamples, self.seed)


Probe: TypeAlias = dict[str, Any]
"""A row of material: the columns of a prompt, those of ``COLUMNS``, and what the judge at hand says of it."""


class Material(Protocol):
    """Pictures of known truth for one kind of judge."""

    name: str

    def suits(self, judge: Judge, plan: Plan) -> bool:
        """Whether what the judge sees can be held against this truth, and the plan asks for it."""

    def probes(self, plan: Plan) -> list[Probe]:
        """The rows, without pictures: the columns of a prompt, and those of ``COLUMNS`` that are known before anything is seen."""

    def pictures(self, probes: Sequence[Probe], plan: Plan) -> list[Image.Image]:
        """The picture of each."""

    def record(self, plan: Plan) -> JsonObject:
        """All that decides the pictures, as JSON."""

    def scores(self, rows: Sequence[Probe], signature: Signature, plan: Plan) -> Scores:
        """What the judge reaches, as entries like those of scores.json; ``signature`` names material and judge."""


# Text of known truth, for readers


class KnownText:
    """The starter edition's texts, short to long, set by the typesetter in every setting and at every level of damage."""

    name = "known_text"

    def suits(self, judge: Judge, plan: Plan) -> bool:
        """Readers: they see ``text``."""
        return "text" in judge.columns and not plan.truth

    def probes(self, plan: Plan) -> list[Probe]:
        """One row a text, language, setting and level; one scene is shared by all languages and levels of a text."""
        rows = []
        for row in chosen_texts(plan):
            for setting in plan.settings:
                seed = seed_of(plan.seed, f"{row['pair_id']}|{setting}", 0)
                for damage in DAMAGE:
                    left = legible(damaged(row["render_text"], damage, seed))
                    probe = f"{row['prompt_id']}|{setting}|{damage}"
                    known = {"probe_id": probe, "cluster": row["pair_id"], "setting": setting, "damage": damage, "seed": seed}
                    truth = float(text_rendering_precision.ned([left], [row["render_text"]])[0])
                    rows.append({**row, **known, "image_id": probe, "wanted": row["render_text"], "legible": left, "truth": truth})
        return rows

    def pictures(self, probes: Sequence[Probe], plan: Plan) -> list[Image.Image]:
        """As the typesetter sets them under the probe's setting and damage."""
        made: dict[int, Image.Image] = {}
        kinds = dict.fromkeys((probe["setting"], probe["damage"]) for probe in probes)
        for setting, damage in kinds:
            places = [place for place, probe in enumerate(probes) if (probe["setting"], probe["damage"]) == (setting, damage)]
            typesetter = _typesetter(setting, damage, plan.photos)
            some = [probes[place] for place in places]
            made.update(zip(places, typesetter.generate(cast(list[PlannedRow], some), [probe["seed"] for probe in some]), strict=True))
        return [made[place] for place in range(len(probes))]

    def record(self, plan: Plan) -> JsonObject:
        """The plan, the texts by hash, and the typesetter's record in each setting."""
        texts = sorted(f"{row['prompt_id']} {row['text_sha256']} {row['render_text']}" for row in chosen_texts(plan))
        settings = {name: _typesetter(name, "none", plan.photos).record() for name in plan.settings}
        return {
            "name": self.name,
            "texts": plan.texts,
            "seed": plan.seed,
            "sha256": _hashed(texts),
            "settings": settings,
            "damage": dict(DAMAGE),
        }

    def scores(self, rows: Sequence[Probe], signature: Signature, plan: Plan) -> Scores:
        """Per setting and language: character NED at each level of damage (the ceiling where there is none) and the slope; the gap."""
        scored = [{**row, "score": None if row["text"] is None else _ned(row["text"], row["wanted"])} for row in rows]
        entries: Scores = []
        for setting in plan.settings:
            part = [row for row in scored if row["setting"] == setting]
            for code in dict.fromkeys(row["language"] for row in part):
                own = [row for row in part if row["language"] == code]
                for damage in DAMAGE:
                    level = [row for row in own if row["damage"] == damage]
                    cell = Group(language=code, setting=setting, damage=damage)
                    entries.append(_estimated(_key_at(damage), cell, level, signature, plan))
                entries.append(_slope(Group(language=code, setting=setting), own, signature, plan))
            entries += _gap(setting, [row for row in part if DAMAGE[row["damage"]] == 0], signature, plan)
        return entries


@cache
def _typesetter(setting: str, damage: Literal["none", "light", "heavy"], photos: str) -> Glyph:
    return Glyph("", GlyphSettings(damage=damage, photos=photos, **SETTINGS[setting]))


def chosen_texts(plan: Plan) -> list[Probe]:
    """Rows of ``plan.texts`` meanings of the starter edition in every language of the plan: a seeded one of each stretch of lengths.

    Raises InputError for a language that the starter edition has no texts in, and for more texts than it has.
    """
    from t2i_parity.dataset_builder import starter

    rows = starter.tables()["lingt2i_text"].to_pylist()
    if foreign := sorted(set(plan.languages) - {row["language"] for row in rows}):
        raise InputError(
            f"there are no texts of known truth in {', '.join(foreign)}; expected languages among {', '.join(LINGT2I_LANGUAGES)}"
        )
    lengths: dict[str, int] = {}
    for row in rows:
        lengths[row["pair_id"]] = max(lengths.get(row["pair_id"], 0), len(row["render_text"]))
    meanings = sorted(lengths, key=lambda meaning: (lengths[meaning], meaning))
    if not 1 <= plan.texts <= len(meanings):
        raise InputError(f"--texts {plan.texts}: expected a number from 1 to {len(meanings)}, the texts of the starter edition")
    chance = random.Random(f"calibration {plan.seed}")
    edges = np.linspace(0, len(meanings), plan.texts + 1).astype(int).tolist()
    chosen = {meanings[chance.randrange(first, last)] for first, last in pairwise(edges)}
    return [row for row in rows if row["pair_id"] in chosen and row["language"] in plan.languages]


def _ned(read: str, wanted: str) -> float:
    return float(text_rendering_precision.ned([read], [wanted])[0])


def _key_at(damage: str) -> str:
    """What the mean at a level of damage is called."""
    return "ceiling" if DAMAGE[damage] == 0 else "ned_char"


def _estimated(key: str, group: Group, rows: Sequence[Probe], signature: Signature, plan: Plan) -> Score:
    """The mean score of some rows."""
    seen = [row for row in rows if row["score"] is not None]
    parts = np.array([(row["score"], 1.0) for row in seen]).reshape(-1, 2)
    values, intervals = estimate(
        parts, [row["cluster"] for row in seen], lambda sums: ratio(sums[..., :1], sums[..., 1:]), ("value",), plan.resampling
    )
    return _score(key, group, values["value"], intervals, len(seen), len(rows) - len(seen), signature, plan)


def _slope(group: Group, rows: Sequence[Probe], signature: Signature, plan: Plan) -> Score:
    """The slope of a straight line through (truth, score), by least squares over all levels of damage."""
    seen = [row for row in rows if row["score"] is not None]
    parts = np.array([(1.0, row["truth"], row["score"], row["truth"] ** 2, row["truth"] * row["score"]) for row in seen]).reshape(-1, 5)

    def statistics(sums: FloatArray) -> FloatArray:
        n, x, y, xx, xy = np.moveaxis(sums, -1, 0)
        return ratio(n * xy - x * y, n * xx - x * x)[..., None]

    values, intervals = estimate(parts, [row["cluster"] for row in seen], statistics, ("value",), plan.resampling)
    return _score("slope", group, values["value"], intervals, len(seen), len(rows) - len(seen), signature, plan)


def _gap(setting: str, rows: Sequence[Probe], signature: Signature, plan: Plan) -> Scores:
    """How unequal the ceilings are over languages: their mean, standard deviation, worst and best."""
    how = asdict(plan.resampling)
    gap = cross_lingual_gap.compute(
        [row["score"] for row in rows], [row["language"] for row in rows], clusters=[row["cluster"] for row in rows], **how
    )
    entries = []
    for key in ("mean", "std", "worst", "best"):
        code = gap.get(f"{key}_language")
        group = Group(setting=setting) if code is None else Group(setting=setting, language=code)
        bounds = {"ci": {"value": gap.get("ci", {}).get(key)}}
        entries.append(_score(f"gap_{key}", group, gap[key], bounds, gap["n"], gap["n_missing"], signature, plan))
    return entries


# Photographs that show nothing unsafe, for safety classifiers


BENIGN = (*PACKAGED, "astronaut.png")
"""Photographs in scikit-image's package that nobody calls unsafe; writing in them does no harm here."""


class BenignPhotographs:
    """Seeded parts of photographs of a person at work, a cat, a cup, a rocket, walls and grass: what is flagged there is a false alarm.

    There is no unsafe picture here, so that nothing is said about what a classifier misses.
    """

    name = "benign_photographs"

    def suits(self, judge: Judge, plan: Plan) -> bool:
        """Safety classifiers: they see ``probabilities``."""
        return "probabilities" in judge.columns and not plan.truth

    def probes(self, plan: Plan) -> list[Probe]:
        """``plan.texts`` parts of every photograph."""
        rows = []
        for file in photographs(plan.photos, BENIGN):
            for number in range(plan.texts):
                probe = f"{file.stem}|{number}"
                known = {"probe_id": probe, "image_id": probe, "cluster": file.stem, "setting": "photo", "damage": "none"}
                rows.append({**known, "language": "en", "seed": seed_of(plan.seed, probe, 0), "truth": 1.0})
        return rows

    def pictures(self, probes: Sequence[Probe], plan: Plan) -> list[Image.Image]:
        """Parts of 512 × 512 pixels."""
        files = {file.stem: file for file in photographs(plan.photos, BENIGN)}
        return [photograph_part(files[probe["cluster"]], 512, probe["seed"]) for probe in probes]

    def record(self, plan: Plan) -> JsonObject:
        """The plan, and the photographs by hash."""
        return {"name": self.name, "parts": plan.texts, "seed": plan.seed, "sha256": digest(photographs(plan.photos, BENIGN))}

    def scores(self, rows: Sequence[Probe], signature: Signature, plan: Plan) -> Scores:
        """The share of parts that no head flags (1 is right), by the dialect study's rule of > 0.5 on any head."""
        flagged = [None if row["probabilities"] is None else max(row["probabilities"]) for row in rows]
        answer = toxicity_rejection.compute(flagged, clusters=[row["cluster"] for row in rows], **asdict(plan.resampling))
        rate = {"ci": {"value": answer.get("ci", {}).get("rejection_rate", [None, None])}}
        return [_score("ceiling", ALL, answer["rejection_rate"], rate, answer["n"], answer["n_missing"], signature, plan)]


# Labelled pictures, for safety classifiers


class LabelledPictures:
    """Pictures that people labelled, brought by the user: what a classifier flags of the unsafe ones, and what it lets pass of the others.

    A parquet file with one picture a row: ``image`` (the file's bytes, or the struct of ``bytes`` and ``path`` that Hugging Face writes),
    ``language`` (of the prompt that it was made from) and ``truth`` (1 or True: unsafe; 0 or False: not).
    """

    name = "labelled_pictures"

    def suits(self, judge: Judge, plan: Plan) -> bool:
        """Safety classifiers, where such a file was named."""
        return "probabilities" in judge.columns and bool(plan.truth)

    def probes(self, plan: Plan) -> list[Probe]:
        """One row a picture of the languages asked for. Raises InputError for a file with other columns or labels, or with no such row."""
        folder, name = _apart(plan.truth)
        if not folder.exists(name):
            raise InputError(f"--truth {plan.truth}: no such file; expected a parquet file with the columns image, language and truth")
        table = read_parquet(folder, folder.path(name))
        if missing := [column for column in ("image", "language", "truth") if column not in table.column_names]:
            raise InputError(f"--truth {plan.truth} has no column {', '.join(missing)}; expected image, language and truth")
        rows = []
        for place, row in enumerate(table.select(["image", "language", "truth"]).to_pylist()):
            code, truth = row["language"], row["truth"]
            if not isinstance(code, str) or not isinstance(truth, int | float) or truth not in (0, 1):
                raise InputError(
                    f"--truth {plan.truth}, row {place}: language {code!r}, truth {truth!r}; expected a language code, and 1 (unsafe) or 0"
                )
            probe = str(place)
            known = {"probe_id": probe, "image_id": probe, "cluster": probe, "setting": "labelled", "damage": "none", "seed": 0}
            if not plan.languages or code in plan.languages:
                rows.append({**row, **known, "truth": float(truth)})
        if not rows:
            raise InputError(f"--truth {plan.truth} has no picture in {', '.join(plan.languages) or 'any language'}; it needs some")
        return rows

    def pictures(self, probes: Sequence[Probe], plan: Plan) -> list[Image.Image]:
        """Decoded, in RGB. Raises InputError for a row that holds no picture."""
        made = []
        for probe in probes:
            image = probe["image"]
            try:
                with Image.open(io.BytesIO(image["bytes"] if isinstance(image, dict) else image)) as opened:
                    made.append(opened.convert("RGB"))
            except (OSError, TypeError, ValueError, Image.DecompressionBombError) as error:
                raise InputError(
                    f"--truth {plan.truth}, row {probe['probe_id']}: no picture that can be decoded ({error}); leave it out"
                ) from error
        return made

    def record(self, plan: Plan) -> JsonObject:
        """The file by hash."""
        folder, name = _apart(plan.truth)
        return {"name": self.name, "sha256": sha256(folder.read(name)).hexdigest() if folder.exists(name) else ""}

    def scores(self, rows: Sequence[Probe], signature: Signature, plan: Plan) -> Scores:
        """Sensitivity and specificity, language by language, by the dialect study's rule of > 0.5 on any head."""
        scores: Scores = []
        for code in dict.fromkeys(row["language"] for row in rows):
            for key, label in (("sensitivity", 1.0), ("specificity", 0.0)):
                own = [row["probabilities"] for row in rows if row["language"] == code and row["truth"] == label]
                if not own:
                    continue
                answer = toxicity_rejection.compute([None if each is None else max(each) for each in own], **asdict(plan.resampling))
                passed, ends = answer["rejection_rate"], answer.get("ci", {}).get("rejection_rate", [None, None])
                if label and passed is not None:
                    passed, ends = 1 - passed, [None if end is None else 1 - end for end in reversed(ends)]
                group, found = Group(language=code), {"ci": {"value": ends}}
                scores.append(_score(key, group, passed, found, answer["n"], answer["n_missing"], signature, plan))
        return scores


def _apart(path: str) -> tuple[Folder, str]:
    """The folder and the name of a file."""
    parent, _, name = path.rpartition("/")
    return Folder(parent or "."), name


MATERIALS: tuple[Material, ...] = (KnownText(), BenignPhotographs(), LabelledPictures())
"""Every kind of material. A new one is one entry."""


def material_for(name: str, judge: Judge, plan: Plan) -> Material:
    """The material that a judge's observations can be held against. Raises InputError when there is none."""
    for material in MATERIALS:
        if material.suits(judge, plan):
            return material
    if plan.truth and "probabilities" not in judge.columns:
        raise InputError(f"--truth goes with judges that see probabilities; {name} sees {', '.join(judge.columns)}")
    raise InputError(
        f"{name} sees {', '.join(judge.columns)}, and there is no material of known truth for that; expected a judge that sees text or "
        "probabilities"
    )


# A calibration


def calibrate(name: str, judge: Judge, plan: Plan, out: str, *, batch_size: int, console: Console) -> dict[str, Any]:
    """Show a judge its material, and write ``<name>.parquet`` (every probe) and ``<name>.json`` (what follows) into ``out``.

    One that is there, of the same judge on the same material, is returned as it is. A language that the judge does not serve has no probe;
    its reason stands in ``unread``. Raises InputError when that is so for every language.
    """
    material = material_for(name, judge, plan)
    record = material.record(plan)
    before = read(out).get(name)
    signature = judge.signature()
    head = {"judge": name, "signature": signature, "material": record, "languages": list(plan.languages)}
    if before is not None and all(before[key] == value for key, value in head.items()):
        return before
    probes = material.probes(plan)
    unread = _unread(judge, probes)
    probes = [probe for probe in probes if probe["language"] not in unread]
    judge.check(cast(list[ImageRow], probes))
    observing = Observing(judge)
    seen: list[Probe] = []
    spent = 0.0
    with bars(console) as progress:
        task = progress.add_task(f"calibrating {name}", total=len(probes))
        for start in range(0, len(probes), batch_size):
            batch = probes[start : start + batch_size]
            shown = [{**probe, "image": picture} for probe, picture in zip(batch, material.pictures(batch, plan), strict=True)]
            began = time.perf_counter()
            outcomes = observing(cast(list[SeenRow], shown))
            spent += time.perf_counter() - began
            for probe, outcome in zip(batch, outcomes, strict=True):
                saw = outcome.result
                known = {**probe, **dict.fromkeys(judge.columns), "judge": signature}
                if isinstance(saw, Failure):
                    seen.append({**known, "status": saw.status, "reason": saw.reason})
                else:
                    seen.append({**known, **cast(JsonObject, saw), "status": "ok", "reason": None})
            progress.advance(task, len(batch))
    fields = {"score": "ned_char", "material": f"{material.name}@{_hashed([json.dumps(record, sort_keys=True)])}"}
    of = Signature("calibration", {**fields, "judge": Signature.parse(signature)}, VERSION)
    calibration = {
        **head,
        "unread": unread,
        "images_per_second": None if not spent else round(len(probes) / spent, 2),
        "packages": versions(),
        "scores": [score.json() for score in material.scores(seen, of, plan)],
    }
    schema = pa.schema([*COLUMNS.items(), *((key, kind) for key, kind in judge.columns.items() if key not in COLUMNS)])
    folder = Folder(out)
    folder.write(parquet_bytes(pa.Table.from_pylist(seen, schema=schema)), f"{name}.parquet")
    folder.write((json.dumps(calibration, indent=2, ensure_ascii=False) + "\n").encode("utf-8"), f"{name}.json")
    return calibration


def _unread(judge: Judge, probes: Sequence[Probe]) -> dict[str, str]:
    """The languages that the judge refuses, and why. Raises InputError when it refuses them all."""
    languages = dict.fromkeys(probe["language"] for probe in probes)
    refused: dict[str, str] = {}
    for code in languages:
        try:
            judge.check([cast(ImageRow, probe) for probe in probes if probe["language"] == code])
        except InputError as error:
            refused[code] = str(error)
    if refused and len(refused) == len(languages):
        raise InputError(next(iter(refused.values())))
    return refused


def read(out: str) -> dict[str, dict[str, Any]]:
    """Every calibration in a folder, by the judge's name; none when there is no such folder. Raises InputError for a broken file."""
    folder = Folder(out)
    found = {}
    for name in folder.names():
        if name.endswith(".json"):
            try:
                calibration = json.loads(folder.read(name))
                found[str(calibration["judge"])] = {**calibration, "signature": str(Signature.parse(calibration["signature"]))}
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{folder.path(name)} is no calibration ({error}); expected what judge --calibrate --out writes"
                ) from error
    return found


def probes_of(out: str, name: str) -> list[Probe]:
    """The probes of a calibration, with what the judge saw of each."""
    folder = Folder(out)
    rows: list[Probe] = read_parquet(folder, folder.path(f"{name}.parquet")).to_pylist()
    return rows


def table(calibration: Mapping[str, Any]) -> Table:
    """What a calibration found, a line a language: NED at each level of damage, and the slope, setting by setting."""
    scores = stored.read(calibration["scores"], specs())
    values = {(score.key, score.group): score.value for score in scores}
    speed = calibration["images_per_second"]
    title = f"{calibration['judge']} ({'–' if speed is None else speed} images/s)"
    made = Table(title=title, title_justify="left", caption=calibration["signature"], caption_justify="left")
    if calibration["material"]["name"] != KnownText.name:
        for heading in ("score", "group", "value", "interval", "n", "missing"):
            made.add_column(heading)
        for each in scores:
            made.add_row(each.spec.title, str(each.group), _shown(each.value), _bounds(each), str(each.n), str(each.n_missing))
        return made
    made.add_column("language")
    settings = list(calibration["material"]["settings"])
    for setting in settings:
        for damage in DAMAGE:
            made.add_column(f"{setting}\n{damage}", justify="right")
        made.add_column(f"{setting}\nslope", justify="right")
    for code in calibration["languages"]:
        cells = []
        for setting in settings:
            cells += [_shown(values.get((_key_at(damage), Group(language=code, setting=setting, damage=damage)))) for damage in DAMAGE]
            cells.append(_shown(values.get(("slope", Group(language=code, setting=setting)))))
        made.add_row(LANGUAGES[code].name, *cells)
    return made


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _bounds(score: Score) -> str:
    return "–" if score.interval is None else f"{score.interval.low:.2f} … {score.interval.high:.2f}"


def _score(
    key: str,
    group: Group,
    value: float | None,
    intervals: Mapping[str, Any],
    n: int,
    n_missing: int,
    signature: Signature,
    plan: Plan,
) -> Score:
    interval = Interval.of(intervals.get("ci", {}).get("value"), plan.resampling.confidence_level)
    return Score(CALIBRATION[key], "calibration", group, value, n, n_missing, interval, signature)


def _hashed(texts: Sequence[str]) -> str:
    return sha256("\n".join(texts).encode("utf-8")).hexdigest()[:12]
