"""Proxies: judges through the real commands, on small networks of random weights, and proxies against ratings that are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import command
from geography_study import ratings, truth
from picture_runs import noise, observations, picture_run
from small_clip import checkpoint

from t2i_parity.dataset_builder.countries import COUNTRIES
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.sources.geo import prompt
from t2i_parity.generate.run import Run
from t2i_parity.metrics.clip_score import core
from t2i_parity.validation.geography.proxies import ProxyResult, by_neighbours, by_similarity, items, read_runs
from t2i_parity.validation.geography.study import Study, study_of

COUNTRIES_HERE = ("IND", "JPN", *(code for code in COUNTRIES if code not in ("IND", "JPN")))[:12]


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of(ratings(truth(3, COUNTRIES_HERE), 0, per_country=6)[0])


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    return checkpoint(tmp_path_factory.mktemp("clip"), "parity-geography")


def of(results: list[ProxyResult], condition: str) -> ProxyResult:
    return next(result for result in results if result.condition == condition)


def human_scores(study: Study) -> dict[tuple[str, str], float]:
    found = items(study)
    return {
        (study.images[image], study.countries[country]): float(value)
        for image, country, value in zip(found.image, found.country, found.human, strict=True)
    }


def test_a_perfect_proxy_is_better_and_a_blind_one_is_not(study: Study) -> None:
    human = human_scores(study)
    for result in by_similarity(study, {key: (value - 5) / 10 for key, value in human.items()}):
        assert result.mse == pytest.approx(0, abs=1e-12)
        assert (result.pearson_countries, result.pearson_images, result.pairwise) == pytest.approx((1, 1, 1))
        assert result.useful
        assert result.verdict == "better than the constant 3.0, and than the mean of other countries"
        assert result.n == len(human) / (1 if result.condition == "both" else 2)
    both = of(by_similarity(study, human), "both")
    # 2 images by 2 a noun, model and country; the few ties and reversals of noisy ratings are no such pairs.
    assert 0.7 * 4 * 20 * len(study.countries) < both.named_pairs < 4 * 20 * len(study.countries)
    assert both.named_agreed == 1
    assert of(by_similarity(study, human), "country").named_pairs == 0
    rng = np.random.default_rng(0)
    blind = of(by_similarity(study, {key: float(rng.normal()) for key in human}), "both")
    assert blind.pairwise == pytest.approx(0.5, abs=0.06)
    assert abs(blind.pearson_images or 0) < 0.15
    assert blind.mse > (blind.mse_mean or 0) * 0.95
    reversed_order = of(by_similarity(study, {key: -value for key, value in human.items()}), "both")
    assert (reversed_order.pairwise, reversed_order.pearson_images) == pytest.approx((0, -1))


def test_the_baseline_and_the_verdict_are_those_of_their_definitions(study: Study) -> None:
    found = items(study)
    human = human_scores(study)
    result = of(by_neighbours(study, {image: np.array([1.0, 0.0]) for image in study.images}), "country")
    assert result.mse_baseline == pytest.approx(np.mean((found.human[found.condition == 1] - 3.0) ** 2))
    assert (result.difference, result.n_missing) == (pytest.approx(result.mse - result.mse_baseline), 0)
    for low, high, verdict in ((-0.1, 0.2, "no better"), (0.1, 0.3, "worse")):
        assert replace(result, low=low, high=high).verdict == f"{verdict} than the constant 3.0"
    blind = of(by_similarity(study, {key: float(number % 7) for number, key in enumerate(sorted(human))}), "unspecified")
    # A line through scores that say nothing is the mean of the other countries: where that beats 3.0, it is of no use all the same.
    assert blind.difference_mean == pytest.approx(0, abs=0.01)
    assert blind.low_mean < 0 < blind.high_mean
    beats = replace(blind, low=-0.3, high=-0.1)
    assert (beats.verdict, beats.useful) == ("better than the constant 3.0, but no better than the mean of other countries", False)
    mean = [found.human[(found.condition == 0) & (found.country != place)].mean() for place in range(len(study.countries))]
    rows = found.condition == 0
    assert blind.mse_mean == pytest.approx(np.mean((np.array(mean)[found.country[rows]] - found.human[rows]) ** 2))
    assert "too few countries" in replace(result, low=None, high=None).verdict
    some = dict(list(human.items())[:50])
    part = of(by_similarity(study, some), "both")
    assert (part.n, part.n_missing) == (50, len(human) - 50)


def test_neighbours_are_the_nearest_of_the_same_country_and_noun(study: Study) -> None:
    found = items(study)
    rng = np.random.default_rng(1)
    features = {image: rng.normal(size=5) for image in study.images}
    for fold, k in (("images", 1), ("images", 3), ("models", 1)):
        predicted = []
        for row in range(len(found.human)):
            others = [
                other
                for other in range(len(found.human))
                if other != row
                and found.country[other] == found.country[row]
                and found.noun[other] == found.noun[row]
                and (fold == "images" or found.model[other] != found.model[row])
            ]
            own = features[study.images[found.image[row]]]

            def cosine(other: int, own: Any = own) -> float:
                vector = features[study.images[found.image[other]]]
                return float(vector @ own / np.linalg.norm(vector) / np.linalg.norm(own))

            predicted.append(found.human[sorted(others, key=cosine)[-k:]].mean())
        result = of(by_neighbours(study, features, k=k, fold=fold), "both")  # type: ignore[arg-type]
        assert result.mse == pytest.approx(np.mean((np.array(predicted) - found.human) ** 2))
    # Features that are the ratings themselves find images that are rated alike; unspecified ones are every country's, and lie apart.
    telling = {image: np.array([0.0, 0.0, 1.0]) for image in study.images}
    for row in np.flatnonzero(found.condition == 1):
        angle = found.human[row] / 5
        telling[study.images[found.image[row]]] = np.array([np.cos(angle), np.sin(angle), 0.0])
    told, guessed = (of(by_neighbours(study, each), "country") for each in (telling, features))
    assert told.mse < 0.5 * guessed.mse
    assert (told.useful, guessed.useful) == (True, False)
    with pytest.raises(InputError, match="lengths 2, 3"):
        by_neighbours(study, {study.images[0]: np.ones(2), study.images[1]: np.ones(3)})
    with pytest.raises(InputError, match="at least 1"):
        by_neighbours(study, features, k=0)


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory, weights: str) -> tuple[Path, Run]:
    """Ratings, and a run with the images that they are of, judged by clip-countries, clip and features."""
    folder = tmp_path_factory.mktemp("rated")
    table, _ = ratings(truth(3, COUNTRIES_HERE[:2]), 0, per_country=3)
    (folder / "ratings").mkdir()
    pq.write_table(table, folder / "ratings" / "part-0.parquet")
    rows: dict[str, dict[str, Any]] = {}
    for row in table.filter(table["image_id"].is_valid()).to_pylist():
        country = row["country"] if row["condition"] == "country" else None
        text = prompt(row["noun"], COUNTRIES[country] if country else None)
        rows[row["image_id"]] = {"image_id": row["image_id"], "noun": row["noun"], "country": country, "prompt": text, "subset": "geo"}
    run = picture_run(folder / "run", list(rows.values()), [noise(number, (32, 32)) for number in range(len(rows))])
    settings = ["--set", "model=parity-geography", "--set", f"pretrained={weights}", "--set", "device=cpu"]
    for judge in (["clip-countries", "--set", "countries=IND+JPN"], ["clip"], ["features"]):
        command("judge", run.url, "--with", *judge, *settings)
    return folder, run


def test_what_the_judges_saw(rated: tuple[Path, Run], weights: str) -> None:
    _, run = rated
    images = run.images().read(["image_id", "country", "noun"]).to_pylist()
    seen = observations(run, "clip-countries")
    unnamed = next(number for number, row in enumerate(images) if row["country"] is None)
    named = next(number for number, row in enumerate(images) if row["country"] == "JPN")
    assert seen[unnamed]["countries"] == ["IND", "JPN"]
    assert seen[named]["countries"] == ["JPN"]
    encoder = core.Encoder("parity-geography", weights, "cpu")
    for number, code in ((unnamed, "JPN"), (named, "JPN")):
        text = prompt(images[number]["noun"], COUNTRIES[code])
        expected = core.per_row([noise(number, (32, 32))], [text], encoder=encoder)["similarities"][0]
        assert dict(zip(seen[number]["countries"], seen[number]["similarities"], strict=True))[code] == pytest.approx(expected, abs=1e-6)
    assert "countries:IND+JPN" in seen[0]["judge"]
    features = observations(run, "features")
    assert features[0]["embedding"] == pytest.approx(encoder.encode_images([noise(0, (32, 32))])[0].tolist(), abs=1e-5)
    assert features[0]["judge"].startswith("features|family:open_clip|model:parity-geography|")
    found = read_runs([run.url])
    assert set(found.similarities) == {"clip", "clip-countries"}
    assert set(found.features) == {"features"}
    own, every = found.similarities["clip"], found.similarities["clip-countries"]
    assert all(every[key] == pytest.approx(value, abs=1e-6) for key, value in own.items())
    # Proxies' observations are no scores; clip's are.
    command("score", run.url, "--resamples", 0)
    assert {score.metric for score in run.scores()} == {"clip_score", "cross_lingual_gap"}


def test_the_command_validates_proxies_and_says_when_they_do_no_better(rated: tuple[Path, Run], tmp_path: Path) -> None:
    folder, run = rated
    done = command("geography", folder, "--run", run.url, "--out", tmp_path / "out")
    answer = json.loads((tmp_path / "out" / "geography.json").read_text(encoding="utf-8"))
    names = {each["proxy"] for each in answer["proxies"]}
    assert names == {
        "clip-countries, similarity",
        "clip, similarity",
        "features, 1 nearest of all other images",
        "features, 1 nearest of other models' images",
    }
    assert all(each["n"] and each["mse"] is not None for each in answer["proxies"] if each["proxy"].startswith("features"))
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "Can a machine stand in for raters?" in page
    for each in answer["proxies"]:
        assert f"Proxy {each['proxy']}" in done.stdout or each["mse"] is None
    assert "no better than the constant 3.0" in done.stdout or "worse than the constant 3.0" in done.stdout


@pytest.mark.parametrize(("family", "model"), [("timm", "resnet10t"), ("torchvision", "squeezenet1_1"), ("torchvision", "resnet18")])
def test_features_of_other_libraries(family: str, model: str, tmp_path: Path) -> None:
    import torch

    from t2i_parity.generate.judges import load

    torch.manual_seed(0)
    if family == "timm":
        import timm

        network = timm.create_model(model, pretrained=False)
    else:
        import torchvision

        network = torchvision.models.get_model(model, weights=None)
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    options = {"family": family, "model": model, "pretrained": str(tmp_path / "weights.pt"), "device": "cpu"}
    if model == "squeezenet1_1":
        with pytest.raises(InputError, match="no linear layer"):
            load("features", options)
        return
    judge = load("features", options)
    assert f"|family:{family}|model:{model}|pretrained:weights.pt@" in judge.signature()
    assert str(tmp_path) not in judge.signature()
    first, second, again = (row["embedding"] for row in judge.observe([{"image": noise(seed)} for seed in (0, 1, 0)]))  # type: ignore[index]
    assert len(first) == 512
    assert first == pytest.approx(again, abs=1e-4)
    assert first != pytest.approx(second, abs=1e-4)


def test_wrong_settings_of_the_judges(tmp_path: Path, weights: str) -> None:
    from t2i_parity.generate.judges import load

    clip = {"model": "parity-geography", "pretrained": weights, "device": "cpu"}
    with pytest.raises(InputError, match="unknown 'XYZ'"):
        load("clip-countries", {**clip, "countries": "IND+XYZ"})
    with pytest.raises(InputError, match="has no noun"):
        load("clip-countries", clip).check([{"noun": None, "country": None, "prompt_id": "a"}])
    with pytest.raises(InputError, match="unknown country 'QQQ'"):
        load("clip-countries", clip).check([{"noun": "house", "country": "QQQ", "prompt_id": "a"}])
    with pytest.raises(InputError, match="needs the name of a network"):
        load("features", {"family": "timm"})
    with pytest.raises(InputError, match="no such file"):
        load("features", {"family": "timm", "model": "resnet10t", "pretrained": str(tmp_path / "none")})
    (tmp_path / "other.pt").write_bytes(b"no weights")
    with pytest.raises(InputError, match=r"other\.pt does not hold the weights"):
        load("features", {"family": "timm", "model": "resnet10t", "pretrained": str(tmp_path / "other.pt")})
