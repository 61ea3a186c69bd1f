"""Weights are told apart by every byte, and a second look at them is quick."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import images
from t2i_parity.generate.backends import identity
from t2i_parity.generate.backends.identity import content_name, file_sha256, files_sha256, place_name
from t2i_parity.generate.run import Run

MIB = 2**20


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, which takes files that have just been written."""
    monkeypatch.setattr(identity, "_STILL", 0.0)
    monkeypatch.setenv(identity.VARIABLE, str(tmp_path / "cache" / "hashes.json"))
    return tmp_path / "cache" / "hashes.json"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a sparse file of 80 MiB."""
    folder = tmp_path / "model"
    (folder / "unet").mkdir(parents=True)
    (folder / "model_index.json").write_text("{}")
    with open(folder / "unet" / "model.safetensors", "wb") as file:
        file.truncate(80 * MIB)
    return folder


def edit(file: Path, at: int, byte: bytes = b"\1") -> None:
    """Change one byte in place, and put the file's own times back."""
    before = file.stat()
    with open(file, "r+b") as opened:
        opened.seek(at)
        opened.write(byte)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("at", [0, 40 * MIB, 64 * MIB + 1, 80 * MIB - 1])
def test_one_byte_anywhere_changes_every_image_id(model: Path, at: int) -> None:
    def ids() -> set[str]:
        rows = [{"prompt_id": f"p{number}", "pair_id": "m", "text_sha256": "t"} for number in range(3)]
        record = {"model": model.name, "files_sha256": files_sha256(model)}
        return {row["image_id"] for row in images.planned(rows, record, seed=1, images_per_prompt=2)}

    before = ids()
    assert ids() == before, "from the cache"
    edit(model / "unet" / "model.safetensors", at)
    assert not ids() & before
    edit(model / "unet" / "model.safetensors", at, b"\0")
    assert ids() == before


def test_a_second_look_reads_nothing(model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = files_sha256(model)
    monkeypatch.setattr(identity, "_hashed", lambda form, files: "read")
    assert files_sha256(model) == first
    monkeypatch.setenv(identity.VARIABLE, "off")
    assert files_sha256(model) == "read"
    monkeypatch.setenv(identity.VARIABLE, str(cache))
    with open(model / "unet" / "model.safetensors", "ab") as file:
        before = os.fstat(file.fileno())
        file.write(b"\0")
    os.utime(model / "unet" / "model.safetensors", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert files_sha256(model) == "read", "another size"
    assert file_sha256(model / "model_index.json") == "read", "what is read in no time is not kept"


@pytest.mark.parametrize(
    "held",
    [b"", b"{", b"[1]", b"[" * 100_000, b"\xff\xfe", b'{"a": "b"}', b"null", None],
    ids=["empty", "torn", "list", "deep", "bytes", "words", "null", "folder"],
)
def test_a_cache_that_is_none_is_ignored(model: Path, cache: Path, held: bytes | None) -> None:
    expected = files_sha256(model)
    (key,) = json.loads(cache.read_bytes())
    cache.unlink()
    if held is None:
        cache.mkdir()
    else:
        cache.write_bytes(held)
    assert files_sha256(model) == expected
    assert held is None or json.loads(cache.read_bytes()) == {key: expected}
    if held is not None:
        for wrong in ("0" * 63, "G" * 64, "0" * 64 + "\n", 7, None, ["0" * 64]):
            cache.write_text(json.dumps({key: wrong}))
            assert files_sha256(model) == expected


def test_a_file_that_has_just_been_written_is_read_again(model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_STILL", 3600.0)
    files_sha256(model)
    assert not cache.exists(), "a second write within the clock's tick would not show"


def test_names_count_and_places_do_not(model: Path, tmp_path: Path) -> None:
    expected = files_sha256(model)
    shutil.copytree(model, tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / ".cache").mkdir()
    (tmp_path / "elsewhere" / ".cache" / "model.safetensors.metadata").write_text("fetched on Monday")
    assert files_sha256(tmp_path / "elsewhere") == expected
    shutil.move(tmp_path / "elsewhere" / "unet", tmp_path / "unet")
    (tmp_path / "elsewhere" / "unet").symlink_to(tmp_path / "unet")
    (tmp_path / "unet" / "again").symlink_to(tmp_path / "elsewhere")
    assert files_sha256(tmp_path / "elsewhere") == expected, "links are followed, in no circles"
    (tmp_path / "unet" / "model.safetensors").rename(tmp_path / "unet" / "other.safetensors")
    assert files_sha256(tmp_path / "elsewhere") != expected


def test_what_signatures_say(model: Path) -> None:
    index = model / "model_index.json"
    assert content_name(index) == f"model_index.json@{hashlib.sha256(index.read_bytes()).hexdigest()[:12]}"
    assert content_name(model) == f"model@{files_sha256(model)[:12]}"
    place = place_name(model)
    index.write_text("[]")
    assert place_name(model) == place, "a program may write beside its weights"
    edit(model / "unet" / "model.safetensors", 40 * MIB)
    assert place_name(model) != place
    (model / "gone.bin").symlink_to("nowhere")
    assert content_name(model) == f"model@{files_sha256(model)[:12]}"
    with pytest.raises(InputError, match=r"gone\.bin cannot be read"):
        file_sha256(model / "gone.bin")


def test_a_run_under_the_short_hash_is_told_of(tmp_path: Path) -> None:
    Run.start(str(tmp_path / "run"), "generation", identity={"model": {"files_sha256": "aa"}}, details={}).write_record()
    with pytest.raises(InputError, match=r"model\.files_sha256: 'aa' there, 'bb' asked.*first and last MiB.*another --out"):
        Run.start(str(tmp_path / "run"), "generation", identity={"model": {"files_sha256": "bb"}}, details={})
