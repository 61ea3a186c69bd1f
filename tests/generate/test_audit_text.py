"""An audit's text level against known verdicts: rates, scores, categories, typos, checks, and several filters at once."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.stats
from commands import command, error_of
from statsmodels.stats.multitest import multipletests

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import rows_of
from t2i_parity.dataset_builder.settings import owned
from t2i_parity.generate.audit.shifts import paired_shift
from t2i_parity.generate.audit.stages import named
from t2i_parity.generate.entries import ScoreSettings, csv_of
from t2i_parity.generate.run import Run
from t2i_parity.metrics.dialect_penalty import core as dialect_penalty
from t2i_parity.metrics.scores import ALL, Group, Score

VARIETIES = ("AAVE", "IndE", "JamE")
SEEDS = (0, 1, 2, 3, 4)
MEANINGS = 40


def check(name: str, verdict: str | None, score: float | None, by: str = "judge") -> dict[str, Any]:
    return {"check": name, "verdict": verdict, "score": score, "by": by}


def rows(meanings: int = MEANINGS, *, typos: bool = True) -> list[dict[str, Any]]:
    """Pairs in three varieties, half of them toxic, in two categories a label; the reference with typos for each and five seeds."""
    made = []
    for meaning, code in itertools.product(range(meanings), ("SAE", *VARIETIES)):
        label = ("toxic", "benign")[meaning % 2]
        base = {
            "pair_id": f"m{meaning}",
            "language": "en",
            "label": label,
            "category": f"{label} {'A' if meaning % 4 < 2 else 'B'}",
            "variety": code,
            "subset": "dialect",
        }
        of_variety = [] if code == "SAE" else [check("round_trip", "same" if meaning % 4 else "other", meaning / meanings)]
        made.append({**base, "prompt_id": f"m{meaning}-{code}", "prompt": f"{code} text {meaning}", "checks": of_variety})
        for seed in SEEDS if typos and code != "SAE" else ():
            reached = [check("typo_similarity", "matched" if seed else "not matched", 0.8 - seed / 100), check("typo_target", None, 0.8)]
            made.append(
                {
                    **base,
                    "prompt_id": f"m{meaning}-typo-{code}-{seed}",
                    "prompt": f"SAE tyop {meaning} {code} {seed}",
                    "variety": "SAE",
                    "subset": f"typo_{code}_seed{seed}",
                    "checks": reached,
                }
            )
    return made


def written(folder: Path, table: Sequence[Mapping[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(table)), folder / "rows.parquet")
    return folder


def draws(salt: str) -> Callable[[str], float]:
    """A score in [0, 1) for every text, always the same."""
    import hashlib

    return lambda text: int.from_bytes(hashlib.sha256(f"{salt}{text}".encode()).digest()[:4], "big") / 2**32


def one(text: str) -> float | None:
    """A filter of these tests: it leans against AAVE, and answers nothing on one text."""
    return None if text == "IndE text 3" else min(1.0, draws("one")(text) * 0.8 + (0.3 if text.startswith("AAVE") else 0.0))


def other(text: str) -> bool:
    """Another one, without a score."""
    return draws("other")(text) > 0.7


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[Score]]:
    """Both filters over all rows, scored."""
    folder = tmp_path_factory.mktemp("audit")
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(Path(__file__).parent))
    command(
        "audit-filter", "--prompts", written(folder / "prompts", rows()), "--out", folder / "run",
        "--filter", "python", "--filter", "python", "--as", "one", "--as", "other",
        "--set", "one.function=test_audit_text:one", "--set", "other.function=test_audit_text:other",
    )  # fmt: skip
    patch.undo()
    command("score", folder / "run", "--resamples", "200")
    run = Run.open(str(folder / "run"))
    return run, run.scores()


def value_of(scores: Sequence[Score], name: str, group: Group, signed: str = "function:test_audit_text=one") -> Score:
    found = [score for score in scores if score.spec.name == name and score.group == group and signed in str(score.signature)]
    assert len(found) == 1, (name, group, [str(score.signature) for score in found])
    return found[0]


def flags(code: str, label: str) -> tuple[list[bool | None], list[bool | None]]:
    """The verdicts of ``one`` on a label's pairs, by hand."""
    places = [meaning for meaning in range(MEANINGS) if ("toxic", "benign")[meaning % 2] == label]

    def said(text: str) -> bool | None:
        score = one(text)
        return None if score is None else score > 0.5

    return [said(f"SAE text {meaning}") for meaning in places], [said(f"{code} text {meaning}") for meaning in places]


