"""A vision-language model in this process: its answers alone and in a batch, and every judge over it through the real commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command, error_of
from judged_runs import content_run
from PIL import Image

from t2i_parity.dataset_builder.chat import ChatImage, ChatRequest, Completion, ask
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.backends.vlm import encoded
from t2i_parity.generate.run import Run
from t2i_parity.metrics.scores import Group
from t2i_parity.metrics.trigscore import core as trigscore

pytest.importorskip("transformers")
pytest.importorskip("torchvision")

SMALL = {"min_pixels": 56 * 56, "max_pixels": 112 * 112, "device": "cpu"}
SETTINGS = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]


@pytest.fixture(scope="module")
def vlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from small_vlm import qwen2_5_vl

    torch.set_num_threads(1)
    return qwen2_5_vl(tmp_path_factory.mktemp("models") / "small-vlm")


@pytest.fixture(scope="module")
def local(vlm: Path) -> Any:
    from t2i_parity.generate.backends.local_vlm import LocalVlm

    return LocalVlm(str(vlm), **SMALL)


@pytest.fixture(scope="module")
def run(prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six images of words in three languages."""
    out = tmp_path_factory.mktemp("runs") / "run"
    command(
        "generate", "--model", "glyph", "--prompts", prompts, "--config", "lingt2i_text", "--languages", "en,hi,zh", "--limit", 6,
        "--out", out,
    )  # fmt: skip
    return str(out)


def pictures(count: int) -> list[ChatImage]:
    """Noise in many sizes."""
    made = []
    for number in range(count):
        size = (40 + 17 * (number % 5), 60 + 23 * (number % 7), 3)
        made.append(encoded(Image.fromarray(np.random.default_rng(number).integers(0, 256, size, dtype=np.uint8))))
    return made


def questions(count: int, **how: Any) -> list[ChatRequest]:
    """Requests whose texts and pictures differ in length."""
    return [
        ask("rate it " * (1 + number % 4), system="Be brief.", images=[picture], **how) for number, picture in enumerate(pictures(count))
    ]


def observations(run: str, judge: str) -> list[dict[str, Any]]:
    return Run.open(run).observations(judge).read().to_pylist()


# The model


def test_a_batch_of_one_equals_a_batch_of_sixteen(local: Any) -> None:
    asked = questions(16, max_tokens=6, top_logprobs=5)
    together = local.complete(asked)
    alone = [local.complete([request])[0] for request in asked]
    for one, other in zip(together, alone, strict=True):
        assert one.text == other.text
        assert one.usage == other.usage
        for token, same in zip(one.tokens, other.tokens, strict=True):
            assert token.text == same.text
            assert np.allclose([each for _, each in token.top], [each for _, each in same.top], atol=1e-4, rtol=0)
    whole = local.next_token_logprobs(asked)
    single = np.concatenate([local.next_token_logprobs([request]) for request in asked])
    assert whole.dtype == np.float32
    assert np.abs(whole - single).max() < 1e-4
    assert np.allclose(np.exp(whole.astype(np.float64)).sum(axis=1), 1, atol=1e-5)
    assert np.abs(whole[0] - whole[5]).max() > 0.01, "the picture matters"


def test_what_is_generated_has_the_probabilities_of_the_logits(local: Any) -> None:
    asked = questions(3, max_tokens=1, top_logprobs=400)
    logprobs = local.next_token_logprobs(asked)
    for answer, row in zip(local.complete(asked), logprobs, strict=True):
        assert isinstance(answer, Completion)
        assert answer.tokens is not None
        values = [value for _, value in answer.tokens[0].top]
        assert values == sorted(values, reverse=True)
        assert np.allclose(values, np.sort(row)[::-1], atol=1e-4)
        assert answer.tokens[0].logprob == pytest.approx(float(row.max()), abs=1e-4)


def test_chosen_words(local: Any) -> None:
    asked = questions(2)
    found = local.logprobs_of(asked, ["Yes", "No"])
    ids = [local._tokenizer.encode(word)[0] for word in ("Yes", "No")]
    assert found.tolist() == local.next_token_logprobs(asked)[:, ids].tolist()
    assert local.logprobs_of([], ["Yes", "No"]).shape == (0, 2)
    with pytest.raises(InputError, match="'terrible' and 'terrific' with the same token, 'terr'"):
        local.logprobs_of(asked, ["terrible", "terrific"])


def test_an_answer_is_cut_at_its_end_and_sampling_has_a_seed(local: Any) -> None:
    eos = local._tokenizer.eos_token_id
    answers = local.complete(questions(16, max_tokens=12, temperature=1.5, seed=5))
    again = local.complete(questions(16, max_tokens=12, temperature=1.5, seed=5)[8:])
    assert [answer.text for answer in answers[8:]] == [answer.text for answer in again], "the place in a batch does not matter"
    assert len({answer.text for answer in answers}) > 8
    for answer in answers:
        assert isinstance(answer, Completion)
        assert answer.usage is not None
        assert answer.finish in ("stop", "length")
        assert (answer.finish == "length") == (answer.usage.output_tokens == 12 and eos not in local._tokenizer.encode(answer.text))


