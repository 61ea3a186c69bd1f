"""Repairing a filter: its data, its objective, and the whole command on a task where plain training fails the worst group."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import PROGRAM, command, error_of
from mitigation_task import VARIETIES, meanings, prompts_folder, small_distilbert

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import load_prompts
from t2i_parity.dataset_builder.schema import PAIRED
from t2i_parity.generate.mitigate import METHODS, Method
from t2i_parity.generate.mitigate.data import composed, every_variety, group_sizes, material, split
from t2i_parity.generate.mitigate.group_dro import first_weights, group_losses, next_weights
from t2i_parity.generate.mitigate.sweep import planned
from t2i_parity.generate.mitigate.train import TrainingSettings, _trainer_class

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

QUICK = ("--set", "learning_rate=3e-3", "--set", "device=cpu", "--test", "0.2")


# Data


def test_no_meaning_stands_in_two_parts_and_labels_keep_their_shares(prompts: Path) -> None:
    found = material(load_prompts(str(prompts), "dialect").need(PAIRED).table.to_pylist())
    assert found.varieties == VARIETIES
    assert len(found.groups) == 12
    assert (found.groups[0], found.groups[6]) == ("benign SAE", "toxic SAE")
    parts = split(found.meanings, test=0.1, validation=0.1, seed=0)
    ids = [{meaning.pair_id for meaning in part} for part in (parts.train, parts.validation, parts.test)]
    assert not ids[0] & ids[1]
    assert not ids[0] & ids[2]
    assert not ids[1] & ids[2]
    assert sum(map(len, ids)) == len(found.meanings) == 180
    assert Counter(meaning.label for meaning in parts.test) == {0: 12, 1: 6}
    assert parts != split(found.meanings, test=0.1, validation=0.1, seed=1)


def test_meanings_of_one_text_stay_together() -> None:
    some = meanings(60)
    twins = [type(meaning)(f"twin-{meaning.pair_id}", meaning.label, meaning.texts) for meaning in some]
    parts = split([*some, *twins], test=0.3, validation=0.2, seed=3)
    part_of = {meaning.pair_id: place for place, part in enumerate((parts.train, parts.validation, parts.test)) for meaning in part}
    assert all(part_of[meaning.pair_id] == part_of[f"twin-{meaning.pair_id}"] for meaning in some)


def test_the_number_of_rows_is_that_of_the_reference_alone_and_smaller_shares_lie_in_larger_ones() -> None:
    some = meanings(400)
    by_share = {share: composed(some, VARIETIES, share=share, seed=5) for share in (0.0, 0.025, 0.1, 5 / 6)}
    for rows in by_share.values():
        assert [row.pair_id for row in rows] != []
        assert sorted(row.pair_id for row in rows) == sorted(meaning.pair_id for meaning in some)
    assert group_sizes(by_share[0.0], 12) == [200, 0, 0, 0, 0, 0] * 2
    assert group_sizes(by_share[0.025], 12) == [195, 1, 1, 1, 1, 1] * 2
    balanced = group_sizes(by_share[5 / 6], 12)
    assert max(balanced) - min(balanced) <= 1
    moved = [{(row.pair_id, row.variety) for row in by_share[share] if row.variety != "SAE"} for share in (0.025, 0.1, 5 / 6)]
    assert moved[0] < moved[1] < moved[2]
    assert by_share[0.1] != composed(some, VARIETIES, share=0.1, seed=6)


def test_meanings_that_lack_a_variety_and_rows_with_typos_are_left_out() -> None:
    rows = [
        {"prompt_id": f"{meaning.pair_id}-{variety}", "pair_id": meaning.pair_id, "prompt": text, "language": "en", "variety": variety,
         "label": ("benign", "toxic")[meaning.label], "subset": "dialect", "derivation": "dialect_converted"}
        for meaning in meanings(12) for variety, text in meaning.texts.items()
    ]  # fmt: skip
    found = material(rows[:-1])
    assert (len(found.meanings), found.incomplete) == (11, 1)
    with pytest.raises(InputError, match="fewer than three toxic ones stand in each of SAE, AAVE"):
        material([row for row in rows if row["label"] == "benign" or row["variety"] in ("SAE", "AAVE")])


# The objective


def test_weights_by_hand() -> None:
    # exp(0.5 · [2, 0, 1]) over uniform weights: e, 1 and √e over their sum.
    total = math.e + 1 + math.sqrt(math.e)
    assert np.allclose(next_weights([1 / 3] * 3, [2, 0, 1], step_size=0.5), [math.e / total, 1 / total, math.sqrt(math.e) / total])
    # With C = 1 and groups of 4 and 1 rows, losses 0.2 and 0.1 count as 0.7 and 1.1.
    adjusted = next_weights([0.5, 0.5], [0.2, 0.1], step_size=1.0, sizes=[4, 1], adjustment=1.0)
    assert np.allclose(adjusted, [1 / (1 + math.exp(0.4)), math.exp(0.4) / (1 + math.exp(0.4))])
    assert np.allclose(next_weights([0.5, 0.5], [1e6, 1e6], step_size=1.0), [0.5, 0.5]), "large losses do not overflow"
    assert np.allclose(next_weights(first_weights([5, 0, 5]), [0.0, 9.0, 0.0], step_size=1.0), [0.5, 0.0, 0.5])
    with pytest.raises(ValueError, match="expected the sizes"):
        next_weights([1.0], [0.0], step_size=1.0, adjustment=1.0)


def test_group_losses_by_hand() -> None:
    import torch

    losses = torch.tensor([1.0, 3.0, 5.0], requires_grad=True)
    found = group_losses(losses, torch.tensor([0, 0, 2]), 4)
    assert found.tolist() == [2.0, 0.0, 5.0, 0.0]
    (found * torch.tensor([0.5, 0.0, 0.25, 0.25])).sum().backward()
    assert losses.grad is not None
    assert losses.grad.tolist() == [0.25, 0.25, 0.25]


@pytest.mark.parametrize("adjustment", [0.0, 0.7])
def test_group_dro_is_that_of_an_independent_implementation(adjustment: float) -> None:
    """Logistic regression by GroupDRO: once with our two functions in torch, once in numpy from the paper's algorithm, gradient and all."""
    import torch

    rng = np.random.default_rng(1)
    n, eta, rate = 240, 0.3, 0.3
    group = rng.choice(4, n, p=[0.6, 0.25, 0.1, 0.05])
    label = (group >= 2).astype(float)
    data = np.column_stack([rng.normal(2 * label - 1, 1.0), rng.normal(np.where(group % 2, 1, -1) * (2 * label - 1), 0.3), np.ones(n)])
    sizes = np.bincount(group, minlength=4)

    theirs, q = np.zeros(3), np.full(4, 0.25)
    ours = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    weights = first_weights(sizes.tolist())
    for step in range(60):
        batch = np.random.default_rng(step).choice(n, 32)
        # Independent: one pass a group, exponent and gradient written out.
        gradient, losses = np.zeros(3), np.zeros(4)
        slopes = np.zeros((4, 3))
        for g in range(4):
            here = [row for row in batch if group[row] == g]
            for row in here:
                p = 1 / (1 + math.exp(-float(data[row] @ theirs)))
                losses[g] -= (label[row] * math.log(p) + (1 - label[row]) * math.log(1 - p)) / len(here)
                slopes[g] += (p - label[row]) * data[row] / len(here)
        for g in range(4):
            q[g] = q[g] * math.exp(eta * (losses[g] + adjustment / math.sqrt(sizes[g])))
        q /= q.sum()
        for g in range(4):
            gradient += q[g] * slopes[g]
        theirs = theirs - rate * gradient

        rows = torch.as_tensor(data[batch])
        each = torch.nn.functional.binary_cross_entropy_with_logits(rows @ ours, torch.as_tensor(label[batch]), reduction="none")
        of_groups = group_losses(each, torch.as_tensor(group[batch]), 4)
        weights = next_weights(weights, of_groups.detach().numpy(), step_size=eta, sizes=sizes.tolist(), adjustment=adjustment)
        (of_groups * torch.as_tensor(weights)).sum().backward()
        with torch.no_grad():
            assert ours.grad is not None
            ours -= rate * ours.grad
            ours.grad.zero_()
    assert np.allclose(weights, q, atol=1e-10)
    assert np.allclose(ours.detach().numpy(), theirs, atol=1e-10)
    assert q.max() > 0.3, "the weights must have moved, or this shows nothing"