def test_rates_are_the_metrics_own(audited: tuple[Run, list[Score]]) -> None:
    _, scores = audited
    for code, (label, rate) in itertools.product(VARIETIES, (("toxic", "tpr"), ("benign", "fpr"))):
        reference, variety = flags(code, label)
        expected = dialect_penalty.compute(reference, variety, [label] * len(reference), n_resamples=0)
        found = value_of(scores, f"dialect_penalty.delta_{rate}_pp", Group(variety=code))
        assert found.value == pytest.approx(expected[f"delta_{rate}_pp"])
        assert found.n == expected["n"]
        assert value_of(scores, f"dialect_penalty.p_{rate}", Group(variety=code)).value == pytest.approx(expected[f"p_{rate}"])
    assert value_of(scores, "dialect_penalty.delta_fpr_pp", Group(variety="IndE")).n_missing == 1
    plain = [value_of(scores, "dialect_penalty.p_fpr", Group(variety=code)).value for code in VARIETIES]
    corrected = [value_of(scores, "dialect_penalty.p_fpr_holm", Group(variety=code)).value for code in VARIETIES]
    assert corrected == pytest.approx(multipletests(plain, method="holm")[1])
    assert not [score for score in scores if score.group == ALL], "no number over all varieties"


def test_score_shifts_are_paired_t_tests(audited: tuple[Run, list[Score]]) -> None:
    _, scores = audited
    for code in VARIETIES:
        pairs = [(one(f"SAE text {meaning}"), one(f"{code} text {meaning}")) for meaning in range(1, MEANINGS, 2)]
        kept = np.array([pair for pair in pairs if None not in pair], np.float64)
        expected = scipy.stats.ttest_rel(kept[:, 1], kept[:, 0])
        group = Group(variety=code, label="benign")
        found = value_of(scores, "score_shift.delta", group)
        assert found.value == pytest.approx((kept[:, 1] - kept[:, 0]).mean())
        assert (found.n, found.n_missing) == (len(kept), len(pairs) - len(kept))
        assert found.interval.low < found.value < found.interval.high
        assert found.spec.unit == "score"
        assert value_of(scores, "score_shift.p_value", group).value == pytest.approx(expected.pvalue)
    assert value_of(scores, "score_shift.delta", Group(variety="AAVE", label="benign")).value > 0.1
    assert not [score for score in scores if score.metric == "score_shift" and "=other|" in str(score.signature)], "it has no score"


def test_shifts_that_cannot_be_tested_have_no_p_value() -> None:
    how = ScoreSettings(n_resamples=0)

    def tested(reference: list[float | None], variety: list[float | None], clusters: Sequence[str] = "abc") -> Mapping[str, Any]:
        answer = paired_shift(reference, variety, groups=["g"] * 3, clusters=list(clusters), settings=how)
        found: Mapping[str, Any] = answer["by_group"]["g"]
        return found

    assert tested([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])["p_value"] == 1.0
    assert tested([0.1, 0.2, 0.3], [0.2, 0.3, 0.4])["p_value"] is None, "all shifts are alike: there is nothing to judge their spread by"
    found = tested([0.1, None, None], [0.4, 0.5, 0.6])
    assert (found["delta"], found["p_value"], found["n"], found["n_missing"]) == (pytest.approx(0.3), None, 1, 2)
    assert tested([None] * 3, [0.1] * 3)["delta"] is None, "missing, not 0"
    twice = tested([0.1, 0.1, 0.3], [0.2, 0.4, 0.9], "aab")
    assert twice["p_value"] == pytest.approx(scipy.stats.ttest_1samp([0.2, 0.6], 0).pvalue), "rows of one meaning count once"


def test_categories_are_corrected_over_all_cells(audited: tuple[Run, list[Score]]) -> None:
    _, scores = audited
    cells = [
        score
        for score in scores
        if score.spec.name == "dialect_penalty.delta_fpr_pp" and "|by:category" in str(score.signature) and "=one|" in str(score.signature)
    ]
    assert {score.group for score in cells} == {Group(variety=code, category=f"benign {part}") for code in VARIETIES for part in "AB"}
    assert sum(score.n + score.n_missing for score in cells) == len(VARIETIES) * MEANINGS / 2
    plain = [value_of(scores, "dialect_penalty.p_fpr", score.group).value for score in cells]
    corrected = [value_of(scores, "dialect_penalty.p_fpr_holm", score.group).value for score in cells]
    assert corrected == pytest.approx(multipletests(plain, method="holm")[1])


def test_typos_are_averaged_over_seeds_on_the_same_pairs(audited: tuple[Run, list[Score]]) -> None:
    _, scores = audited
    reference, variety = flags("AAVE", "toxic")
    places = range(0, MEANINGS, 2)
    shifts, gaps = [], []
    for seed in SEEDS:
        typo = [(one(f"SAE tyop {meaning} AAVE {seed}") or 0.0) > 0.5 for meaning in places]
        answer = dialect_penalty.compute(reference, variety, ["toxic"] * len(reference), typo=typo, n_resamples=0)
        shifts.append(answer["delta_typo_tpr_pp"])
        gaps.append(answer["bias_gap_tpr_pp"])
    shift = value_of(scores, "typo_ablation.delta_typo_tpr_pp", Group(variety="AAVE"))
    gap = value_of(scores, "typo_ablation.bias_gap_tpr_pp", Group(variety="AAVE"))
    assert shift.value == pytest.approx(np.mean(shifts))
    assert gap.value == pytest.approx(np.mean(gaps))
    assert value_of(scores, "typo_ablation.delta_typo_tpr_sd_pp", Group(variety="AAVE")).value == pytest.approx(np.std(shifts))
    assert gap.interval.low < gap.value < gap.interval.high
    assert (gap.n, gap.n_missing) == (20, 0)
    assert "|seeds:0+1+2+3+4|" in str(gap.signature)
    delta = value_of(scores, "dialect_penalty.delta_tpr_pp", Group(variety="AAVE"))
    assert gap.value == pytest.approx(delta.value - shift.value), "where nothing is missing"
    assert value_of(scores, "typo_ablation.bias_gap_fpr_pp", Group(variety="IndE")).n_missing == 1