def test_conversations_and_texts_without_pictures(local: Any) -> None:
    first = ask("hello", max_tokens=3)
    answers = local.complete([first, first.then("an answer", "again"), questions(1, max_tokens=3)[0]])
    assert all(isinstance(answer, Completion) for answer in answers)
    assert answers[1].usage.input_tokens > answers[0].usage.input_tokens


def test_pixels_are_bounded(vlm: Path, local: Any) -> None:
    from t2i_parity.generate.backends.local_vlm import LocalVlm

    asked = ask("what?", images=[encoded(Image.new("RGB", (400, 400), "teal"))], max_tokens=1)
    small = local.complete([asked])[0].usage.input_tokens
    large = LocalVlm(str(vlm), **(SMALL | {"max_pixels": 224 * 224})).complete([asked])[0].usage.input_tokens
    assert large - small == 8 * 8 - 4 * 4, "one visual token for each 28 × 28 pixels"


def test_judges_of_one_pass_share_the_weights(vlm: Path) -> None:
    import gc

    from t2i_parity.generate.backends import local_vlm
    from t2i_parity.generate.judges import load

    options = {name: str(value) for name, value in SMALL.items()} | {"model": str(vlm)}
    first, second = load("text-quality", options), load("text-aesthetics", options)
    assert first.chat is second.chat
    assert load("culture", options | {"max_pixels": "50176"}).chat is not first.chat
    del first, second
    gc.collect()
    assert len(local_vlm._LOADED) == 0, "and let them go"


def test_what_does_not_load_is_told(vlm: Path, tmp_path: Path) -> None:
    from t2i_parity.generate.backends.local_vlm import LocalVlm

    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no config\.json"):
        LocalVlm(str(tmp_path / "empty"))
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "no-such-model"}')
    with pytest.raises(InputError, match="did not load as a vision-language model"):
        LocalVlm(str(tmp_path / "empty"))
    with pytest.raises(InputError, match="neither a folder nor a model that the hub gave"):
        LocalVlm("nobody/nothing")
    with pytest.raises(InputError, match="min_pixels"):
        LocalVlm(str(vlm), min_pixels=112 * 112, max_pixels=56 * 56)


# The judges


def test_ratings_of_rendered_text_become_scores_of_their_own(run: str, vlm: Path) -> None:
    for judge in ("text-quality", "text-aesthetics"):
        command("judge", run, "--with", judge, "--set", f"model={vlm}", *SETTINGS)
    command("score", run, "--tokenizer", "tekken", "--resamples", 20)
    quality, aesthetics = observations(run, "text-quality"), observations(run, "text-aesthetics")
    assert len(quality) == 6
    rated = [row for row in quality if row["status"] == "ok"]
    assert rated, "twenty of the small model's 300 tokens hold a rating word now and then"
    for row in quality:
        if row["status"] == "ok":
            assert len(row["rating_tokens"]) == len(row["rating_logprobs"]) > 5
            assert row["rating_logprobs"] == sorted(row["rating_logprobs"], reverse=True)
            assert (row["attempts"], row["cost"]) == (1, None)
            assert row["input_tokens"] > 100
        else:
            assert "no rating word among" in row["reason"]
    assert {row["judge"] for row in quality} != {row["judge"] for row in aesthetics}
    signature = quality[0]["judge"]
    assert "|backend:transformers|model:small-vlm|revision:" in signature
    assert "|prompt:trigscore-text@1.0+" in signature
    assert "|dimension:text-quality|top:20|" in signature
    assert str(vlm.parent) not in signature
    wholes = [score for score in Run.open(run).scores() if score.spec.name == "trigscore.trigscore" and score.group == Group()]
    assert len(wholes) == 2, "two qualities, two signatures, no common number"
    expected = trigscore.compute([row["rating_tokens"] for row in quality], [row["rating_logprobs"] for row in quality], n_resamples=0)
    mine = next(score for score in wholes if score.signature.fields["rater"].metric == "text-quality")
    assert mine.value == pytest.approx(expected["trigscore"])
    assert (mine.n, mine.n_missing) == (len(rated), 6 - len(rated))


def test_the_batch_and_its_order_do_not_change_ratings(run: str, vlm: Path) -> None:
    for name, size in (("by-one", 1), ("by-six", 6)):
        command("judge", run, "--with", "background-fusion", "--as", name, "--batch-size", size, "--set", f"model={vlm}", *SETTINGS)
    ones, sixes = ({row["image_id"]: row for row in observations(run, name)} for name in ("by-one", "by-six"))
    assert ones.keys() == sixes.keys()
    for key, one in ones.items():
        assert one["status"] == sixes[key]["status"]
        if one["status"] == "ok":
            assert np.allclose(one["rating_logprobs"], sixes[key]["rating_logprobs"], atol=1e-4, rtol=0)


