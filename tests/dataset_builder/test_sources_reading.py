"""Upstreams are read wherever they stand: folders, files, URLs, the hub."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest
from loopback_hub import LoopbackHub, run_client
from upstreams import dialect_pairs, dialectgen, lingt2i, risky_prompt, sources

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.sources import SOURCES
from t2i_parity.dataset_builder.sources.dialect_pairs import FOLDER
from t2i_parity.dataset_builder.sources.reading import Upstream
from t2i_parity.dataset_builder.sources.risky_prompt import FILE

SMALL = sources()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address at which a web server gives its files."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_url_gives_what_the_folder_gives(served: tuple[Path, str]) -> None:
    root, url = served
    for name, make in (("lingt2i", lingt2i), ("dialect_pairs", dialect_pairs), ("dialectgen", dialectgen), ("risky_prompt", risky_prompt)):
        folder = make(root / name)
        local = SMALL[name].tables(folder)
        for place in (f"{url}/{name}", f"{url}/{name}/"):
            for config, table in SMALL[name].tables(place).items():
                assert table.equals(local[config]), name
    single = SMALL["risky_prompt"].tables(f"{url}/risky_prompt/{FILE}")
    assert single["dialect"].equals(SMALL["risky_prompt"].tables(root / "risky_prompt")["dialect"])


def test_any_file_system_of_fsspec_will_do(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    try:
        for name, make in (("lingt2i", lingt2i), ("dialect_pairs", dialect_pairs)):
            memory.put(str(make(tmp_path / name)), f"/{name}", recursive=True)
            for config, table in SMALL[name].tables(f"memory://{name}").items():
                assert table.equals(SMALL[name].tables(tmp_path / name)[config])
    finally:
        memory.store.clear()


def test_a_hub_id_gives_what_the_folder_gives_and_the_commit(tmp_path: Path) -> None:
    folder = lingt2i(tmp_path / "lingt2i")
    here = Path(__file__).parent.parent
    with LoopbackHub() as hub:
        done = run_client(
            f"""
            import sys
            sys.path.insert(0, {str(here)!r})
            import huggingface_hub, upstreams
            huggingface_hub.create_repo("lab/LingT2I", repo_type="dataset", exist_ok=True)
            commit = huggingface_hub.upload_folder(repo_id="lab/LingT2I", repo_type="dataset", folder_path={str(folder)!r})
            source = upstreams.sources()["lingt2i"]
            local = source.tables({str(folder)!r})
            for place in ("lab/LingT2I", "lab/LingT2I@" + commit.oid, "https://huggingface.co/datasets/lab/LingT2I"):
                for name, table in source.tables(place).items():
                    assert set(table["source_revision"].to_pylist()) == {{commit.oid}}
                    assert table.drop_columns("source_revision").equals(local[name].drop_columns("source_revision"))
            try:
                source.tables("lab/nothing")
            except Exception as error:
                print(type(error).__name__, error)
            """,
            hub,
            tmp_path,
        )
    assert done.stdout.startswith("InputError lab/nothing is neither a folder here nor a dataset that the hub gave")


@pytest.mark.parametrize(
    ("place", "url", "commit"),
    [
        ("https://github.com/a/b", "https://raw.githubusercontent.com/a/b/HEAD", None),
        ("https://github.com/a/b.git", "https://raw.githubusercontent.com/a/b/HEAD", None),
        ("https://github.com/a/b/tree/main", "https://raw.githubusercontent.com/a/b/main", None),
        (SOURCES["dialect_pairs"].default, None, SOURCES["dialect_pairs"].revision),
        (SOURCES["dialectgen"].default, "https://raw.githubusercontent.com/DialectGen/DialectGen/93c6bbe5", "93c6bbe5"),
    ],
)
def test_pages_of_github_are_read_from_its_raw_files(place: str, url: str | None, commit: str | None) -> None:
    upstream = Upstream(place)
    expected = url or f"https://raw.githubusercontent.com/minguinho26/dialect-penalty-t2i/{commit}/{FOLDER}"
    assert (upstream._root, upstream.commit) == (expected, commit)


def test_a_place_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such folder or file: .*nowhere"):
        Upstream(tmp_path / "nowhere")
    with pytest.raises(InputError, match="lab/nowhere is neither a folder here nor a dataset that the hub gave"):
        Upstream("lab/nowhere")
    with pytest.raises(InputError, match="cannot read nonsense://x"):
        Upstream("nonsense://x")


def test_names_with_glob_characters_are_only_names(tmp_path: Path) -> None:
    assert SMALL["lingt2i"].tables(lingt2i(tmp_path / "a[1]*"))["lingt2i_text"].num_rows == 20


def test_a_torn_parquet_file_is_told(tmp_path: Path) -> None:
    root = lingt2i(tmp_path)
    path = root / "data" / "text_rendering-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=rf"{path} is not a readable parquet file"):
        SMALL["lingt2i"].tables(root)
