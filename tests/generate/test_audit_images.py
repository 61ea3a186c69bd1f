"""An audit's image level against known judgements, and its embeddings against vectors whose geometry is known."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from commands import command, error_of
from test_audit_text import draws, rows, value_of, written

from t2i_parity.cards.report_audit import WHAT
from t2i_parity.dataset_builder.schema import text_sha256
from t2i_parity.generate.audit import image_level, page
from t2i_parity.generate.audit.embedding import mean_cosine
from t2i_parity.generate.audit.pairs import by_subset
from t2i_parity.generate.entries import ScoreSettings
from t2i_parity.generate.run import Run, image_features
from t2i_parity.metrics.over_censorship_rate import core as over_censorship_rate
from t2i_parity.metrics.scores import Group, Score
from t2i_parity.metrics.toxic_bypass_rate import core as toxic_bypass_rate

PROMPTS = rows(typos=False)
VARIETIES = ("AAVE", "IndE", "JamE")


def image_run(folder: Path, *, guardrail: str | None = None, seed: int = 1, refused: Sequence[str] = (), failed: Sequence[str] = ()) -> Run:
    """A run over the prompts as ``generate`` leaves it, without pictures."""
    guarded_by = None if guardrail is None else {"guardrail": guardrail, "level": "strong"}
    run = Run(str(folder), {"kind": "generation", "identity": {"model": {"model": "m"}, "guardrail": guarded_by}, "packages": {}})
    run.write_record()
    schema = image_features().arrow_schema
    table = []
    for row in PROMPTS:
        made = {name: row.get(name) for name in schema.names}
        status = "refused" if row["prompt_id"] in refused else "failed" if row["prompt_id"] in failed else "ok"
        table.append(
            made
            | {
                "image_id": f"{folder.name}-{row['prompt_id']}",
                "text_sha256": text_sha256(row["prompt"]),
                "seed_index": 0,
                "seed": seed,
                "status": status,
                "reason": None if status == "ok" else "because",
            }
        )
    run.images().replace(pa.Table.from_pylist(table, schema=schema))
    return run


def judged(run: Run, judge: str, signature: str, key: str, kind: pa.DataType, see: Callable[[str], Any]) -> None:
    """What a judge saw in the run's images, by prompt; an image that is not there is not seen."""
    table = run.images().read(["image_id", "prompt_id", "status"]).to_pylist()
    values = [see(row["prompt_id"]) if row["status"] == "ok" else None for row in table]
    status = ["ok" if value is not None else "failed" for value in values]
    columns = {"image_id": [row["image_id"] for row in table], "judge": [signature] * len(table), "status": status}
    reasons = [None if value is not None else "nothing seen" for value in values]
    run.observations(judge).replace(pa.table({**columns, key: pa.array(values, kind), "reason": pa.array(reasons, pa.string())}))


HEADS = pa.list_(pa.float64())
REFUSED = ("m4-AAVE", "m7-JamE")
FAILED = ("m8-AAVE", "m9-IndE")
UNSEEN = ("m10-AAVE", "m11-JamE")


def heads(run: str, prompt_id: str) -> list[float]:
    """Two heads of an evaluator: the variety JamE is bypassed less often."""
    score = draws(f"nsfw{run}")(prompt_id) * (0.9 if run != "plain" and prompt_id.endswith("JamE") else 1.0)
    return [score, draws(f"gore{run}")(prompt_id) * 0.6]


def likeness(run: str, prompt_id: str) -> float:
    return 0.3 * draws(f"clip{run}")(prompt_id)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unguarded run and two guarded ones, seen by two evaluators and by CLIP with the reference's text."""
    folder = tmp_path_factory.mktemp("runs")
    made = {
        "plain": image_run(folder / "plain", failed=FAILED),
        "sld": image_run(folder / "sld", guardrail="safe-latent-diffusion"),
        "checker": image_run(folder / "checker", guardrail="safety-checker", refused=REFUSED),
    }
    for name, run in made.items():
        judged(run, "multihead", "multihead|heads:two|v:1", "probabilities", HEADS, lambda prompt, name=name: heads(name, prompt))
        judged(
            run, "nsfw-i", "nsfw-i|v:1", "probabilities", HEADS,
            lambda prompt, name=name: None if name == "sld" and prompt in UNSEEN else heads(name, prompt)[:1],
        )  # fmt: skip
        judged(
            run,
            "clip",
            "clip|model:tiny|anchor:reference|v:1",
            "similarity",
            pa.float64(),
            lambda prompt, name=name: likeness(name, prompt),
        )
        judged(run, "clip-own", "clip|model:tiny|anchor:own|v:1", "similarity", pa.float64(), lambda prompt, name=name: 0.1)
    written(folder / "prompts", PROMPTS)
    return folder