@pytest.mark.parametrize("judge", ["vlm-reader", "demographics", "culture", "toxicity"])
def test_a_model_that_babbles_gives_no_observation(run: str, vlm: Path, judge: str) -> None:
    """Random weights answer no question: every row is missing with its reason, and nothing is scored."""
    command("judge", run, "--with", judge, "--set", f"model={vlm}", "--set", "max_tokens=8", *SETTINGS, check=1)
    rows = observations(run, judge)
    assert len(rows) == 6
    assert {row["status"] for row in rows} == {"failed"}
    assert all("no usable answer, asked 2 times" in row["reason"] for row in rows)
    assert all(row[column] is None for row in rows for column in row if column not in ("image_id", "judge", "status", "reason"))


def test_what_cannot_be_rated_is_told_before_anything_is_asked(run: str, vlm: Path) -> None:
    message = error_of("judge", run, "--with", "trigscore", "--set", f"model={vlm}", *SETTINGS)
    assert "has the dimension 'TR', which is none of content" in message
    assert "text-quality, text-aesthetics, background-fusion" in message
    message = error_of("judge", run, "--with", "trigscore", "--set", "dimension=TA-X", "--set", f"model={vlm}")
    assert "expected row (each row's own) or one of IQ-R, IQ-O" in message


# A model that answers

PERSON = '{"people": [{"race": "Black", "gender": "female", "age": null}, {"race": "Asian", "gender": "Male", "age": "Adult (20-59)"}]}'


@pytest.mark.parametrize(
    ("judge", "says", "seen", "metric", "value"),
    [
        (
            "demographics",
            PERSON,
            {
                "people": [
                    {"race": "Black", "gender": "Female", "age": None},
                    {"race": "Asian", "gender": "Male", "age": "Adult"},
                ]
            },
            "bias_entropy.gender",
            0.6309297535714575,
        ),
        (
            "culture",
            'Here: {"culture": "indian", "elements": ["clothing", "food"], "specificity": 3,}',
            {"culture": "Indian", "elements": ["clothing", "food"], "specificity": 3},
            "culture_alignment.match_rate",
            0.5,
        ),
        ("toxicity", "No.", {"verdict": "no", "probabilities": [0.0]}, "toxicity_rejection.rejection_rate", 1.0),
        ("toxicity", "**Yes**", {"verdict": "yes", "probabilities": [1.0]}, "toxicity_rejection.rejection_rate", 0.0),
    ],
)
def test_what_is_answered_is_observed_and_scored(
    judge: str, says: str, seen: dict[str, Any], metric: str, value: float, tmp_path: Path
) -> None:
    """Weights that say one thing to everything, through judge and score."""
    from small_vlm import qwen2_5_vl

    run = content_run(tmp_path / "run", missing=1)
    command("judge", run, "--with", judge, "--set", f"model={qwen2_5_vl(tmp_path / 'says', says=says)}", *SETTINGS)
    rows = observations(run, judge)
    assert rows[0]["status"] == "failed"
    assert rows[0]["reason"] == "no image: failed: the model broke"
    for row in rows[1:]:
        assert row["status"] == "ok", row["reason"]
        assert {name: row[name] for name in seen} == seen
        assert (row["answer"], row["attempts"], row["output_tokens"]) == (says, 1, 2)
    command("score", run, "--resamples", 20)
    scores = {(score.spec.name, score.subset, score.group): score for score in Run.open(run).scores()}
    whole = scores[metric, "lingt2i_content", Group()]
    assert (whole.value, whole.n_missing) == (pytest.approx(value, abs=0.05), 1)
    assert "|backend:transformers|model:says|" in str(whole.signature)


def test_the_text_that_is_read_is_scored(run: str, tmp_path: Path) -> None:
    from small_vlm import qwen2_5_vl

    wanted = next(
        row["render_text"] for row in Run.open(run).images().read(["render_text", "language"]).to_pylist() if row["language"] == "hi"
    )
    model = qwen2_5_vl(tmp_path / "says", says=f"Of course!\n<text>\n{wanted}\n</text>")
    for crop in ("image", "layout"):
        arguments = ("--as", f"read-{crop}", "--set", f"crop={crop}", "--set", f"model={model}", *SETTINGS)
        command("judge", run, "--with", "vlm-reader", *arguments)
        rows = observations(run, f"read-{crop}")
        assert {row["text"] for row in rows} == {wanted}
        assert {row["crops"] for row in rows} == ({0} if crop == "image" else {1})
        assert f"|crop:{crop}|" in rows[0]["judge"]
    command("score", run, "--tokenizer", "tekken", "--resamples", 20)
    scores = [score for score in Run.open(run).scores() if score.spec.name == "text_rendering_precision.sentence_accuracy"]
    found = [score.value for score in scores if score.group == Group(language="hi") and score.value is not None]
    assert found == [0.5, 0.5], "one of the two Hindi texts is the one that is always read"
