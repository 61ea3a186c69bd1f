"""CLIPScore against scipy and open_clip itself, with an encoder that can be worked by hand and a small random network."""

from __future__ import annotations

import io
import json
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image, ImageDraw

from t2i_parity.metrics.clip_score import core
from t2i_parity.metrics.clip_score.core import aggregate, compute, per_row, rescaled, scores_of

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "white": (255, 255, 255)}
NUMBER = st.integers(-100, 100)
VECTOR = st.lists(NUMBER, min_size=3, max_size=3).filter(any)
Load = Callable[..., Any]


class Colours:
    """An image is its mean colour, a text the colours that it names, of three words at most; remembers what it was given."""

    model, pretrained = "mean-colour", "none"

    def __init__(self) -> None:
        self.images: list[int] = []
        self.texts: list[list[str]] = []

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        self.images.append(len(images))
        return np.array([np.asarray(image.convert("RGB"), float).reshape(-1, 3).mean(axis=0) for image in images])

    def encode_texts(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        self.texts.append(list(texts))
        words = [text.split() for text in texts]
        named = [np.sum([COLOURS.get(word, (0, 0, 0)) for word in seen[:3]], axis=0) + 1e-3 for seen in words]
        return np.array(named), np.array([len(seen) > 3 for seen in words])


def picture(colour: str, size: int = 4) -> Image.Image:
    return Image.new("RGB", (size, size), COLOURS[colour])


ROWS: dict[str, list[Any]] = {
    "images": [None, picture("red"), picture("red"), picture("white")],
    "prompts": ["red", "red", "green", "the sky is blue"],
}


# Scores of embeddings


def test_scores_by_hand() -> None:
    images, texts = [[3, 4], [1, 0], [0, 2]], [[4, 3], [-5, 0], [1, 0]]
    assert scores_of(images, texts).tolist() == pytest.approx([24 / 25, -1, 0])
    assert scores_of(images, texts, "clipscore").tolist() == pytest.approx([2.5 * 24 / 25, 0, 0])


@given(st.lists(st.tuples(VECTOR, VECTOR, st.sampled_from([1e-3, 1.0, 1e4])), min_size=1, max_size=6))
def test_the_cosine_is_scipys_at_any_length(rows: list[tuple[list[int], list[int], float]]) -> None:
    images, texts, lengths = (np.array(part, float) for part in zip(*rows, strict=True))
    scores = scores_of(images * lengths[:, None], texts)
    expected = [1 - scipy.spatial.distance.cosine(image, text) for image, text in zip(images, texts, strict=True)]
    assert scores == pytest.approx(np.array(expected), abs=2e-6)
    assert (abs(scores) <= 1).all()
    assert scores_of(texts, images).tolist() == pytest.approx(scores.tolist(), abs=1e-6)
    assert scores_of(images, texts, "clipscore") == pytest.approx(2.5 * np.maximum(scores, 0), abs=1e-5)


def test_half_precision_is_normalised_in_single() -> None:
    rng = np.random.default_rng(0)
    images, texts = (rng.normal(0, 30, (5, 1024)).astype(np.float16) for _ in range(2))
    # Squared, such embeddings exceed the 65504 of half precision: normalised there, everything becomes 0.
    with np.errstate(over="ignore"):
        assert not np.isfinite((images * images).sum(axis=1)).any()
    plain = [1 - scipy.spatial.distance.cosine(a, b) for a, b in zip(images.astype(float), texts.astype(float), strict=True)]
    assert scores_of(images, texts) == pytest.approx(np.array(plain), abs=1e-6)


def test_what_is_no_pair_of_embeddings_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shapes \(1, 2\) and \(2, 2\)"):
        scores_of([[1, 2]], [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(2,\)"):
        scores_of([1, 2], [1, 2])
    with pytest.raises(ValueError, match="row 1: expected a finite image embedding that is not zero, got one of length 0"):
        scores_of([[1, 2], [0, 0]], [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match=r"row 0: expected a finite text embedding.*nan"):
        scores_of([[1, 2]], [[np.nan, 2]])
    with pytest.raises(ValueError, match="scale: expected one of 'cosine', 'clipscore', got 'cos'"):
        scores_of([[1, 2]], [[1, 2]], "cos")


# With an encoder that can be worked by hand


def test_all_keys_by_hand() -> None:
    # red on red 1, red on green 0, white on nothing known √3/√3 = 1; the last prompt has four words.
    answer = compute(**ROWS, encoder=Colours(), n_resamples=0)
    assert answer == {
        "clip_score": pytest.approx(2 / 3, abs=1e-4),
        "n_truncated": 1,
        "n": 3,
        "n_missing": 1,
        "signature": "clip_score|model:mean-colour|pretrained:none|scale:cosine|v:1.0",
    }
    scaled = compute(**ROWS, encoder=Colours(), scale="clipscore", n_resamples=0)
    assert scaled["clip_score"] == pytest.approx(2.5 * answer["clip_score"])
    assert scaled["signature"] == "clip_score|model:mean-colour|pretrained:none|scale:clipscore|v:1.0"


def test_nothing_is_put_before_a_prompt_and_each_is_encoded_once() -> None:
    encoder = Colours()
    images = [picture("red")] * 5 + [None]
    compute(images, ["blue", "red", "blue", " red", "red", "green"], encoder=encoder, batch_size=2, n_resamples=0)
    assert encoder.texts == [["blue", "red"], [" red"]]
    assert encoder.images == [2, 2, 1]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_batches_change_nothing(batch_size: int) -> None:
    images = [picture(colour) for colour in COLOURS for _ in range(3)]
    prompts = [f"{colour} {word}" for word in ("cat", "dog", "blue") for colour in COLOURS]
    one, many = (per_row(images, prompts, encoder=Colours(), batch_size=size) for size in (7, batch_size))
    assert one["similarities"].tolist() == many["similarities"].tolist()


def test_missing_images_are_counted_and_their_prompts_are_not() -> None:
    answer = compute([None, picture("red")], ["a b c d", "red"], encoder=Colours(), groups=["x", "y"])
    assert (answer["n"], answer["n_missing"], answer["n_truncated"]) == (1, 1, 0)
    assert answer["by_group"]["x"] == {
        "clip_score": None,
        "n_truncated": 0,
        "n": 0,
        "n_missing": 1,
        "ci": {"clip_score": [None, None]},
        "ci_method": {"clip_score": "none: nothing was observed"},
    }
    assert np.isnan(per_row([None], ["a"], encoder=Colours())["similarities"]).all()
    assert "NaN" not in json.dumps(answer)


def test_truncated_prompts_are_counted_by_row_and_group() -> None:
    images = [picture("red")] * 4
    answer = compute(images, ["a b c d", "a b c d", "red", "e f g h"], encoder=Colours(), groups=["x", "x", "x", "y"], n_resamples=0)
    assert (answer["n_truncated"], answer["by_group"]["x"]["n_truncated"], answer["by_group"]["y"]["n_truncated"]) == (3, 2, 1)


def test_an_image_may_be_given_in_any_way(tmp_path: Path) -> None:
    image = picture("green")
    image.save(tmp_path / "green.png")
    content = (tmp_path / "green.png").read_bytes()
    ways = [
        image,
        Image.open(tmp_path / "green.png"),
        str(tmp_path / "green.png"),
        tmp_path / "green.png",
        content,
        {"bytes": content, "path": None},
        {"bytes": None, "path": str(tmp_path / "green.png")},
        image.convert("P"),
        image.convert("RGBA"),
    ]
    rows = per_row(ways, ["green"] * len(ways), encoder=Colours())["similarities"]
    assert rows == pytest.approx(np.ones(len(ways)), abs=1e-4)


def test_an_image_that_cannot_be_decoded_is_told_by_row(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)).save(buffer, "PNG")
    broken = {
        "no image": b"text",
        "half an image": buffer.getvalue()[:2000],
        "no file": tmp_path / "none.png",
        "a folder": str(tmp_path),
    }
    for cell in broken.values():
        with pytest.raises(ValueError, match="column 'images', row 1: expected an image, got one that cannot be decoded") as error:
            compute([picture("red"), cell], ["red", "red"], encoder=Colours(), n_resamples=0)
        assert "Fix: " in str(error.value)


@given(
    st.lists(
        st.tuples(st.none() | st.floats(-1, 1), st.booleans(), st.sampled_from("gh"), st.sampled_from("wxyz")), min_size=1, max_size=20
    )
)
@settings(deadline=None, max_examples=50)
def test_observed_cosines_are_aggregated_as_numpy_says(rows: list[tuple[Any, ...]]) -> None:
    def run(rows: list[tuple[Any, ...]], scale: str = "cosine") -> dict[str, Any]:
        similarities, truncated, groups, clusters = zip(*rows, strict=True)
        named = {"truncated": truncated, "groups": groups, "clusters": clusters, "model": "m", "pretrained": "w"}
        return aggregate(similarities, **named, scale=scale, n_resamples=20)

    answer = run(rows)
    assert run(rows[::-1]) == answer
    seen = [(value, cut) for value, cut, *_ in rows if value is not None]
    assert (answer["n"], answer["n_missing"]) == (len(seen), len(rows) - len(seen))
    assert answer["n_truncated"] == sum(cut for _, cut in seen)
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[2] == group])
        assert {key: alone[key] for key in part} == part
    if seen:
        values = np.array([value for value, _ in seen])
        assert answer["clip_score"] == pytest.approx(values.mean(), abs=1e-12)
        assert run(rows, "clipscore")["clip_score"] == pytest.approx((2.5 * np.maximum(values, 0)).mean(), abs=1e-12)
    else:
        assert answer["clip_score"] is None


def test_a_judges_cosines_give_the_metrics_answer() -> None:
    rows = per_row(**ROWS, encoder=Colours())
    kept = [None if np.isnan(value) else float(value) for value in rows["similarities"]]
    extra: dict[str, Any] = {"scale": "clipscore", "groups": ["a", "b", "b", "a"], "n_resamples": 50}
    observed = aggregate(kept, truncated=rows["truncated"], model=Colours.model, pretrained=Colours.pretrained, **extra)
    assert observed == compute(**ROWS, encoder=Colours(), **extra)
    assert aggregate(kept, model="m", pretrained="w", n_resamples=0)["n_truncated"] == 0
    with pytest.raises(ValueError, match=r"column 'similarities', row 1: expected float from -1 to 1 or None, got 2\.5"):
        aggregate([0.5, 2.5], model="m", pretrained="w")


def test_rescaled_keeps_what_is_missing() -> None:
    assert rescaled(np.array([0.4, np.nan]), "cosine")[0] == 0.4
    assert np.isnan(rescaled(np.array([np.nan]), "clipscore")).all()


# As people load it


def test_evaluate_gives_what_the_core_gives(load: Load) -> None:
    expected = compute(**ROWS, encoder=Colours(), n_resamples=30, seed=3)
    metric = load("clip_score")
    assert metric.compute(**ROWS, encoder=Colours(), n_resamples=30, seed=3) == expected
    assert json.loads(json.dumps(expected)) == expected
    metric.add_batch(images=ROWS["images"][:3], prompts=ROWS["prompts"][:3])
    metric.add(image=ROWS["images"][3], prompt=ROWS["prompts"][3])
    assert metric.compute(encoder=Colours(), n_resamples=30, seed=3) == expected
    assert all("arxiv" in url for url in metric.reference_urls)


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_groups_and_clusters_in_both_configurations(keep_in_memory: bool, load: Load) -> None:
    extra = {"groups": ["a", "b", "b", "a"], "clusters": ["p", "p", "q", "r"]}
    keywords: dict[str, Any] = {"encoder": Colours(), "n_resamples": 30}
    expected = compute(**ROWS, **extra, **keywords)
    assert load("clip_score").compute(**ROWS, **extra, **keywords) == expected
    grouped = load("clip_score", "grouped", keep_in_memory=keep_in_memory)
    grouped.add_batch(**ROWS, **extra)
    assert grouped.compute(**keywords) == expected


def test_evaluate_keeps_an_image_as_it_looks_when_given(tmp_path: Path, load: Load) -> None:
    picture("red", 8).save(tmp_path / "red.png")
    drawn = Image.open(tmp_path / "red.png")
    drawn.load()
    ImageDraw.Draw(drawn).rectangle((0, 0, 8, 8), fill=COLOURS["blue"])
    metric = load("clip_score")
    metric.add(image=drawn, prompt="blue")
    metric.add(image=str(tmp_path / "red.png"), prompt="red")
    metric.add(image=(tmp_path / "red.png").read_bytes(), prompt="red")
    assert metric.compute(encoder=Colours(), n_resamples=0)["clip_score"] == pytest.approx(1, abs=1e-4)


def test_images_of_a_dataset_are_taken(load: Load) -> None:
    import datasets

    rows = datasets.Dataset.from_dict({"image": ROWS["images"], "prompt": ROWS["prompts"]})
    rows = rows.cast_column("image", datasets.Image())
    expected = compute(**ROWS, encoder=Colours(), n_resamples=0)
    metric = load("clip_score")
    for stored in (rows, rows.cast_column("image", datasets.Image(decode=False))):
        assert compute(stored["image"], stored["prompt"], encoder=Colours(), n_resamples=0) == expected
        assert metric.compute(images=stored["image"], prompts=stored["prompt"], encoder=Colours(), n_resamples=0) == expected


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"images": [None, 3, None, None]}, r"column 'images', row 1: expected image or None, got 3 \(int\).*PIL"),
    ({"images": [None, None, np.zeros((4, 4, 3), np.uint8), None]}, "column 'images', row 2: .*ndarray.*fromarray"),
    ({"images": [None, {"bytes": None, "path": None}, None, None]}, "column 'images', row 1: .*neither bytes nor path"),
    ({"images": picture("red")}, "column 'images', row 0: expected a list"),
    ({"images": "red.png"}, "column 'images', row 0: expected a list"),
    ({"images": [], "prompts": []}, "column 'images', row 0: expected at least one row"),
    ({"images": None}, "column 'images' is missing"),
    ({"images": [None, None, None, b"text"]}, "column 'images', row 3: .*cannot be decoded"),
    ({"prompts": ["a", None, "b", "c"]}, "column 'prompts', row 1: expected str, got None"),
    ({"prompts": ["a"]}, "column 'prompts', row 1: expected 4 rows as in 'images', got 1"),
    ({"groups": [1, 2, 3, 4]}, "column 'groups', row 0: expected str, got 1"),
    ({"scale": "cos"}, "scale: expected one of 'cosine', 'clipscore'"),
    ({"batch_size": 0}, "batch_size: expected an int from 1 up, got 0"),
    ({"batch_size": 2.0}, "batch_size: expected"),
    ({"encoder": len}, "encoder: expected model, pretrained, encode_images and encode_texts"),
    ({"n_resamples": -1}, "n_resamples: expected"),
]


