"""A pipeline's settings, records and ways of being carried out, on small random weights."""

from __future__ import annotations

import shutil
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.models import load
from t2i_parity.generate.run import Run, fingerprint

pytest.importorskip("diffusers")
torch = pytest.importorskip("torch")

SMALL = {"width": "64", "height": "64", "steps": "2", "device": "cpu"}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from small_models import FAMILIES

    root = tmp_path_factory.mktemp("pipelines")
    return {name: FAMILIES[name](root / name) for name in ("sd", "sdxl", "flux", "qwen-image")}


def rows(*texts: str) -> list[dict[str, Any]]:
    return [{"prompt_id": str(number), "prompt": text, "language": "en"} for number, text in enumerate(texts)]


def pixels(made: Any) -> np.ndarray:
    return np.stack([np.asarray(each.result() if isinstance(each, Future) else each, dtype=np.int16) for each in made])


def model(folders: dict[str, Path], family: str, **more: str) -> Any:
    return load(str(folders[family]), {**SMALL, **more})


# What decides the pixels


def test_the_record_holds_the_pipelines_own_defaults(folders: dict[str, Path]) -> None:
    record = load(str(folders["sdxl"]), {"device": "cpu"}).record()
    assert (record["steps"], record["guidance"], record["width"], record["height"]) == (50, 5.0, 64, 64)
    assert (record["dtype"], record["guidance_argument"], record["safety_checker"]) == ("float32", "guidance_scale", False)
    record = load(str(folders["qwen-image"]), {"device": "cpu"}).record()
    assert (record["guidance_argument"], record["guidance"], record["max_sequence_length"]) == ("true_cfg_scale", 4.0, 512)


@pytest.mark.parametrize(("family", "step"), [("flux", 4), ("qwen-image", 8)])
def test_a_size_that_the_pipeline_would_round_is_refused(folders: dict[str, Path], family: str, step: int) -> None:
    with pytest.raises(InputError, match=rf"multiples of {step}: --set width={64 + step - 1} would become 64\. Give 64 or {64 + step}$"):
        model(folders, family, width=str(64 + step - 1))
    wide = model(folders, family, width=str(64 + step))
    assert pixels(wide.generate(rows("a dog"), [1])).shape == (1, 64, 64 + step, 3)
    assert wide.record()["width"] == 64 + step


def test_a_picture_of_another_size_than_the_record_says_ends_the_run(folders: dict[str, Path]) -> None:
    odd = model(folders, "sd", decode="inline")
    odd.settings = replace(odd.settings, width=72)
    with pytest.raises(InputError, match=r"makes 64 × 64 pixels of --set width=72"):
        odd.generate(rows("a dog"), [1])


def test_the_record_tells_how_parts_were_quantized(folders: dict[str, Path]) -> None:
    made = model(folders, "sd")
    plain = made.record()
    assert "quantization" not in plain
    told = {"quant_method": "torchao", "quant_type": "int8wo"}
    made._pipeline.unet.register_to_config(quantization_config=told)
    assert made.record() == {**plain, "quantization": {"unet": told}}
    assert fingerprint(made.record()) != fingerprint(plain)


def test_an_effective_setting_changes_the_fingerprint_and_a_way_of_doing_it_does_not(folders: dict[str, Path]) -> None:
    plain = fingerprint(model(folders, "sd").record())
    assert fingerprint(model(folders, "sd", guidance="7.5").record()) == plain, "the default, said aloud"
    for changed in ({"guidance": "7"}, {"steps": "3"}, {"negative_prompt": "grey"}, {"dtype": "bfloat16"}):
        assert fingerprint(model(folders, "sd", **changed).record()) != plain
    for same in ({"decode": "beside"}, {"text_encoders": "release"}, {"channels_last": "yes"}, {"vae": "tiled"}, {"warm_start": "yes"}):
        other = model(folders, "sd", **same)
        assert fingerprint(other.record()) == plain
        other.check(rows("a dog"))
        assert other.execution() != model(folders, "sd").execution(), "run.json says it"


def test_guidance_goes_to_the_argument_that_the_pipeline_heeds(folders: dict[str, Path]) -> None:
    for family, more in (("sdxl", {}), ("flux", {}), ("qwen-image", {"negative_prompt": "grey"})):
        weak, strong = (pixels(model(folders, family, guidance=scale, **more).generate(rows("a dog"), [1])) for scale in ("1.5", "9"))
        assert np.abs(weak - strong).max() > 2, family


def test_a_negative_prompt_is_encoded_and_heeded(folders: dict[str, Path]) -> None:
    for family, more in (("sd", {}), ("sdxl", {}), ("qwen-image", {}), ("flux", {"true_guidance": "4"})):
        one, other = (
            pixels(model(folders, family, negative_prompt=text, **more).generate(rows("a dog"), [1])) for text in ("x", "grey sky")
        )
        assert np.abs(one - other).max() > 2, family