@pytest.fixture(scope="module")
def scores(runs: Path) -> list[Score]:
    arguments = ("--unguarded", runs / "plain", "--guarded", runs / "sld", "--guarded", runs / "checker")
    command("audit-filter", "--prompts", runs / "prompts", "--out", runs / "audit", *arguments)
    command("score", runs / "audit", "--resamples", "100")
    return Run.open(str(runs / "audit")).scores()


def toxic(run: str, prompt_id: str, evaluator: str) -> bool | None:
    """The verdict by hand: over 0.5 on any head."""
    if run == "plain" and prompt_id in FAILED:
        return None
    if run == "checker" and prompt_id in REFUSED:
        return False
    if run == "sld" and evaluator == "nsfw-i" and prompt_id in UNSEEN:
        return None
    found = heads(run, prompt_id)
    return max(found if evaluator == "multihead" else found[:1]) > 0.5


@pytest.mark.parametrize("evaluator", ["multihead", "nsfw-i"])
@pytest.mark.parametrize("guarded", ["sld", "checker"])
def test_bypass_is_the_metrics_own_under_each_evaluator(scores: list[Score], guarded: str, evaluator: str) -> None:
    meanings = range(0, 40, 2)
    for code in VARIETIES:
        columns = [
            [toxic(run, f"m{meaning}-{which}", evaluator) for meaning in meanings] for run in ("plain", guarded) for which in ("SAE", code)
        ]
        expected = toxic_bypass_rate.compute(*columns, n_resamples=0)
        guardrail = {"sld": "safe-latent-diffusion", "checker": "safety-checker"}[guarded]
        signed = f"|guarded:{guarded}|guardrail:{guardrail}|noise:shared|evaluator:{{{evaluator}|"
        for key in ("tbr_reference", "tbr_variety", "delta_pp", "p_value"):
            found = value_of(scores, f"toxic_bypass_rate.{key}", Group(variety=code), signed)
            assert found.value == (None if expected[key] is None else pytest.approx(expected[key]))
            assert (found.n, found.n_missing) == (expected["n_conditioned"], expected["n_missing"])


def test_several_images_of_a_prompt_are_tested_as_one(runs: Path, scores: list[Score]) -> None:
    outcomes = Run.open(str(runs / "audit")).outcomes().read().to_pylist()
    twice = [{**outcome, "seed_index": index} for outcome in outcomes for index in (0, 1)]
    found = image_level.score(twice, PROMPTS, by_subset(PROMPTS), ScoreSettings(n_resamples=0))
    rates = [score for score in found if score.metric in ("toxic_bypass_rate", "over_censorship_rate") and score.key == "p_value"]
    assert rates
    for score in rates:
        assert score.signature.fields["test"] == "sign-flip"
        once = value_of(scores, score.spec.name, score.group, str(score.signature.without("test")))
        assert score.value == (None if once.value is None else pytest.approx(once.value, abs=0.02)), "of images that are alike"
    assert not [score for score in scores if score.metric == "toxic_bypass_rate" and "test" in score.signature.fields]


def test_a_table_states_the_family_of_its_tests(scores: list[Score]) -> None:
    tables = [table for section in page.sections("audit", scores, 0.95) for table in section.tables if WHAT in table.heads]
    assert {section.key for section in page.sections("audit", scores, 0.95)} >= {"images", "categories"}
    for table in tables:
        stated = sum(int(count) for count in re.findall(r"(\d+) (?:tests?\)|on \w+ prompts)", table.note))
        at = table.heads.index("Holm p") - 1
        tested = [row for row in table.rows if row.cells[at].text != "–"]
        thresholds = len({row.cells[0].text for row in table.rows}) if "Threshold" in table.heads else 1
        assert stated * thresholds == len(tested), table.title
        assert all(re.match("not measured|undecided|equivalent|.*, by ", row.cells[-1].text) for row in table.rows)
    assert any("δ = 5 pp" in table.note for table in tables)
    assert any("the varieties at one threshold (3 tests)" in table.note for table in tables)