def test_wrong_input_is_told_and_leaves_the_metric_usable(load: Load) -> None:
    metric = load("clip_score")
    for wrong, told in WRONG:
        given = {**ROWS, "encoder": Colours(), **wrong}
        with pytest.raises(ValueError, match=told):
            compute(**given)
        with pytest.raises(ValueError, match=told):
            metric.compute(**given)
        assert metric.compute(**ROWS, encoder=Colours(), n_resamples=0)["n"] == 3


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_rows_added_before_an_error_stay_and_a_wrong_batch_adds_nothing(keep_in_memory: bool, load: Load) -> None:
    metric = load("clip_score", keep_in_memory=keep_in_memory)
    metric.add_batch(images=ROWS["images"][:3], prompts=ROWS["prompts"][:3])
    for wrong, _ in WRONG:
        with pytest.raises(ValueError, match=r"clip_score|expected"):
            metric.compute(**{**ROWS, "encoder": Colours(), **wrong})
        assert len(metric) == 3
    for batch in ({"images": "ab"}, {"images": [object()]}, {"images": []}, {"images": None}, {"prompts": [3]}, {"groups": ["g"]}):
        with pytest.raises(ValueError, match=f"column '{next(iter(batch))}'"):
            metric.add_batch(**{"images": [picture("red")], "prompts": ["red"], **batch})
    metric.add(image=ROWS["images"][3], prompt=ROWS["prompts"][3])
    assert metric.compute(encoder=Colours(), n_resamples=30) == compute(**ROWS, encoder=Colours(), n_resamples=30)


