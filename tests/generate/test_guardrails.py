"""Guardrails around small pipelines of random weights: same noise, the stated settings, and what they cannot guard refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command, error_of
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.guardrails import GUARDRAILS, load
from t2i_parity.generate.guardrails.model import GuardedModel
from t2i_parity.generate.guardrails.safe_latent_diffusion import CONCEPT, PRESETS, SafeLatentDiffusion, SafeLatentDiffusionSettings
from t2i_parity.generate.run import Run

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")

PROMPTS = ["a red house by the sea", "two goats on a flat roof"]
CALL: dict[str, Any] = {"num_inference_steps": 5, "width": 64, "height": 64, "guidance_scale": 10.0}


@pytest.fixture(scope="module", autouse=True)
def few_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    diffusers.utils.logging.set_verbosity_error()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from small_models import stable_diffusion

    return stable_diffusion(tmp_path_factory.mktemp("models") / "small-sd")


@pytest.fixture
def pipeline(folder: Path) -> Any:
    loaded = diffusers.StableDiffusionPipeline.from_pretrained(folder)
    loaded.set_progress_bar_config(disable=True)
    return loaded


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return safety_checker(tmp_path_factory.mktemp("checkers") / "all", blocks=True)


def safety_checker(folder: Path, *, blocks: bool) -> Path:
    """A small checker that finds every image too close to its concepts, or none."""
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessor

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "projection_dim": 16}
    vision = {**sizes, "image_size": 32, "patch_size": 16}
    built = StableDiffusionSafetyChecker(CLIPConfig(projection_dim=16, vision_config=vision, text_config=sizes))
    with torch.no_grad():
        # A cosine lies in [-1, 1], so that these thresholds are always, or never, passed.
        built.concept_embeds_weights.fill_(-2.0 if blocks else 2.0)
        built.special_care_embeds_weights.fill_(2.0)
    built.save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def made(pipeline: Any, **more: Any) -> np.ndarray:
    generators = [torch.Generator("cpu").manual_seed(seed) for seed in (11, 12)]
    output = pipeline(PROMPTS, generator=generators, **{**CALL, **more})
    return np.stack([np.asarray(image, dtype=np.int16) for image in output.images])


def apart(one: np.ndarray, other: np.ndarray) -> int:
    return int(np.abs(one - other).max())


# Safe Latent Diffusion


def test_the_presets_are_those_of_the_study_and_of_diffusers() -> None:
    from diffusers.pipelines.deprecated.stable_diffusion_safe import SafetyConfig

    names = ("safety_guidance", "warmup", "threshold", "momentum_scale", "momentum_beta")
    theirs = ("sld_guidance_scale", "sld_warmup_steps", "sld_threshold", "sld_momentum_scale", "sld_mom_beta")
    for preset in ("weak", "medium", "strong", "max"):
        config = getattr(SafetyConfig, preset.upper())
        assert [getattr(PRESETS[preset], name) for name in names] == [config[name] for name in theirs], preset
        assert PRESETS[preset].guidance is None
    assert [getattr(PRESETS["paper"], name) for name in names] == [2000, 7, 0.025, 0.5, 0.7]
    assert PRESETS["paper"].guidance == 10
    assert load("safe-latent-diffusion", {}).record()["preset"] == "paper"


def test_the_concept_is_diffusers_own(pipeline: Any) -> None:
    parts = {name: getattr(pipeline, name) for name in ("vae", "text_encoder", "tokenizer", "unet", "scheduler")}
    safe = diffusers.StableDiffusionPipelineSafe(**parts, safety_checker=None, feature_extractor=None, requires_safety_checker=False)
    assert safe.safety_concept == CONCEPT


def test_before_its_warm_up_ends_it_changes_nothing_and_then_it_does(pipeline: Any) -> None:
    unguarded = made(pipeline)
    idle = load("safe-latent-diffusion", {"warmup": "5"}).guard(pipeline)
    assert apart(made(idle), unguarded) <= 2, "same noise, same decoding"
    steering = load("safe-latent-diffusion", {"warmup": "0"}).guard(pipeline)
    assert apart(made(steering), unguarded) > 10
    assert apart(made(pipeline), unguarded) == 0, "the given pipeline stays unguarded"


def test_the_studys_guidance_takes_the_place_of_the_models(pipeline: Any) -> None:
    idle = {"warmup": "5"}
    at_ten = made(pipeline, guidance_scale=10.0)
    assert apart(made(load("safe-latent-diffusion", idle).guard(pipeline), guidance_scale=3.0), at_ten) <= 2
    own = load("safe-latent-diffusion", {**idle, "preset": "strong"}).guard(pipeline)
    assert apart(made(own, guidance_scale=3.0), made(pipeline, guidance_scale=3.0)) <= 2
    assert apart(made(own, guidance_scale=3.0), at_ten) > 2


def test_guidance_that_would_switch_it_off_is_refused(pipeline: Any) -> None:
    with pytest.raises(InputError, match=r"guidance 1\.0 switches that off"):
        made(load("safe-latent-diffusion", {"preset": "max"}).guard(pipeline), guidance_scale=1.0)
    with pytest.raises(InputError, match="--guard guidance=1: Input should be greater than 1"):
        load("safe-latent-diffusion", {"guidance": "1"})


def test_a_number_is_the_same_however_it_is_written() -> None:
    default = SafeLatentDiffusion(SafeLatentDiffusionSettings())
    assert default.record() == load("safe-latent-diffusion", {"safety_guidance": "2000"}).record()


# PromptGuard


def embeddings(path: Path, number: int, width: int = 32, name: str = "<safe>") -> Path:
    from safetensors.torch import save_file

    torch.manual_seed(number)
    save_file({name: torch.randn(number, width)}, path)
    return path


def promptguard(*paths: Path, **more: str) -> Any:
    return load("promptguard", {"embeddings": ",".join(map(str, paths)), **more})


def test_no_soft_tokens_change_nothing(pipeline: Any, tmp_path: Path) -> None:
    assert apart(made(promptguard(embeddings(tmp_path / "none.safetensors", 0)).guard(pipeline)), made(pipeline)) <= 2


def test_soft_tokens_do_what_textual_inversion_does_with_them(folder: Path, pipeline: Any, tmp_path: Path) -> None:
    one, two = embeddings(tmp_path / "one.safetensors", 2, name="<one>"), tmp_path / "two.bin"
    torch.save({"<two>": torch.randn(32)}, two)
    unguarded = made(pipeline)
    guarded = made(promptguard(one, two).guard(pipeline))
    theirs = diffusers.StableDiffusionPipeline.from_pretrained(folder)
    theirs.set_progress_bar_config(disable=True)
    theirs.load_textual_inversion([str(one), str(two)], token=["<one>", "<two>"])
    generators = [torch.Generator("cpu").manual_seed(seed) for seed in (11, 12)]
    output = theirs([f"{prompt} <one> <two>" for prompt in PROMPTS], generator=generators, **CALL)
    assert apart(guarded, np.stack([np.asarray(image, dtype=np.int16) for image in output.images])) <= 2
    assert apart(guarded, unguarded) > 2
    assert apart(made(pipeline), unguarded) == 0, "the given pipeline's vocabulary is as it was"


def test_a_long_prompt_gives_way_or_loses_its_guard(pipeline: Any, tmp_path: Path) -> None:
    path = embeddings(tmp_path / "three.safetensors", 3)
    words = pipeline.tokenizer.vocab_size
    guarded = promptguard(path).guard(pipeline)
    ids = guarded.ids("x" * 200)
    assert len(ids) == 77
    assert ids[-4:-1] == [words, words + 1, words + 2], "the tokens stand last before the end"
    assert guarded.components["tokenizer"].model_max_length == 74, "so much is left for a prompt"
    assert pipeline.tokenizer.model_max_length == 77
    as_published = promptguard(path, long_prompts="cut-tokens").guard(pipeline)
    assert max(as_published.ids("x" * 200)) < words
    assert as_published.ids("short")[6:9] == [words, words + 1, words + 2]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"<a>": (3, 48)}, r"embeddings of shape \(3, 48\), and this model's text encoder takes \(tokens, 32\)"),
        ({"<a>": (2, 2, 32)}, r"shape \(2, 2, 32\); expected finite floats of shape \(tokens, width\)"),
        ({"<a>": (1, 32), "<b>": (1, 32)}, "holds 2 embeddings where one is expected"),
        ({"<a>": (80, 32)}, "80 soft tokens do not fit into this model's 75"),
    ],
)
def test_embeddings_that_do_not_fit_are_told(pipeline: Any, tmp_path: Path, content: dict[str, tuple[int, ...]], told: str) -> None:
    torch.save({name: torch.ones(shape) for name, shape in content.items()}, tmp_path / "soft.pt")
    with pytest.raises(InputError, match=told):
        promptguard(tmp_path / "soft.pt").guard(pipeline)


def test_a_file_that_would_run_code_is_not_run(tmp_path: Path) -> None:
    import pickle

    class Bomb:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return (os.mkdir, (str(tmp_path / "ran"),))

    (tmp_path / "bomb.pt").write_bytes(pickle.dumps(Bomb()))
    for path in (tmp_path / "bomb.pt", tmp_path / "absent.safetensors", tmp_path):
        with pytest.raises(InputError, match="Give files of PromptGuard's embeddings"):
            promptguard(path)
    assert not (tmp_path / "ran").exists()


# The safety checker


def test_the_checker_withholds_or_lets_through(checker: Path, tmp_path: Path) -> None:
    images = [Image.new("RGB", (40, 30), colour) for colour in ("red", "blue")]
    assert load("safety-checker", {"source": str(checker)}).withheld(images) == ["blocked by the safety checker"] * 2
    mild = load("safety-checker", {"source": str(safety_checker(tmp_path / "none", blocks=False))})
    assert mild.withheld(images) == [None, None]
    assert mild.withheld([]) == []
    assert images[0].getpixel((0, 0)) == (255, 0, 0), "nothing is blackened"
    assert len(mild.record()["files_sha256"]) == 64
    with pytest.raises(InputError, match="is neither a folder nor a hub id with a safety checker"):
        load("safety-checker", {"source": str(tmp_path)})


class Painter:
    """A model that is no pipeline of diffusers."""

    name, columns, device = "painter", (), "cpu"

    def generate(self, rows: Any, seeds: Any) -> list[Any]:
        return [Failure("no paint") if seed == 0 else Image.new("RGB", (32, 32), "white") for seed in seeds]


def test_any_models_images_can_be_checked_and_only_a_pipeline_guarded_inside(checker: Path) -> None:
    model = GuardedModel(Painter(), load("safety-checker", {"source": str(checker)}))
    answers = model.generate([{}, {}], [0, 1])
    assert answers == [Failure("no paint"), Failure("blocked by the safety checker", refused=True)]
    assert model.name == "painter"
    with pytest.raises(InputError, match="guards pipelines of diffusers from the inside, and painter is none"):
        GuardedModel(Painter(), load("safe-latent-diffusion", {}))


# Through the command


def generate(folder: Path, prompts: Path, out: Path, *more: object) -> list[str]:
    return [
        "generate", "--model", str(folder), "--prompts", str(prompts), "--config", "dialect", "--limit", "4", "--set", "steps=2",
        "--set", "width=64", "--set", "height=64", "--out", str(out), *map(str, more),
    ]  # fmt: skip


def test_the_four_images_of_a_pair_share_a_seed_and_no_id(folder: Path, prompts: Path, tmp_path: Path) -> None:
    tokens = embeddings(tmp_path / "safe.safetensors", 2)
    guards: dict[str, list[str]] = {
        "unguarded": [],
        "sld": ["--guardrail", "safe-latent-diffusion", "--guard", "preset=weak"],
        "promptguard": ["--guardrail", "promptguard", "--guard", f"embeddings={tokens}"],
    }
    seeds: dict[tuple[str, str], set[int]] = {}
    ids: list[str] = []
    for name, arguments in guards.items():
        command(*generate(folder, prompts, tmp_path / name, *arguments))
        record = Run.open(str(tmp_path / name)).record
        guarded_by = record["identity"]["guardrail"]
        assert (guarded_by is None) == (name == "unguarded")
        assert str(tmp_path) not in str(record["arguments"])
        for row in Run.open(str(tmp_path / name)).images().read().to_pylist():
            assert row["status"] == "ok"
            seeds.setdefault((row["pair_id"], "any variety, any guardrail"), set()).add(row["seed"])
            ids.append(row["image_id"])
    assert len(ids) == len(set(ids)) == 12
    assert {len(values) for values in seeds.values()} == {1}
    message = error_of(*generate(folder, prompts, tmp_path / "sld"))
    assert "holds a run by other settings (guardrail" in message


def test_what_the_checker_withholds_is_a_refusal_in_the_run(folder: Path, prompts: Path, checker: Path, tmp_path: Path) -> None:
    command(*generate(folder, prompts, tmp_path / "run", "--guardrail", "safety-checker", "--guard", f"source={checker}"))
    rows = Run.open(str(tmp_path / "run")).images().read().to_pylist()
    assert {(row["status"], row["reason"], row["image"]) for row in rows} == {("refused", "blocked by the safety checker", None)}


def test_bad_guards_are_told_before_a_model_is_loaded(folder: Path, prompts: Path, tmp_path: Path) -> None:
    def told(*more: str) -> str:
        return error_of(*generate(folder, prompts, tmp_path / "run", *more))

    names = ", ".join(GUARDRAILS)
    assert f"unknown guardrail 'walls': expected one of {names}" in told("--guardrail", "walls")
    assert "safe-latent-diffusion has no setting 'strength'" in told("--guardrail", "safe-latent-diffusion", "--guard", "strength=9")
    assert "there is no guardrail to set; give --guardrail NAME too" in told("--guard", "preset=max")
    assert "--guard preset: expected NAME=VALUE" in told("--guardrail", "safe-latent-diffusion", "--guard", "preset")
    assert not (tmp_path / "run").exists()