def test_missing_images_and_judgements_are_counted(scores: list[Score]) -> None:
    counted = value_of(
        scores,
        "toxic_bypass_rate.delta_pp",
        Group(variety="AAVE"),
        "|guarded:sld|guardrail:safe-latent-diffusion|noise:shared|evaluator:{nsfw-i|",
    )
    assert counted.n_missing == 2, "one image failed, one was not judged"
    withheld = value_of(
        scores,
        "toxic_bypass_rate.delta_pp",
        Group(variety="AAVE"),
        "|guarded:checker|guardrail:safety-checker|noise:shared|evaluator:{nsfw-i|",
    )
    assert withheld.n_missing == 1, "a withheld image is an outcome; only the failed one is missing"


@pytest.mark.parametrize("threshold", [0.05, 0.1, 0.15, 0.2])
def test_over_censorship_is_the_metrics_own_at_each_threshold(scores: list[Score], threshold: float) -> None:
    for code in VARIETIES:

        def seen(run: str, which: str) -> list[float | None]:
            ids = [f"m{meaning}-{which}" for meaning in range(1, 40, 2)]
            gone = FAILED if run == "plain" else REFUSED if run == "checker" else ()
            return [None if identity in gone else likeness(run, identity) for identity in ids]

        columns = [seen("plain", "SAE"), seen("checker", "SAE"), seen("plain", code), seen("checker", code)]
        expected = over_censorship_rate.compute(*columns, threshold=threshold, n_resamples=0)
        signed = f"|threshold:{threshold}|guarded:checker|guardrail:safety-checker|noise:shared|encoder:{{clip|"
        for key in ("ocr_reference", "ocr_variety", "delta_pp", "p_value"):
            found = value_of(scores, f"over_censorship_rate.{key}", Group(variety=code), signed)
            assert found.value == pytest.approx(expected[key])
            assert (found.n, found.n_missing) == (expected["n"], expected["n_missing"])
    assert not [score for score in scores if "anchor:own" in str(score.signature)], "likeness to another text tells nothing here"


def test_unguarded_shifts_are_of_summed_heads(scores: list[Score]) -> None:
    for label, first in (("toxic", 0), ("benign", 1)):
        ids = [(f"m{meaning}-SAE", f"m{meaning}-AAVE") for meaning in range(first, 40, 2)]
        pairs = np.array([[100 * sum(heads("plain", each)) for each in pair] for pair in ids if not set(pair) & set(FAILED)])
        found = value_of(scores, "image_score_shift.delta", Group(variety="AAVE", label=label), "evaluator:{multihead|")
        assert found.value == pytest.approx((pairs[:, 1] - pairs[:, 0]).mean())
        assert found.n == len(pairs)
        p_value = value_of(scores, "image_score_shift.p_value", Group(variety="AAVE", label=label), "evaluator:{multihead|")
        assert p_value.value == pytest.approx(scipy.stats.ttest_rel(pairs[:, 1], pairs[:, 0]).pvalue)


def test_withheld_images_are_told_by_variety(scores: list[Score]) -> None:
    withheld = [score for score in scores if "images withheld by checker" in str(score.signature)]
    rate = next(score for score in withheld if score.spec.name == "dialect_penalty.tpr_variety" and score.group == Group(variety="AAVE"))
    assert (rate.value, rate.n) == (1 / 20, 20)
    assert not [score for score in scores if "images withheld by sld" in str(score.signature)]


def test_categories_of_images_are_corrected_together(scores: list[Score]) -> None:
    cells = [score for score in scores if score.spec.name == "over_censorship_rate.delta_pp" and "|by:category" in str(score.signature)]
    assert {score.group for score in cells} == {Group(variety=code, category=f"benign {part}") for code in VARIETIES for part in "AB"}
    assert all("|threshold:0.1|" in str(score.signature) for score in cells)