def test_an_encoder_that_loses_rows_is_told() -> None:
    class Losing(Colours):
        def encode_texts(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
            features, cut = super().encode_texts(texts)
            return features[:-1], cut[:-1]

    with pytest.raises(ValueError, match="encoder: expected 3 text embeddings, one a text, got 2"):
        compute(**ROWS, encoder=Losing())


def test_without_open_clip_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "open_clip", None)
    core.load_encoder.cache_clear()
    with pytest.raises(RuntimeError) as error:
        compute(**ROWS)
    for fix in ("pip install open_clip_torch", "'t2i-parity[clip]'", "encoder="):
        assert fix in str(error.value)
    assert "\n" not in str(error.value)


def test_the_spaces_form_scores_one_image(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gradio = types.ModuleType("gradio")
    made: dict[str, Any] = {}
    for name in ("Image", "Textbox", "Dropdown", "Radio", "JSON"):
        setattr(gradio, name, lambda *args, **keywords: keywords)
    gradio.Error = type("Error", (Exception,), {})  # type: ignore[attr-defined]
    gradio.Interface = lambda function, **keywords: made.update(keywords, function=function)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gradio", gradio)
    app = runpy.run_path(str(root / "metrics" / "clip_score" / "app.py"))
    assert made["article"].startswith("\n# ")
    asked: dict[str, Any] = {}
    monkeypatch.setitem(app["score"].__globals__, "metric", types.SimpleNamespace(compute=lambda **given: asked.update(given)))
    choice = next(iter(app["CHECKPOINTS"]))
    made["function"](picture("red"), "red", choice, "cosine")
    assert (asked["model"], asked["pretrained"]) == (core.DEFAULT_MODEL, core.DEFAULT_PRETRAINED)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "open_clip", None)
    core.load_encoder.cache_clear()
    with pytest.raises(gradio.Error, match="open_clip_torch"):
        app["score"](picture("red"), "red", choice, "cosine")