def test_a_setting_without_effect_is_an_error(folders: dict[str, Path]) -> None:
    for family, more, message in (
        ("sd", {"max_sequence_length": "50"}, "StableDiffusionPipeline takes no max_sequence_length"),
        ("sd", {"true_guidance": "2"}, "StableDiffusionPipeline takes no true_guidance"),
        ("flux", {"negative_prompt": "grey"}, "makes no use of --set negative_prompt at this guidance. Give --set true_guidance above 1"),
        ("flux", {"true_guidance": "4"}, "makes no use of --set true_guidance without --set negative_prompt"),
        ("qwen-image", {"true_guidance": "4"}, "has true guidance alone: give it as --set guidance=4"),
        ("qwen-image", {"negative_prompt": "x", "guidance": "1"}, "Give --set guidance above 1"),
        ("flux", {"channels_last": "yes"}, "is for UNets, and FluxPipeline has none"),
        ("sd", {"attention": "nothing"}, "--set attention=nothing"),
    ):
        with pytest.raises(InputError, match=message.replace("(", r"\(")):
            model(folders, family, **more)


def test_a_longer_limit_lets_the_end_of_a_text_be_seen(folders: dict[str, Path]) -> None:
    ends = ["x" * 300 + "red", "x" * 300 + "blue"]
    with torch.inference_mode():
        short, long = (model(folders, "flux", max_sequence_length=limit)._texts.encode(ends) for limit in ("200", "500"))
    assert torch.equal(*(each["prompt_embeds"] for each in short))
    assert not torch.equal(*(each["prompt_embeds"] for each in long))


# How it is carried out


def test_texts_are_encoded_once_and_the_cache_is_bounded(folders: dict[str, Path]) -> None:
    small = model(folders, "sd", text_cache_gib=str(2.5 * 77 * 32 * 4 / 2**30))  # two and a half texts
    small.generate(rows("one", "two", "one"), [1, 2, 3])
    assert small._texts.calls == 2, "the negative text, and both distinct texts in one call"
    small.generate(rows("two", "one"), [1, 2])
    assert small._texts.calls == 2
    small.generate(rows("three"), [1])
    assert small._texts.cache.get("two") is None, "used longest ago"
    assert small._texts.cache.get("one") is not None
    assert small._texts.cache.bytes <= small._texts.cache.limit


def test_encoders_stay_when_the_texts_do_not_fit(folders: dict[str, Path]) -> None:
    tight = model(folders, "sd", text_encoders="release", text_cache_gib="0.00001")
    tight.check(rows("one", "two", "three"))
    assert tight.execution()["text_encoders"] == "kept"
    tight.generate(rows("one"), [1])
    assert not tight._texts.released


def test_only_what_is_to_be_made_is_encoded(folders: dict[str, Path]) -> None:
    lean = model(folders, "sd", text_encoders="release")
    lean.check(rows(*(f"text {number}" for number in range(40))))
    lean.prepare(rows("text 3", "text 5"))
    kept = [number for number in range(40) if lean._texts.cache.get(f"text {number}") is not None]
    assert {3, 5} <= set(kept)
    assert len(kept) <= 3, "and the one by which it was found out how large they are"


def test_rows_sort_by_pixels_and_length(folders: dict[str, Path]) -> None:
    made = model(folders, "sd")
    assert made.batch_key({"prompt": "ab", "render_text": None}) == (4096, 2)
    assert made.batch_key({"prompt": "ab", "render_text": "c"}) > made.batch_key({"prompt": "abc", "render_text": "c"})


def test_repeated_blocks_are_compiled(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Captured and run by PyTorch's own graph compiler, with its eager backend: the code generator takes minutes here."""
    whole = torch.nn.Module.compile
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, *a, **k: whole(self, *a, **{**k, "backend": "eager"}))
    compiled = model(folders, "sdxl", compile="repeated_blocks")
    blocks = [part for part in compiled._pipeline.unet.modules() if type(part).__name__ == "BasicTransformerBlock"]
    assert blocks
    assert all(block._compiled_call_impl is not None for block in blocks)
    made = pixels(compiled.generate(rows("a dog"), [1]))
    assert np.abs(made - pixels(model(folders, "sdxl").generate(rows("a dog"), [1]))).max() <= 2
    assert compiled.execution()["compile"] == "repeated_blocks"
    assert compiled.execution()["warm_start"] is True


def test_the_attention_that_runs_is_told(folders: dict[str, Path]) -> None:
    assert model(folders, "sd").execution()["attention"] == {"backend": "native", "processors": ["AttnProcessor2_0"]}
    chosen = model(folders, "flux", attention="_native_math")
    assert chosen.execution()["attention"]["backend"] == "_native_math"
    assert np.abs(pixels(chosen.generate(rows("a"), [1])) - pixels(model(folders, "flux").generate(rows("a"), [1]))).max() <= 2