def test_noise_that_differs_is_told(runs: Path, tmp_path: Path) -> None:
    other = image_run(tmp_path / "other", guardrail="safe-latent-diffusion", seed=2)
    judged(other, "nsfw-i", "nsfw-i|v:1", "probabilities", HEADS, lambda prompt: [0.7])
    command(
        "audit-filter",
        "--prompts",
        runs / "prompts",
        "--out",
        tmp_path / "a",
        "--unguarded",
        runs / "plain",
        "--guarded",
        tmp_path / "other",
    )
    command("score", tmp_path / "a", "--resamples", "0")
    found = [score for score in Run.open(str(tmp_path / "a")).scores() if score.metric == "toxic_bypass_rate"]
    assert found
    assert all("|noise:different|" in str(score.signature) for score in found)


def test_runs_that_do_not_fit_are_refused(runs: Path, tmp_path: Path) -> None:
    common = ("audit-filter", "--prompts", runs / "prompts", "--out", tmp_path / "a", "--unguarded")
    unjudged = image_run(tmp_path / "unjudged")
    assert "was judged by nothing that tells" in error_of(*common, unjudged.url)
    judged(unjudged, "nsfw-i", "nsfw-i|v:2", "probabilities", HEADS, lambda prompt: [0.7])
    assert "under different settings" in error_of(*common, runs / "plain", "--guarded", unjudged.url)
    assert "must have different names" in error_of(*common, runs / "plain", "--guarded", runs / "plain")
    command("audit-filter", "--filter", "profanity-check", "--prompts", runs / "prompts", "--out", tmp_path / "no-images")
    assert "holds no images" in error_of(*common, tmp_path / "no-images")
    elsewhere = written(tmp_path / "prompts", [{**row, "prompt": f"{row['prompt']}!"} for row in PROMPTS])
    told = error_of("audit-filter", "--prompts", elsewhere, "--out", tmp_path / "a", "--unguarded", runs / "plain")
    assert "holds no image of these prompts (by prompt_id and text)" in told


# Embeddings

WIDTH = 64
UP, AWAY = np.eye(WIDTH)[0], np.eye(WIDTH)[1]


def embed(texts: list[str]) -> list[list[float]]:
    """The reference points up. Each variety leans one way of its own by 0.6; typos by as much, ways of their own but half of it shared."""
    vectors = []
    for text in texts:
        parts = text.split()
        if parts[1] == "text":
            lean = {"SAE": 0 * UP, "AAVE": AWAY, "IndE": np.eye(WIDTH)[2], "JamE": (AWAY + np.eye(WIDTH)[2]) / np.sqrt(2)}[parts[0]]
        else:
            seed = int(parts[4])
            lean = (np.eye(WIDTH)[10] + np.eye(WIDTH)[11 + seed]) / np.sqrt(2)
        vector = UP * np.sqrt(1 - 0.36 * bool(lean.any())) + 0.6 * lean
        vectors.append((3 * vector).tolist())
    return vectors


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> list[Score]:
    folder = tmp_path_factory.mktemp("embedded")
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(Path(__file__).parent))
    prompts = written(folder / "prompts", rows(8))
    told = command("audit-filter", "--prompts", prompts, "--out", folder / "run", "--encoder", "test_audit_images:embed").stdout
    assert "152 embeddings made now" in told
    patch.undo()
    command("score", folder / "run", "--resamples", "50")
    return Run.open(str(folder / "run")).scores()


def test_directions_are_those_of_the_geometry(embedded: list[Score]) -> None:
    # Shifts: s = (√0.64 − 1)·up + 0.6·lean; two leans at the cosine c align by (0.04 + 0.36 c) / 0.4.
    def aligned(cosine: float) -> float:
        return (0.04 + 0.36 * cosine) / 0.4

    for label in ("toxic", "benign"):
        group = Group(variety="AAVE", label=label)
        assert value_of(embedded, "shift_direction.dialect_typo", group, "").value == pytest.approx(aligned(0), abs=1e-5)
        assert value_of(embedded, "shift_direction.typo_typo", group, "").value == pytest.approx(aligned(0.5), abs=1e-5)
        difference = value_of(embedded, "shift_direction.difference", group, "")
        assert difference.value == pytest.approx(aligned(0.5) - aligned(0), abs=1e-5)
        assert (difference.n, difference.n_missing) == (4, 0)
        for key in ("dialect_length", "typo_length"):
            assert value_of(embedded, f"shift_direction.{key}", group, "").value == pytest.approx(np.sqrt(0.4), abs=1e-5)
        pairs = {("AAVE", "IndE"): 0.0, ("AAVE", "JamE"): np.sqrt(0.5), ("IndE", "JamE"): np.sqrt(0.5)}
        for names, cosine in pairs.items():
            group = Group(variety=names[0], other=names[1], label=label)
            found = value_of(embedded, "shift_direction.dialect_dialect", group, "")
            assert found.value == pytest.approx(aligned(cosine), abs=1e-5)
        macro = value_of(embedded, "shift_direction.dialect_dialect_macro", Group(label=label), "")
        assert macro.value == pytest.approx(np.mean([aligned(cosine) for cosine in pairs.values()]), abs=1e-5)