# With a network of open_clip, small and of random weights: real classes and files, no claim about quality

try:
    import open_clip
    import torch
    from small_clip import TEXT, checkpoint, packed
except ImportError:
    open_clip = None
needs_open_clip = pytest.mark.skipif(open_clip is None, reason="open_clip is not installed: pip install open_clip_torch")
CONTEXT = 12


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Model name to a file of its weights: one with CLIP's tokenizer, one with a tokenizer of transformers, as MetaCLIP 2 has."""
    import tokenizers
    import transformers

    folder = tmp_path_factory.mktemp("open_clip")
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "red": 5, "लाल": 6}, unk_token="<unk>")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder / "words")
    texts = {
        "parity-small": TEXT,
        "parity-worldwide": {**TEXT, "vocab_size": 8, "hf_tokenizer_name": str(folder / "words"), "pool_type": "eos", "eos_id": 2},
    }
    return {name: checkpoint(folder, name, seed, text=text) for seed, (name, text) in enumerate(texts.items())}


def noise(seed: int, size: tuple[int, int] = (32, 32)) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8))


@needs_open_clip
def test_features_and_preprocessing_are_the_checkpoints_own(checkpoints: dict[str, str]) -> None:
    name = "parity-small"
    encoder = core.Encoder(name, checkpoints[name], "cpu")
    network = open_clip.create_model(name, checkpoints[name]).eval()
    # By hand: the shorter side to 32 pixels by bicubic resampling, the middle 32 × 32, OpenAI's mean and deviation.
    pixels = []
    for image in (noise(0), noise(1, (64, 96))):
        resized = image.resize((32, 32 * image.height // image.width), Image.Resampling.BICUBIC)
        top = (resized.height - 32) // 2
        cut = np.asarray(resized.crop((0, top, 32, top + 32)), np.float32) / 255
        normal = (cut - [0.48145466, 0.4578275, 0.40821073]) / [0.26862954, 0.26130258, 0.27577711]
        pixels.append(torch.tensor(normal.transpose(2, 0, 1), dtype=torch.float32))
    with torch.no_grad():
        images = network.encode_image(torch.stack(pixels))
        tokens = open_clip.tokenize(["a red cat", "नमस्ते"], context_length=CONTEXT)
        texts = network.encode_text(tokens)
        cosine = torch.nn.functional.cosine_similarity(images, texts)
    assert encoder.encode_images([noise(0), noise(1, (64, 96))]) == pytest.approx(images.numpy(), abs=1e-5)
    assert encoder.encode_texts(["a red cat", "नमस्ते"])[0] == pytest.approx(texts.numpy(), abs=1e-5)
    rows = per_row([noise(0), noise(1, (64, 96))], ["a red cat", "नमस्ते"], encoder=encoder)
    assert rows["similarities"] == pytest.approx(cosine.numpy(), abs=1e-6)


@needs_open_clip
def test_modes_of_an_image_are_brought_to_rgb(checkpoints: dict[str, str]) -> None:
    encoder = core.Encoder("parity-small", checkpoints["parity-small"], "cpu")
    grey = noise(3).convert("L")
    features = encoder.encode_images([grey, grey.convert("RGB"), grey.convert("RGBA"), grey.convert("P")])
    for row in features[1:]:
        assert row == pytest.approx(features[0], abs=1e-6)


@needs_open_clip
@pytest.mark.parametrize("name", ["parity-small", "parity-worldwide"])
def test_a_long_text_keeps_its_end_token_and_is_counted(name: str, checkpoints: dict[str, str]) -> None:
    encoder = core.Encoder(name, checkpoints[name], "cpu")
    room = CONTEXT - 2
    texts = ["", "red", *(" ".join(["a"] * n) for n in (room - 1, room, room + 1, 3 * room))]
    tokens = encoder._tokenize(texts)
    end = int(tokens[1][2])
    assert [int((row == end).sum() > 0) for row in tokens] == [1] * len(texts)
    assert tokens[-1][-1] == end
    features, cut = encoder.encode_texts(texts)
    assert cut.tolist() == [False, False, False, False, True, True]
    # A cut text is what is left of it.
    assert features[4] == pytest.approx(features[3], abs=1e-6)
    assert features[5] == pytest.approx(features[3], abs=1e-6)
    assert features[1] != pytest.approx(features[0], abs=1e-3)
    longest = " ".join(["a"] * 30)
    answer = compute([noise(0), noise(1), None], ["red", longest, longest], encoder=encoder, n_resamples=0)
    assert (answer["n_truncated"], answer["n"]) == (1, 2)


@needs_open_clip
def test_a_folder_that_brings_its_own_is_the_same_model(tmp_path: Path, checkpoints: dict[str, str]) -> None:
    folder = packed(tmp_path / "own", checkpoints["parity-small"])
    own = core.Encoder(f"local-dir:{folder}", device="cpu")
    other = core.Encoder("parity-small", checkpoints["parity-small"], "cpu")
    assert own.encode_images([noise(0)]) == pytest.approx(other.encode_images([noise(0)]), abs=1e-6)
    assert own.encode_texts(["a red cat"])[0] == pytest.approx(other.encode_texts(["a red cat"])[0], abs=1e-6)
    assert (own.model, own.pretrained[:4]) == ("local-dir:own", "own@")
    (folder / "open_clip_pytorch_model.bin").unlink()
    with pytest.raises(ValueError, match="a file of weights after 'local-dir:'"):
        core.Encoder(f"local-dir:{folder}")


@needs_open_clip
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_close_and_leaves_in_single(dtype: str, checkpoints: dict[str, str]) -> None:
    half = core.Encoder("parity-small", checkpoints["parity-small"], "cpu", dtype)
    exact = core.Encoder("parity-small", checkpoints["parity-small"], "cpu")
    for features, expected in [
        (half.encode_images([noise(0), noise(1)]), exact.encode_images([noise(0), noise(1)])),
        (half.encode_texts(["a red cat", "dog"])[0], exact.encode_texts(["a red cat", "dog"])[0]),
    ]:
        assert features.dtype == np.float32
        assert (features != expected).any()
        assert scores_of(features, expected) == pytest.approx([1, 1], abs=0.01)
    signatures = [core.compute([noise(0)], ["a"], encoder=encoder, n_resamples=0)["signature"] for encoder in (half, exact)]
    assert signatures[0] == signatures[1].replace("|v:", f"|dtype:{dtype}|v:")


@needs_open_clip
def test_any_language_is_told_apart_by_a_tokenizer_of_its_own(checkpoints: dict[str, str]) -> None:
    encoder = core.Encoder("parity-worldwide", checkpoints["parity-worldwide"], "cpu")
    features, _ = encoder.encode_texts(["red", "लाल"])
    assert features[0] != pytest.approx(features[1], abs=1e-3)


@needs_open_clip
def test_compute_loads_the_checkpoint_once_and_names_it(checkpoints: dict[str, str], load: Load) -> None:
    core.load_encoder.cache_clear()
    images, prompts = [noise(0), noise(1), None], ["a red cat", "dog", "dog"]
    given: dict[str, Any] = {"model": "parity-small", "pretrained": checkpoints["parity-small"], "device": "cpu", "n_resamples": 20}
    answer = compute(images, prompts, **given, batch_size=1)
    assert compute(images, prompts, **given)["clip_score"] == pytest.approx(answer["clip_score"], abs=1e-6)
    assert core.load_encoder.cache_info().misses == 1
    fields = answer["signature"].split("|")
    assert fields[1] == "model:parity-small"
    assert fields[2].startswith("pretrained:parity-small.pt@")
    assert str(Path(checkpoints["parity-small"]).parent) not in answer["signature"]
    assert load("clip_score").compute(images=images, prompts=prompts, **given)["clip_score"] == pytest.approx(
        answer["clip_score"], abs=1e-6
    )


@needs_open_clip
@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"model": "ViT-H-14-worldwid"}, "model: expected one of open_clip.list_models.., such as 'ViT-H-14-worldwide"),
        ({"model": "ViT-H-14-worldwide"}, "another activation than 'ViT-H-14-worldwide' has. Fix: model='ViT-H-14-worldwide-quickgelu'"),
        ({"model": 3}, "model: expected one of"),
        ({"pretrained": "openai"}, "pretrained: expected a file of weights or one of 'metaclip2_worldwide' for the model"),
        ({"pretrained": ""}, "pretrained: expected"),
        ({"pretrained": None}, "pretrained: expected"),
        ({"model": "ViT-B-32", "pretrained": "openai"}, "another activation than 'ViT-B-32' has. Fix: model='ViT-B-32-quickgelu'"),
        ({"device": "abacus"}, "device: expected one that torch has here, such as 'cpu', got 'abacus'"),
    ],
)
def test_no_checkpoint_is_ever_made_up(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compute(**ROWS, **keywords)


@needs_open_clip
def test_both_checkpoints_of_the_study_are_open_clips() -> None:
    for model in (core.DEFAULT_MODEL, "ViT-H-14-worldwide-378"):
        assert core._weights(open_clip, model, core.DEFAULT_PRETRAINED) == core.DEFAULT_PRETRAINED


@needs_open_clip
def test_weights_that_cannot_be_had_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    with pytest.raises(RuntimeError) as error:
        compute(**ROWS)
    told = str(error.value)
    assert "'ViT-H-14-worldwide-quickgelu', 'metaclip2_worldwide' could not be loaded" in told
    for fix in (
        "hf download timm/vit_huge_patch14_clip_224.metaclip2_worldwide",
        "hf download facebook/xlm-v-base",
        "pretrained=",
        "encoder=",
    ):
        assert fix in told
    assert "\n" not in told


@needs_open_clip
def test_a_file_that_holds_other_weights_is_told(checkpoints: dict[str, str]) -> None:
    with pytest.raises(RuntimeError, match="could not be loaded"):
        compute(**ROWS, model="parity-small", pretrained=checkpoints["parity-worldwide"], device="cpu")


def test_an_image_counts_as_it_is_shown(tmp_path: Path, load: Any) -> None:
    """A camera held upright notes so beside pixels that lie on their side: path, bytes and opened image are turned alike."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    file = tmp_path / "upright.png"
    Image.new("RGB", (20, 10), "red").save(file, exif=exif)
    seen: list[tuple[int, int]] = []

    class Sizes(Colours):
        def encode_images(self, images: Any) -> Any:
            seen.extend(image.size for image in images)
            return super().encode_images(images)

    with Image.open(file) as opened:
        cells = [str(file), file.read_bytes(), {"bytes": None, "path": str(file)}, opened]
        core.compute(cells, ["red"] * 4, encoder=Sizes(), n_resamples=0)
        metric = load("clip_score")
        metric.add_batch(images=cells, prompts=["red"] * 4)
    metric.compute(encoder=Sizes(), n_resamples=0)
    assert seen == [(10, 20)] * 8
