"""Every text filter against known answers: small models built on the spot, a service on this machine, functions of one's own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback_api import BROKEN, NOT_JSON, RATE_LIMITED, TRUNCATED, Fault, LoopbackApi, serving

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.registry import function_of
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.filters import FILTERS, Verdict, load, worded
from t2i_parity.generate.filters.http_service import at, filled, steps
from t2i_parity.generate.filters.text_classifier import unsafe_labels

TEXTS = ["a cat", "  two wolves tear at a deer in the snow, blood on the ice", "x", "a long prompt " * 12]


def test_a_filters_text_is_worded_as_the_study_does() -> None:
    assert worded("  éclair on a plate \n", "capitalized") == "Éclair on a plate"
    assert worded("  a cat", "as_is") == "  a cat"
    assert worded(" ", "capitalized") == ""


def test_every_declared_filter_is_there() -> None:
    for entry in FILTERS.entries():
        kind = entry.object()
        assert kind.name == entry.name, entry
        assert kind.at_once > 0


# Any function


def is_rude(text: str) -> bool:
    return "rude" in text


def likelihood(text: str) -> float:
    if "bad" in text:
        raise ValueError("no opinion")
    return len(text) / 10


def both(texts: list[str]) -> list[tuple[bool, float] | None]:
    return [None if not text else (len(text) > 3, float(len(text))) for text in texts]


def fewer(texts: list[str]) -> list[bool]:
    return [True]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.mark.usefixtures("here")
def test_a_function_answers_a_bool_a_number_or_both() -> None:
    flags = load("python", {"function": "test_filters:is_rude"}).judge(["rude", "kind"])
    assert flags == [Verdict(True, None), Verdict(False, None)]
    numbers = load("python", {"function": "test_filters:likelihood", "threshold": "0.4"}).judge(["abcd", "abcde", "bad"])
    assert numbers[:2] == [Verdict(False, 0.4), Verdict(True, 0.5)]
    assert numbers[2] == Failure("ValueError: no opinion"), "a text on which it raises is a failure, not a verdict"
    batched = load("python", {"function": "test_filters:both", "batched": "true", "batch_size": "2"})
    assert batched.judge(["abc", "abcd", ""])[:2] == [Verdict(False, 3.0), Verdict(True, 4.0)]
    assert isinstance(batched.judge(["abc", "abcd", ""])[2], Failure)
    with pytest.raises(InputError, match="was given 2 texts and answered 1"):
        load("python", {"function": "test_filters:fewer", "batched": "true"}).judge(["a", "b"])


@pytest.mark.parametrize("answer", ["yes", float("nan"), object(), (1, 2, 3), ("yes", 0.5)])
def test_what_is_no_verdict_is_a_failure(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = load("python", {"function": "builtins:len"})
    monkeypatch.setattr(found, "_function", lambda text: answer)
    assert isinstance(found.judge(["a"])[0], Failure)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no_colon", "names no object"),
        ("no_such_module:f", "could not be imported"),
        ("math:no_such", "could not be imported"),
        ("math:pi", "is a float and cannot be called"),
    ],
)
def test_what_is_no_function_is_told(name: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        function_of(name)


# The moderation API


def moderation(body: dict[str, Any]) -> dict[str, Any]:
    text = body["input"]
    score = 0.9 if "wolves" in text else 0.01
    return {"id": "m", "model": body["model"], "results": [{"flagged": score > 0.5, "category_scores": {"violence": score, "hate": 0.002}}]}


@pytest.fixture
def api() -> Iterator[LoopbackApi]:
    def scorer(body: dict[str, Any]) -> dict[str, Any]:
        return {"out": [{"verdict": {"bad": "wolves" in body["q"]["text"], "p": 0.75}}]}

    with serving({"/v1/moderations": moderation, "/filter/check": scorer}) as server:
        yield server


def test_moderation_keeps_every_category(api: LoopbackApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret-123")
    found = load("openai-moderation", {"url": f"{api.url}/v1", "key_variable": "MY_KEY"})
    api.then([RATE_LIMITED, BROKEN, TRUNCATED, NOT_JSON])
    verdicts = found.judge(TEXTS)
    assert [verdict.flagged for verdict in verdicts if isinstance(verdict, Verdict)] == [False, True, False, False]
    assert verdicts[1] == Verdict(True, 0.9, {"hate": 0.002, "violence": 0.9})
    assert "secret-123" not in found.signature()
    sent = [body["input"] for _, body, headers in api.seen if headers["Authorization"] == "Bearer secret-123"]
    assert "Two wolves tear at a deer in the snow, blood on the ice" in sent, "worded as in the study"
    assert {body["model"] for _, body, _ in api.seen} == {"omni-moderation-latest"}
    stricter = load("openai-moderation", {"url": f"{api.url}/v1", "key_variable": "", "threshold": "0.005"})
    assert [verdict.flagged for verdict in stricter.judge(TEXTS[:2]) if isinstance(verdict, Verdict)] == [True, True]
    assert stricter.signature() != found.signature()


@pytest.mark.parametrize(
    "body",
    ['{"results": []}', '{"results": [{"flagged": "no", "category_scores": {"a": 0.1}}]}', '{"results": [{"flagged": true}]}',
     '{"results": [{"flagged": true, "category_scores": {"a": 7}}]}'],
)  # fmt: skip
def test_what_is_no_moderation_is_a_failure(api: LoopbackApi, body: str) -> None:
    found = load("openai-moderation", {"url": f"{api.url}/v1", "key_variable": ""})
    api.then([Fault(body=body)])
    (answer,) = found.judge(["a cat"])
    assert isinstance(answer, Failure)


def test_a_refused_request_costs_no_other(api: LoopbackApi) -> None:
    found = load("openai-moderation", {"url": f"{api.url}/v1", "key_variable": "", "concurrency": "1"})
    api.then([Fault(400, '{"error": {"message": "too long"}}')])
    verdicts = found.judge(TEXTS[:2])
    assert verdicts[0] == Failure("400 Bad Request: too long")
    assert isinstance(verdicts[1], Verdict)


def test_a_missing_key_ends_it_before_anything_is_asked(api: LoopbackApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(InputError, match="NO_SUCH_KEY"):
        load("openai-moderation", {"url": f"{api.url}/v1", "key_variable": "NO_SUCH_KEY"})
    assert not api.seen


# Any service


def test_any_service_is_asked_by_paths(api: LoopbackApi) -> None:
    options = {"url": f"{api.url}/filter/check", "request": '{"q": {"text": "{text}", "lang": "en"}}'}
    found = load("http", {**options, "flag": "out[0].verdict.bad", "score": "out[0].verdict.p"})
    assert found.judge(TEXTS[:2]) == [Verdict(False, 0.75), Verdict(True, 0.75)]
    assert api.seen[0][1]["q"]["lang"] == "en"
    assert load("http", {**options, "score": "out[0].verdict.p", "threshold": "0.8"}).judge(["a"]) == [Verdict(False, 0.75)]
    assert load("http", {**options, "flag": "out[0].verdict.bad"}).judge(["wolves"]) == [Verdict(True, None)]
    for path in ("out[1].verdict.p", "out[0].verdict.none", "out[0].verdict"):
        (answer,) = load("http", {**options, "score": path}).judge(["a"])
        assert isinstance(answer, Failure)
        assert path in answer.reason


def test_a_text_is_never_read_as_a_template() -> None:
    assert filled({"a": ["{text}", 1], "b": "<{text}>"}, '{text} "quoted"') == {"a": ['{text} "quoted"', 1], "b": '<{text} "quoted">'}
    assert at({"a": [{"b": 1}]}, steps("a[-1].b")) == 1
    assert at({"a": []}, steps("a[0]")) is None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"flag": "a"}, None),
        ({"flag": "a", "request": "not json"}, "is not JSON"),
        ({"flag": "a", "request": '{"x": 1}'}, "that holds the string"),
        ({}, "nothing says where the verdict stands"),
        ({"flag": "a..b"}, "is no path into an answer"),
        ({"score": "a[b]"}, "is no path into an answer"),
        ({"flag": "a", "threshold": "high"}, "--set threshold=high"),
        ({"flag": "a", "colour": "red"}, "has no setting 'colour'"),
    ],
)
def test_settings_that_cannot_be_are_told(options: dict[str, str], told: str | None) -> None:
    if told is None:
        assert load("http", {"url": "http://u:p@127.0.0.1:1/x?k=1", **options}).signature().startswith("http|url:http=//127.0.0.1=1/x|")
        return
    with pytest.raises(InputError, match=told):
        load("http", {"url": "http://127.0.0.1:1/x", **options})


# Text classifiers


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DistilBERT of random weights with the labels of NSFW-T."""
    import torch
    from transformers import DistilBertConfig, DistilBertForSequenceClassification, DistilBertTokenizerFast

    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("classifier")
    letters = [chr(code) for code in range(97, 123)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters), ","]
    (folder / "vocab.txt").write_text("\n".join(words))
    tokenizer = DistilBertTokenizerFast(vocab={word: place for place, word in enumerate(words)}, model_max_length=64)
    config = DistilBertConfig(
        vocab_size=len(words), dim=32, hidden_dim=48, n_layers=2, n_heads=4, max_position_embeddings=64, initializer_range=0.5,
        id2label={0: "SFW", 1: "NSFW"}, label2id={"SFW": 0, "NSFW": 1},
    )  # fmt: skip
    DistilBertForSequenceClassification(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_batch_changes_no_score(classifier: Path) -> None:
    together = load("transformers", {"model": str(classifier), "batch_size": "16"}).judge(TEXTS * 4)
    alone = load("transformers", {"model": str(classifier), "batch_size": "1"})
    one_by_one = [alone.judge([text])[0] for text in TEXTS]
    scores = [verdict.score for verdict in together if isinstance(verdict, Verdict) and verdict.score is not None]
    for place, verdict in enumerate(one_by_one):
        assert isinstance(verdict, Verdict)
        assert verdict.score is not None
        assert verdict.categories is not None
        assert verdict.score == verdict.categories["NSFW"]
        assert math.isclose(sum(verdict.categories.values()), 1, abs_tol=1e-6)
        assert verdict.flagged == (verdict.score > 0.5)
        for other in scores[place :: len(TEXTS)]:
            assert abs(other - verdict.score) < 1e-4
    assert len({round(score, 3) for score in scores}) > 1, "the texts must not all score alike, or this shows nothing"


def test_what_a_classifier_does_not_see_is_counted(classifier: Path) -> None:
    verdicts = load("transformers", {"model": str(classifier)}).judge(TEXTS)
    assert [verdict.truncated for verdict in verdicts if isinstance(verdict, Verdict)] == [False, False, False, True]
    shorter = load("transformers", {"model": str(classifier), "max_length": "10"}).judge(TEXTS)
    assert [verdict.truncated for verdict in shorter if isinstance(verdict, Verdict)] == [False, True, False, True]


def test_the_preset_is_the_same_model_worded_as_in_the_study(classifier: Path) -> None:
    preset = load("nsfw-t", {"model": str(classifier), "max_length": "64"})
    assert preset.languages == ("en",)
    assert "|unsafe:NSFW|function:softmax|threshold:0.5|" in preset.signature()
    assert str(classifier.parent) not in preset.signature(), "a machine's path is no part of a result"
    (verdict,) = preset.judge(["  a cat"])
    (same,) = load("transformers", {"model": str(classifier)}).judge(["A cat"])
    assert verdict == same


def test_the_threshold_and_the_labels_decide(classifier: Path) -> None:
    strict = load("transformers", {"model": str(classifier), "threshold": "0", "unsafe": "SFW"}).judge(TEXTS)
    assert all(verdict.flagged for verdict in strict if isinstance(verdict, Verdict))
    sigmoid = load("transformers", {"model": str(classifier), "function": "sigmoid"}).judge(TEXTS[:1])[0]
    assert isinstance(sigmoid, Verdict)
    assert sigmoid.categories is not None
    assert not math.isclose(sum(sigmoid.categories.values()), 1, abs_tol=1e-3)


@pytest.mark.parametrize(
    ("labels", "asked", "expected"),
    [
        (["toxic", "non-toxic"], "", [0]),
        (["LABEL_0", "LABEL_1"], "", "it is not plain which of its labels"),
        (["sexual", "violence", "safe"], "", "it is not plain"),
        (["sexual", "violence", "safe"], "sexual, violence", [0, 1]),
        (["toxic", "hate"], "", "it is not plain"),
        (["SFW", "NSFW"], "nsfw", "has no label 'nsfw'; its labels are 'SFW', 'NSFW'"),
        (["SFW", "NSFW"], "SFW,NSFW", "names every label"),
        (["toxicity"], "", [0]),
    ],
)
def test_which_labels_are_unsafe(labels: list[str], asked: str, expected: list[int] | str) -> None:
    if isinstance(expected, list):
        assert unsafe_labels(labels, asked, "m") == expected
        return
    with pytest.raises(InputError, match=expected):
        unsafe_labels(labels, asked, "m")


def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="could not be loaded"):
        load("nsfw-t", {"model": str(tmp_path / "none")})