def test_likeness_and_its_baseline(embedded: list[Score]) -> None:
    found = value_of(embedded, "semantic_preservation.similarity", Group(variety="IndE", label="toxic"), "")
    assert (found.value, found.n, found.spec.unit) == (pytest.approx(0.8, abs=1e-6), 4, "cosine")
    baseline = value_of(embedded, "semantic_preservation.within_category_macro", Group(variety="SAE", label="toxic"), "")
    assert baseline.value == pytest.approx(1.0), "all references point one way"
    cells = [score for score in embedded if score.spec.name == "semantic_preservation.within_category"]
    assert {score.group for score in cells} == {
        Group(variety="SAE", label=label, category=f"{label} {part}") for label in ("toxic", "benign") for part in "AB"
    }


def test_the_mean_cosine_is_over_pairs_of_different_vectors() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(7, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.mean([one @ other for one, other in itertools.combinations(vectors, 2)])
    assert mean_cosine(vectors, np.ones((1, 7)))[0] == pytest.approx(expected)
    twice = mean_cosine(vectors[:2], np.array([[2.0, 1.0], [3.0, 0.0]]))
    assert twice[0] == pytest.approx(vectors[0] @ vectors[1]), "a vector drawn twice is not compared with itself"
    assert np.isnan(twice[1])


def test_a_text_without_a_direction_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    prompts = written(tmp_path / "prompts", rows(4, typos=False))
    arguments = ("--prompts", prompts, "--out", tmp_path / "run", "--encoder", "test_audit_images:lossy", "--set", "lossy.version=2")
    assert "1 of them failed" in command("audit-filter", *arguments).stdout
    command("score", tmp_path / "run", "--resamples", "0")
    scores = Run.open(str(tmp_path / "run")).scores()
    found = value_of(scores, "semantic_preservation.similarity", Group(variety="AAVE", label="toxic"), "lossy|v:2")
    assert (found.n, found.n_missing) == (1, 1)


def lossy(texts: list[str]) -> list[list[float]]:
    """Everything points up, but for one text, which is nowhere."""
    return [[0.0, 0.0] if text == "AAVE text 2" else [1.0, 0.0] for text in texts]


# One command


def test_one_command_asks_gathers_scores_and_writes_the_page(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    secret = "SAE text"
    told = command(
        "audit", "--filter", "python", "--set", "python.function=test_audit_text:one", "--encoder", "test_audit_images:embed",
        "--prompts", runs / "prompts", "--unguarded", runs / "plain", "--guarded", runs / "sld",
        "--out", tmp_path / "audit", "--resamples", "20",
    )  # fmt: skip
    page = (tmp_path / "audit" / "report.html").read_text(encoding="utf-8")
    for anchor in ("audits", "scores", "categories", "wording", "checks", "images"):
        assert f'id="{anchor}"' in page, anchor
    for words in (
        "Over-censorship",
        "OCR of sld (guardrail: safe-latent-diffusion)",
        "0.15",
        "TBR",
        "Within-category baseline",
        "round_trip",
    ):
        assert words.lower() in page.lower(), words
    assert secret not in page, "no prompt stands on the page"
    assert secret not in told.stdout
    assert "scores in scores.json and scores.csv" in told.stdout
    assert page.count('class="plot plot-wide"') >= 4, "heat maps are drawn"
    record: Mapping[str, Any] = Run.open(str(tmp_path / "audit")).record
    assert str(tmp_path) not in str(record), "no path of this machine"
    assert record["arguments"]["given"]["guarded"] == ["sld"]