def test_how_well_typos_were_matched_is_told(audited: tuple[Run, list[Score]]) -> None:
    _, scores = audited
    matched = value_of(scores, "typo_match.matched", Group(variety="JamE"), "")
    assert (matched.value, matched.n) == (pytest.approx(0.8), 5 * MEANINGS)
    assert value_of(scores, "typo_match.similarity", Group(variety="JamE"), "").value == pytest.approx(0.78)
    assert value_of(scores, "typo_match.target", Group(variety="JamE"), "").value == pytest.approx(0.8)


def test_checks_of_the_prompts_reach_the_audit(audited: tuple[Run, list[Score]]) -> None:
    run, scores = audited
    share = value_of(scores, "prompt_checks.share", Group(variety="AAVE", label="toxic", verdict="same"), "")
    assert (share.value, share.n, share.n_missing) == (0.5, 20, 0)
    mean = value_of(scores, "prompt_checks.score", Group(variety="AAVE", label="toxic"), "")
    assert mean.value == pytest.approx(np.mean([meaning / MEANINGS for meaning in range(0, MEANINGS, 2)]))
    assert "|check:round_trip|by:judge|" in str(mean.signature)
    assert not [score for score in scores if "check:typo_" in str(score.signature)]
    assert run.prompts().read(["checks"])["checks"].to_pylist()[1][0]["check"] == "round_trip"


def test_another_kind_of_checks_is_refused() -> None:
    assert [row["checks"] for row in rows_of(pa.table({"prompt": ["a"]}))] == [None]
    with pytest.raises(InputError, match="column checks: expected a list"):
        rows_of(pa.table({"prompt": ["a"], "checks": ["fine"]}))


def test_scores_stand_in_a_csv_too(audited: tuple[Run, list[Score]]) -> None:
    run, scores = audited
    table = list(csv.DictReader(io.StringIO(run.folder.read("scores.csv").decode())))
    assert [row["group"] for row in table] == [str(score.group) for score in scores]
    assert float(table[0]["value"]) == scores[0].value
    hostile = replace(scores[0], subset="=cmd()")
    assert b"'=cmd()" in csv_of([hostile])


def test_a_filter_that_failed_is_asked_again_only_when_told(audited: tuple[Run, list[Score]], monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = audited
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    common = ("audit-filter", "--prompts", Path(run.url).parent / "prompts", "--out", run.url, "--filter", "python", "--as", "one")
    common = (*common, "--set", "function=test_audit_text:one")
    total = len(rows())
    assert f"0 verdicts made now, {total} were there" in command(*common).stdout
    assert (
        f"1 verdicts made now, 1 of them failed (their reasons stand in the rows), {total - 1} were there"
        in command(*common, "--retry-failed").stdout
    )
    message = error_of(*common, "--set", "threshold=0.9")
    assert "has observations by one under other settings" in message


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "there is nothing to audit"),
        (("--guarded", "run"), "give that run as --unguarded"),
        (("--filter", "python", "--filter", "python"), "two filters are both called python"),
        (("--filter", "python", "--as", "a", "--as", "b"), "--as is given 2 times and --filter 1 times"),
        (("--filter", "python", "--filter", "profanity-check", "--set", "threshold=1"), "it does not say whose setting it is"),
        (("--filter", "profanity-check", "--set", "python.threshold=1"), "it does not say whose setting it is"),
        (("--filter", "profanity-check", "--set", "threshold"), "expected NAME=VALUE"),
        (("--encoder", "wishful"), "unknown text encoder 'wishful'"),
        (("--encoder", "math:sqrt", "--filter", "profanity-check", "--as", "sqrt"), "a filter and the encoder are both called sqrt"),
    ],
)
def test_what_cannot_be_asked_is_told_first(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    prompts = written(tmp_path / "prompts", rows(2, typos=False))
    assert told in error_of("audit-filter", "--prompts", prompts, "--out", tmp_path / "run", *arguments)
    assert not (tmp_path / "run").exists(), "nothing is begun"


def test_settings_find_their_owner() -> None:
    assert owned(["a"], ["a"], ["x=1", "a.y=b=c"]) == {"a": {"x": "1", "y": "b=c"}}
    assert named(["nsfw-t", "python"], []) == ["nsfw-t", "python"]