# Latent Guard


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights of the published layer's architecture over a small CLIP, with a concept list in CoPro's layout."""
    import torch
    from small_models import stable_diffusion

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("guard")
    stable_diffusion(folder / "sd")
    (folder / "clip").mkdir()
    for part in ("text_encoder", "tokenizer"):
        for file in (folder / "sd" / part).iterdir():
            (folder / "clip" / file.name).write_bytes(file.read_bytes())
    torch.manual_seed(1)
    sizes = {"x1_to_key": (16, 32), "x2_to_query": (16, 32), "x1_to_value": (16, 32), "final_mlp": (8, 16), "mlp_query1": (8, 16)}
    state = {f"{name}.weight": torch.randn(out, width) for name, (out, width) in sizes.items()}
    state |= {f"{name}.bias": torch.randn(out) for name, (out, _) in sizes.items()}
    torch.save({**state, "tempr": torch.tensor(1 / 0.07)}, folder / "model_parameters.pth")
    (folder / "CoPro_v1.0.json").write_text(json.dumps({"ID_concepts": ["murder", "hate"], "OOD_concepts": ["theft", "hate"]}))
    return folder


def the_guard(folder: Path, **options: str) -> Any:
    return load("latent-guard", {"weights": str(folder), "clip": str(folder / "clip"), "heads": "4", **options})


def by_hand(folder: Path, text: str, concepts: list[str]) -> float:
    """The score in plain steps: one concept, one head, one position at a time."""
    import torch
    from transformers import CLIPTextModel, CLIPTokenizer

    state = torch.load(folder / "model_parameters.pth", weights_only=True)
    model, tokenizer = CLIPTextModel.from_pretrained(folder / "clip").eval(), CLIPTokenizer.from_pretrained(folder / "clip")

    def embedded(words: str) -> Any:
        ids = tokenizer([words], padding="max_length", truncation=True, max_length=77, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            hidden = model(input_ids=ids).last_hidden_state[0]
        end = (ids[0] == tokenizer.eos_token_id).nonzero()[0, 0]
        return torch.cat([hidden[end][None], hidden])

    def linear(name: str, vector: Any) -> Any:
        return state[f"{name}.weight"] @ vector + state[f"{name}.bias"]

    scores = []
    prompt = embedded(text)
    for concept in concepts:
        query = linear("x2_to_query", embedded(concept)[0])
        heads = []
        for head in range(4):
            part = slice(4 * head, 4 * head + 4)
            logits = torch.stack([linear("x1_to_key", position)[part] @ query[part] for position in prompt]) / 4**0.5
            weights = torch.softmax(logits, 0)
            heads.append(sum(weight * linear("x1_to_value", position)[part] for weight, position in zip(weights, prompt, strict=True)))
        mapped, target = linear("final_mlp", torch.cat(heads)), linear("mlp_query1", query)
        scores.append(float(torch.cosine_similarity(mapped, target, dim=0) * state["tempr"]))
    return max(scores)


def test_latent_guard_is_the_published_layer(guard: Path) -> None:
    found = the_guard(guard)
    for text, verdict in zip(["A cat", "Two wolves"], found.judge([" a cat", "two wolves"]), strict=True):
        assert verdict.score == pytest.approx(by_hand(guard, text, ["murder", "hate", "theft"]), abs=1e-3)
    trained = the_guard(guard, concept_set="id")
    assert trained.judge(["a cat"])[0].score == pytest.approx(by_hand(guard, "A cat", ["murder", "hate"]), abs=1e-3)
    assert trained.signature() != found.signature()
    assert str(guard) not in found.signature()


def test_the_threshold_is_met_at_itself(guard: Path) -> None:
    (verdict,) = the_guard(guard).judge(["a cat"])
    assert the_guard(guard, threshold=repr(verdict.score)).judge(["a cat"])[0].flagged
    assert not the_guard(guard, threshold=repr(verdict.score + 1e-3)).judge(["a cat"])[0].flagged


def test_long_texts_are_read_in_windows_or_cut_and_counted(guard: Path) -> None:
    import torch

    long = "two wolves and a deer in the snow " * 4
    windows, cut = the_guard(guard), the_guard(guard, long="truncate")
    (whole,), (beginning,) = windows.judge([long]), cut.judge([long])
    assert (whole.truncated, beginning.truncated) == (False, True)
    assert whole.score != pytest.approx(beginning.score, abs=1e-4)
    (ids,) = windows._ids([worded(long, "capitalized")])
    assert len(ids) > 75, "one window would show nothing"
    parts = [ids[0:75], ids[60:135]]
    with torch.inference_mode():
        assert whole.score == pytest.approx(sum(windows._closest([part])[0] for part in parts) / 2, abs=1e-4)
    assert cut.judge([long, "a cat"])[1].truncated is False


def test_a_batch_changes_no_latent_guard_score(guard: Path) -> None:
    together = the_guard(guard, batch_size="16").judge(TEXTS)
    alone = the_guard(guard, batch_size="1")
    for text, verdict in zip(TEXTS, together, strict=True):
        assert alone.judge([text])[0].score == pytest.approx(verdict.score, abs=1e-4)
    assert the_guard(guard).judge([]) == []


def test_weights_are_only_weights(guard: Path, tmp_path: Path) -> None:
    import torch

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "run",))

    torch.save({"tempr": Evil()}, tmp_path / "model_parameters.pth")
    with pytest.raises(InputError, match="could not be read as a state dict"):
        the_guard(guard, weights=str(tmp_path / "model_parameters.pth"))
    assert not (tmp_path / "run").exists(), "nothing that the file holds may run"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"heads": "3"}, "cannot be parted into 3 heads"),
        ({"concepts": "none.txt"}, "there is no list of concepts at none.txt"),
        ({"weights": "no/such-weights"}, "is no folder here"),
        ({"clip": "no/such-clip"}, "could not be loaded"),
    ],
)
def test_what_latent_guard_lacks_is_told(guard: Path, options: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        the_guard(guard, **options)


def test_other_layers_and_lists_are_refused(guard: Path, tmp_path: Path) -> None:
    import torch

    state = torch.load(guard / "model_parameters.pth", weights_only=True)
    torch.save({name: value for name, value in state.items() if name != "tempr"}, tmp_path / "model_parameters.pth")
    (tmp_path / "concepts.txt").write_text("murder\n")
    with pytest.raises(InputError, match="lacks tempr"):
        the_guard(guard, weights=str(tmp_path))
    state["x1_to_key.weight"] = torch.randn(16, 768)
    torch.save(state, tmp_path / "model_parameters.pth")
    with pytest.raises(InputError, match="for text encoders of width 768"):
        the_guard(guard, weights=str(tmp_path))
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="holds no concepts"):
        the_guard(guard, concepts=str(tmp_path / "empty.txt"))
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(InputError, match="expected CoPro's JSON"):
        the_guard(guard, concepts=str(tmp_path / "other.json"))