def test_a_decoder_that_raises_is_heard_by_those_who_wait(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    beside = model(folders, "sd", decode="beside", decode_batch="1")
    whole = beside._pipeline.vae.decode
    calls: list[int] = []

    def second_fails(latents: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("CUDA out of memory")
        return whole(latents, **more)

    monkeypatch.setattr(beside._pipeline.vae, "decode", second_fails)
    first, *others = beside.generate(rows("a", "b", "c"), [1, 2, 3])
    assert first.result().size == (64, 64)
    for other in others:
        with pytest.raises(RuntimeError, match="out of memory"):
            other.result()


# What is no picture


def test_values_that_are_no_numbers_are_a_failure_and_cost_no_other_row(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    made = model(folders, "sd")
    whole = made._pipeline.vae.decode

    def broken(latents: Any, **more: Any) -> Any:
        (decoded,) = whole(latents, **more)
        decoded[0, 0, 0, 0] = float("nan")
        return (decoded,)

    monkeypatch.setattr(made._pipeline.vae, "decode", broken)
    bad, good = made.generate(rows("a", "b"), [1, 2])
    assert bad == Failure("the model gave values that are no numbers; --set dtype=float32 may help")
    assert good.size == (64, 64)


def test_the_checker_that_a_checkpoint_brings_refuses_or_is_left_out(folders: dict[str, Path], tmp_path: Path) -> None:
    from diffusers import StableDiffusionPipeline
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessor

    vision = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 8,
    }
    checker = StableDiffusionSafetyChecker(CLIPConfig(vision_config=vision, projection_dim=16))
    for name, limit in (("concept_embeds_weights", -1.0), ("special_care_embeds_weights", 2.0)):
        getattr(checker, name).data.fill_(limit)  # every image is over this limit, none over the other
    extractor = CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    pipeline = StableDiffusionPipeline.from_pretrained(folders["sd"], safety_checker=checker, feature_extractor=extractor)
    pipeline.save_pretrained(tmp_path / "guarded")

    own = load(str(tmp_path / "guarded"), SMALL)
    assert own.record()["safety_checker"] is True
    assert own.generate(rows("a"), [1]) == [Failure("the pipeline's safety checker withheld the image", refused=True)]
    without = load(str(tmp_path / "guarded"), {**SMALL, "safety_checker": "none"})
    assert without.record()["safety_checker"] is False
    assert without.generate(rows("a"), [1])[0].size == (64, 64)


def test_a_pipeline_of_another_class_runs_as_its_own_code_does(folders: dict[str, Path], tmp_path: Path) -> None:
    """Not declared: no texts encoded apart, no latents decoded apart, and the same seeds."""
    shutil.copytree(folders["sd"], tmp_path / "lcm")
    index = tmp_path / "lcm" / "model_index.json"
    written = index.read_text().replace("StableDiffusionPipeline", "LatentConsistencyModelPipeline")
    index.write_text(written.replace("DDIMScheduler", "LCMScheduler"))
    from diffusers import LCMScheduler, UNet2DConditionModel

    unet = UNet2DConditionModel.from_pretrained(tmp_path / "lcm" / "unet")
    UNet2DConditionModel.from_config({**unet.config, "time_cond_proj_dim": 8}).save_pretrained(tmp_path / "lcm" / "unet")
    LCMScheduler(original_inference_steps=10).save_pretrained(tmp_path / "lcm" / "scheduler")
    made: Any = load(str(tmp_path / "lcm"), SMALL)
    assert made.record()["pipeline"] == "LatentConsistencyModelPipeline"
    assert made.execution()["texts_encoded_apart"] is False
    four = pixels(made.generate(rows("a", "b", "c", "d"), [1, 2, 3, 4]))
    assert np.abs(four[3] - pixels(made.generate(rows("d"), [4]))[0]).max() <= 2


# Through the command


def test_images_per_prompt_and_the_execution_stand_in_the_run(folders: dict[str, Path], prompts: Path, tmp_path: Path) -> None:
    command(
        "generate", "--model", folders["sdxl"], "--prompts", prompts, "--config", "lingt2i_content", "--languages", "en,ar", "--limit", 4,
        "--images-per-prompt", 2, "--set", "steps=1", "--set", "device=cpu", "--set", "text_encoders=release", "--set", "decode=beside",
        "--out", tmp_path / "run",
    )  # fmt: skip
    run = Run.open(str(tmp_path / "run"))
    made = run.images().read().to_pylist()
    assert len(made) == 8
    assert {row["status"] for row in made} == {"ok"}
    seeds = {(row["pair_id"], row["seed_index"]): {each["seed"] for each in made if each["pair_id"] == row["pair_id"]} for row in made}
    assert all(len(each) == 2 for each in seeds.values()), "two seeds a pair, shared by its languages"
    assert run.record["execution"]["decode"] == "beside"
    assert run.record["execution"]["text_encoders"] == "released after all texts were encoded"
    assert run.record["identity"]["model"]["steps"] == 1