# The command


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prompts of the task, and its small encoder."""
    folder = tmp_path_factory.mktemp("mitigation")
    prompts_folder(folder / "prompts", 600)
    prompts_folder(folder / "few", 60)
    small_distilbert(folder / "base")
    return folder


@pytest.fixture(scope="module")
def swept(task: Path) -> Path:
    """A sweep over every method, with its output beside it."""
    out = task / "sweep"
    began = time.monotonic()
    done = command(
        "mitigate", "--model", task / "base", "--prompts", task / "prompts", "--config", "", "--ratios", "95,100", "--seeds", "1",
        "--set", "epochs=5", "--set", "step_size=0.05", *QUICK, "--out", out,
    )  # fmt: skip
    assert time.monotonic() - began < 300
    (task / "stdout.txt").write_text(done.stdout)
    return out


def cells(out: Path) -> dict[str, dict[str, object]]:
    return {row["cell_id"]: row for file in sorted(out.glob("cells/part-*.parquet")) for row in pq.read_table(file).to_pylist()}


def test_plain_training_fails_the_worst_group_and_balance_or_group_dro_repairs_it(swept: Path) -> None:
    found = cells(swept)
    assert set(found) == {"erm-95-0", "group-balanced-95-0", "groupdro-95-0", "erm-100-0", "balanced-0"}
    worst = {name: float(str(row["worst_group_accuracy"])) for name, row in found.items()}
    assert worst["erm-95-0"] < 0.5
    assert worst["erm-100-0"] < 0.5
    for name in ("group-balanced-95-0", "groupdro-95-0", "balanced-0"):
        assert worst[name] > 0.6, worst
        assert float(str(found[name]["fpr_gap_pp"])) < float(str(found["erm-95-0"]["fpr_gap_pp"])) / 2
    assert str(found["erm-95-0"]["worst_group"]).startswith("benign ")
    for row in found.values():
        groups = row["groups"]
        assert isinstance(groups, list)
        assert sum(group["train_rows"] for group in groups) == 432, "every training set is as large as that of the reference alone"
        assert row["n_test"] == 120 * 6
        weights = [group["weight"] for group in groups]
        assert (None not in weights) == (row["method"] == "groupdro")
    assert math.isclose(sum(group["weight"] for group in found["groupdro-95-0"]["groups"]), 1, abs_tol=1e-9)  # type: ignore[attr-defined]


def test_the_table_has_the_layout_of_the_study(task: Path, swept: Path) -> None:
    shown = (task / "stdout.txt").read_text()
    head = next(line for line in shown.splitlines() if "Algorithm" in line)
    assert [part.strip() for part in head.strip("┃").split("┃")] == [
        "SAE ratio", "Algorithm", "Mean acc. (%)", "Worst group (%)", "|ΔTPR| (pp)", "|ΔFPR| (pp)", "n",
    ]  # fmt: skip
    rows = [[part.strip() for part in line.strip("│").split("│")][:2] for line in shown.splitlines() if line.startswith("│")]
    assert rows == [["95.0 %", "ERM"], ["", "ERM + balanced sampling"], ["", "GroupDRO"], ["100.0 %", "ERM"], ["Balanced data", "ERM"]]
    card = (swept / "README.md").read_text()
    assert f"| 95.0 % | ERM | {100 * float(str(cells(swept)['erm-95-0']['accuracy'])):.2f} |" in card
    plot = (swept / "mitigation.svg").read_text()
    assert plot.count("<title>") == 2 * 5, "a mark of each panel says its numbers"
    assert "95.0 %, GroupDRO: " in plot


def test_the_kept_filter_is_taken_by_the_audit_on_prompts_it_has_not_seen(task: Path, swept: Path) -> None:
    told = re.search(r"kept: (\S+) in", (task / "stdout.txt").read_text())
    assert told is not None
    row = cells(swept)[told[1]]
    best = max(float(str(each["validation_worst_group_accuracy"])) for each in cells(swept).values())
    assert row["validation_worst_group_accuracy"] == best
    audit = task / "audit"
    command("audit-filter", "--filter", "transformers", "--set", f"model={swept / 'filter'}", "--prompts", swept / "test", "--out", audit)
    verdicts = pq.read_table(audit / "observations" / "transformers").to_pylist()
    asked = {one["prompt_id"]: one for one in pq.read_table(audit / "prompts").to_pylist()}
    assert len(verdicts) == row["n_test"]
    right = np.mean([one["flagged"] == (asked[one["prompt_id"]]["label"] == "toxic") for one in verdicts])
    assert math.isclose(float(right), float(str(row["accuracy"])))
    assert "library_name: transformers" in (swept / "filter" / "README.md").read_text()
    assert str(task) not in (swept / "run.json").read_text() + (swept / "README.md").read_text(), "a machine's path is no part of a record"


def test_what_is_there_is_not_made_again_and_a_sweep_can_grow(task: Path, swept: Path) -> None:
    before = cells(swept)
    more = ("--model", task / "base", "--prompts", task / "prompts", "--config", "", "--set", "epochs=5", "--set", "step_size=0.05", *QUICK)
    done = command("mitigate", *more, "--ratios", "95", "--methods", "erm", "--seeds", "2", "--out", swept)
    assert "1 cells made now, 1 were there" in done.stdout
    after = cells(swept)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"erm-95-1"}
    assert "± " in done.stdout
    assert "kept: " in done.stdout, "the filter of the first sweep still stands"
    assert "training.epochs: 5 there, 6 asked" in error_of(
        "mitigate", "--model", task / "base", "--prompts", task / "prompts", "--config", "", "--set", "epochs=6", "--set", "step_size=0.05",
        *QUICK, "--out", swept,
    )  # fmt: skip


def test_a_kill_costs_the_cell_at_hand_and_the_same_seed_gives_the_same_numbers(task: Path, tmp_path: Path) -> None:
    arguments = [
        "mitigate", "--model", task / "base", "--prompts", task / "few", "--config", "", "--ratios", "80", "--methods", "groupdro",
        "--set", "epochs=4", *QUICK,
    ]  # fmt: skip
    out = tmp_path / "killed"
    words = [str(word) for word in [*arguments, "--seeds", 6, "--out", out]]
    process = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip  # noqa: E501
    deadline = time.monotonic() + 120
    while not list(out.glob(".journal/cells/batch-*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {row["cell_id"]: row for file in out.glob(".journal/cells/batch-*.parquet") for row in pq.read_table(file).to_pylist()}
    assert 0 < len(finished) < 6, "the kill must come amid the sweep"
    done = command(*arguments, "--seeds", 6, "--out", out)
    assert f"{6 - len(finished)} cells made now, {len(finished)} were there" in done.stdout
    after = cells(out)
    assert len(after) == 6
    assert {name: after[name] for name in finished} == finished
    assert not list(out.glob(".tmp-*"))
    assert not list(out.glob(".candidates/*"))
    command(*arguments, "--seeds", 1, "--keep", "none", "--out", tmp_path / "again")
    (again,) = cells(tmp_path / "again").values()
    same = ("accuracy", "worst_group_accuracy", "tpr_gap_pp", "fpr_gap_pp", "epochs", "objective", "validation_loss", "groups")
    assert {name: again[name] for name in same} == {name: after["groupdro-80-0"][name] for name in same}
    assert not (tmp_path / "again" / "filter").exists()


def test_a_classifier_keeps_its_labels_and_is_measured_as_given(task: Path, tmp_path: Path) -> None:
    """One whose first label blocks: were the labels taken the wrong way round, a trained filter would be wrong everywhere."""
    given = small_distilbert(tmp_path / "given", ("LABEL_0", "LABEL_1"))
    arguments = ["mitigate", "--model", given, "--prompts", task / "prompts", "--config", "", "--methods", "balanced", "--seeds", 1, *QUICK]
    assert "it is not plain which of its labels mean that a text is unsafe" in error_of(*arguments, "--out", tmp_path / "none")
    done = command(*arguments, "--set", "unsafe=LABEL_0", "--set", "epochs=3", "--out", tmp_path / "out")
    found = cells(tmp_path / "out")
    assert set(found) == {"as-given", "balanced-0"}
    assert float(str(found["balanced-0"]["accuracy"])) > 0.9
    assert float(str(found["as-given"]["accuracy"])) < 0.9
    assert json.loads((tmp_path / "out" / "filter" / "config.json").read_text())["id2label"] == {"0": "toxic", "1": "benign"}
    assert re.search(r"As given +│ no training", done.stdout)
    three = small_distilbert(tmp_path / "three", ("a", "b", "c"))
    assert "Give it a new head: --set head=new" in error_of(
        "mitigate", "--model", three, "--prompts", task / "prompts", "--config", "", "--out", tmp_path / "none"
    )


def test_batches_hold_each_group_equally_often() -> None:
    import torch
    from torch.utils.data import WeightedRandomSampler

    rows = composed(meanings(400), VARIETIES, share=0.05, seed=0)
    sizes = group_sizes(rows, 12)
    made = _trainer_class().__new__(_trainer_class())
    made.train_dataset = [{"groups": row.group} for row in rows]
    made.data_collator = list
    counts = {}
    for how in METHODS.all()[:2]:
        made.begin(how, sizes, TrainingSettings(batch_size=400), seed=0)
        loader = made.get_train_dataloader()
        assert isinstance(loader.sampler, WeightedRandomSampler) == how.balanced_batches
        drawn = Counter(row["groups"] for _ in range(30) for batch in loader for row in batch)
        counts[how.name] = np.array([drawn[group] for group in range(12)]) / 12_000
    assert np.allclose(counts["erm"], np.array(sizes) / 400)
    # 1000 draws expected of each group; their standard deviation is 30.
    assert np.abs(counts["group-balanced"] - 1 / 12).max() < 0.0125
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("method", METHODS.all(), ids=lambda method: method.name)
def test_training_takes_the_objective_of_its_method(method: Method) -> None:
    """Two rows of group 0 and one of group 3: by hand, beside what the trainer computes."""
    import torch

    logits = torch.tensor([[2.0, 0.0], [0.0, 0.0], [0.0, 1.0]], requires_grad=True)

    class Model:
        training = True

        def __call__(self, input_ids: object) -> object:
            return type("Outputs", (), {"logits": logits})

    made = _trainer_class().__new__(_trainer_class())
    sizes = [6, 0, 0, 2]
    made.begin(method, sizes, TrainingSettings(step_size=0.5, adjustment=0.3), seed=0)
    inputs = {"input_ids": torch.zeros(3, 1), "labels": torch.tensor([1, 0, 1]), "groups": torch.tensor([0, 0, 3])}
    rows = [math.log(1 + math.exp(2)), math.log(2), math.log(1 + math.exp(-1))]
    found = float(made.compute_loss(Model(), inputs).detach())
    if not method.robust:
        assert math.isclose(found, sum(rows) / 3, rel_tol=1e-6)
        return
    of_groups = [(rows[0] + rows[1]) / 2, rows[2]]
    grown = [math.exp(0.5 * (loss + 0.3 / math.sqrt(size))) for loss, size in zip(of_groups, (6, 2), strict=True)]
    weights = [each / sum(grown) for each in grown]
    assert math.isclose(found, sum(weight * loss for weight, loss in zip(weights, of_groups, strict=True)), rel_tol=1e-6)
    assert np.allclose(made.weights, [weights[0], 0, 0, weights[1]])
    Model.training = False
    assert math.isclose(float(made.compute_loss(Model(), inputs).detach()), sum(rows) / 3, rel_tol=1e-6), "validation weighs rows alike"
    assert np.allclose(made.weights, [weights[0], 0, 0, weights[1]])


def test_a_sweep_has_the_study_s_seventeen_rows_and_every_variety_is_measured() -> None:
    plan = planned(METHODS.all(), [97.5, 98, 98.5, 99, 99.5, 100], 10, as_given=False)
    assert len({(cell.method, cell.ratio) for cell in plan}) == 17
    assert len({cell.identity for cell in plan}) == 170
    assert [cell.method for cell in plan if cell.ratio == 100] == ["erm"] * 10
    assert len(every_variety(meanings(4), VARIETIES)) == 24


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--methods", "erm,reweight"), "unknown method 'reweight': expected one of erm, group-balanced, groupdro, balanced"),
        (("--ratios", "97.5,101"), "'101' is no per cent of rows in SAE"),
        (("--varieties", "AAVE,BrE"), "these prompts have no 'BrE'; expected some of AAVE, ChcE, CollSgE, IndE, JamE"),
        (("--set", "rate=1"), "mitigate has no setting 'rate'; it takes: epochs, patience"),
        (("--set", "learning_rate=0"), "--set learning_rate=0: Input should be greater than 0"),
        (("--keep", "best@99"), "unknown method 'best'"),
        (("--model", "no-such-folder-or-model"), "--model no-such-folder-or-model: it could not be loaded"),
        (("--out", "memory://sweep"), "the folder must be on a disk"),
    ],
)
def test_what_cannot_be_is_told(task: Path, tmp_path: Path, more: tuple[str, ...], told: str) -> None:
    given = ("--model", task / "base", "--prompts", task / "few", "--config", "", "--out", tmp_path / "out")
    assert told in error_of("mitigate", *given, *more)
    assert not (tmp_path / "out").exists()


def test_training_that_diverges_is_a_row_that_says_so(task: Path, tmp_path: Path) -> None:
    arguments = [
        "mitigate", "--model", task / "base", "--prompts", task / "few", "--config", "", "--methods", "erm", "--ratios", "90", "--seeds", 1,
        "--set", "device=cpu", "--set", "epochs=2", "--set", "learning_rate=1e30", "--out", tmp_path / "out",
    ]  # fmt: skip
    done = command(*arguments)
    (row,) = cells(tmp_path / "out").values()
    assert row["status"] == "failed"
    assert "no finite number" in str(row["reason"])
    assert row["accuracy"] is None
    assert "1 cells made now, 1 of them failed" in done.stdout
    assert "0 (1 failed)" in done.stdout
    assert not (tmp_path / "out" / "filter").exists()
