"""Models as programs of their own: a program that behaves, one that misbehaves in every way, and the declared ones."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import command, error_of
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.models import load
from t2i_parity.generate.models.adapter import Adapter, AdapterSettings
from t2i_parity.generate.models.adapters import ADAPTERS, PROGRAMS
from t2i_parity.generate.models.catalog import CATALOG
from t2i_parity.generate.run import Run

README = PROGRAMS.parent / "README.md"
PROGRAM = Path(__file__).parent / "adapter_program.py"
"""A program that does what the prompt says."""
FEW: dict[str, Any] = {"timeout": 60.0, "start_timeout": 120.0, "restarts": 3}
"""Long waits, for a busy machine; only tests of silence wait in earnest."""


@pytest.fixture
def adapters() -> Iterator[Any]:
    """Makes adapters of the misbehaving program, and ends what they started."""
    made: list[Adapter] = []

    def adapter(**more: Any) -> Adapter:
        made.append(Adapter("misbehaving", AdapterSettings(program=str(PROGRAM), **{**FEW, **more})))
        return made[-1]

    yield adapter
    for each in made:
        each.close()


def rows(*prompts: str, **more: Any) -> list[dict[str, Any]]:
    return [{"prompt": prompt, "language": "en", "render_text": None, "render_layout": None, **more} for prompt in prompts]


def made(adapter: Adapter, *prompts: str) -> list[Any]:
    return adapter.generate(rows(*prompts), list(range(100, 100 + len(prompts))))


def colours(answers: list[Any]) -> list[Any]:
    return [answer.getpixel((0, 0)) if isinstance(answer, Image.Image) else answer.reason for answer in answers]


# A program that behaves


def test_the_readmes_program_runs_as_it_stands_there(prompts: Path, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "mine.py").write_text(program)
    argv = [
        "generate", "--model", "adapter:mine", "--set", f"program={tmp_path / 'mine.py'}", "--set", "width=40", "--set", "height=24",
        "--prompts", str(prompts), "--config", "dialect", "--limit", "12", "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    command(*argv)
    run = Run.open(str(tmp_path / "run"))
    rows_made = run.images().read().to_pylist()
    assert [row["status"] for row in rows_made] == ["ok"] * 12
    assert {(row["width"], row["height"]) for row in rows_made} == {(40, 24)}
    record = run.record["identity"]["model"]
    assert (record["model"], record["revision"], record["seeds"]) == ("painter", "1", "honoured")
    assert len(record["program_sha256"]) == 64
    assert str(tmp_path) not in json.dumps(run.record), "no path of this machine"
    assert "0 images made now, 12 were there" in command(*argv).stdout
    # Another program is another model.
    (tmp_path / "mine.py").write_text(program + "\n")
    assert "program_sha256" in error_of(*argv)


def test_an_image_belongs_to_its_row_in_whichever_order_answers_come(adapters: Any) -> None:
    for batch in (1, 3):
        adapter = adapters(options=json.dumps({"batch": batch}))
        answers = made(adapter, "paint", "paint", "paint", "paint")
        assert colours(answers) == [(100, 0, 0), (101, 0, 0), (102, 0, 0), (103, 0, 0)]
    assert adapter.name == "misbehaving"
    assert adapter.device == "abacus"


def test_what_a_request_holds(adapters: Any) -> None:
    adapter = adapters(width=32, options=json.dumps({"style": "flat"}), places="here=.", steps=7)
    echoed = json.loads(made(adapter, "echo")[0].reason.removeprefix("the program reported: "))
    assert echoed["prompt"] == "echo"
    assert (echoed["seed"], echoed["width"], echoed["height"]) == (100, 32, None)
    assert echoed["hello"]["options"] == {"style": "flat"}
    assert echoed["hello"]["places"] == {"here": str(Path().resolve())}
    assert echoed["hello"]["steps"] == 7
    assert adapter.record()["places"] == {"here": Path().resolve().name}


def test_its_environment_is_its_own_and_has_no_keys(adapters: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "ours")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    (answer,) = made(adapters(), "environment")
    assert answer.reason == "the program reported: CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize("kind", ["positions", "glyphs"])
def test_a_condition_image_reaches_it(adapters: Any, kind: str) -> None:
    adapter = adapters(condition=kind, width=256)
    box = [[[100, 100], [900, 100], [900, 300], [100, 300]], [[0, 0], [99, 63]]]
    row = {"prompt": "condition", "language": "en", "render_text": "open", "render_layout": json.dumps([box])}
    adapter.check([row])
    told = json.loads(adapter.generate([row], [1])[0].reason.removeprefix("the program reported: "))
    if kind == "positions":
        assert told["size"] == [256, 256]
        assert told["layout"] == [box]
    else:
        assert told["size"][1] == 64
        assert told["layout"][0][1][0] == [0, 0]
        assert told["layout"][0][1][1][0] == told["size"][0] - 1
    assert told["texts"] == ["open"]
    assert {column.name for column in adapter.columns} >= {"render_text", "render_layout"}


# A program that misbehaves


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("error", "the program reported: ran out of paint"),
        ("outside", "the program named a file outside the exchange folder"),
        ("absolute", "the program named a file outside the exchange folder"),
        ("link", "the program named a file outside the exchange folder"),
        ("absent", "the program's image cannot be read (FileNotFoundError)"),
        ("folder", "the program named something that is no image file"),
        ("no-image", "not an image in PNG, JPEG, WEBP or GIF"),
        ("nothing", "the program answered without file, error or refused"),
        ("number", "the program answered without file, error or refused"),
    ],
)
def test_what_concerns_one_row_costs_that_row_alone(adapters: Any, does: str, reason: str) -> None:
    adapter = adapters()
    before, answer, after = made(adapter, "paint", does, "paint")
    assert isinstance(before, Image.Image)
    assert isinstance(after, Image.Image)
    assert answer.reason.startswith(reason)
    assert not answer.refused
    assert adapter._failures == 0, "the program was not started anew"


def test_a_refusal_is_one(adapters: Any) -> None:
    assert made(adapters(), "refuse") == [Failure("not that", refused=True)]


def test_stray_prints_do_no_harm(adapters: Any) -> None:
    assert colours(made(adapters(), "chatter", "paint")) == [(100, 0, 0), (101, 0, 0)]


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("die", r"ended with exit code 3; it last wrote: .*the last words"),
        ("killed", "was ended by SIGKILL"),
        ("garble", "wrote a line that is no JSON object"),
        ("flood", "wrote a line of more than"),
        ("mute", "closed its output and goes on|ended with exit code"),
    ],
)
def test_a_row_that_breaks_the_program_twice_has_failed_and_the_others_have_images(
    adapters: Any, does: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("t2i_parity.generate.models.adapter.PATIENCE", 0.3)
    adapter = adapters()
    starts: list[int] = []
    start = adapter._start
    monkeypatch.setattr(adapter, "_start", lambda: (starts.append(1), start())[1])
    before, broken, after = made(adapter, "paint", does, "paint")
    assert isinstance(before, Image.Image)
    assert isinstance(after, Image.Image)
    assert len(starts) == 2, "once to try the row again, once for the rows after it"
    assert re.search(rf"the program failed on this row twice: .*{told}", broken.reason), broken.reason


def test_a_program_that_broke_once_is_asked_again(adapters: Any, tmp_path: Path) -> None:
    answers = made(adapters(options=json.dumps({"marks": str(tmp_path), "batch": 3})), "paint", "die-once", "paint")
    assert colours(answers) == [(100, 0, 0), (101, 0, 0), (102, 0, 0)]


def test_silence_ends(adapters: Any) -> None:
    adapter = adapters(timeout=5.0)
    hung, after = made(adapter, "hang", "paint")
    assert "gave no answer in the time it has" in hung.reason
    assert isinstance(after, Image.Image)


def test_failures_in_a_row_end_the_run(adapters: Any) -> None:
    with pytest.raises(InputError, match=r"failed 4 times in a row: it ended with exit code 3; it last wrote: .*the last words"):
        made(adapters(), "die", "die", "die")


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("twice", "answered the request 000001 a second time"),
        ("stranger", "answered a request that nobody made"),
        ("no-id", "answered a request that nobody made"),
    ],
)
def test_answers_that_may_mix_up_images_end_the_run(adapters: Any, does: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        made(adapters(), does, "paint", "paint")


def test_it_must_come_back_as_the_same_model(adapters: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="came back as another model"):
        made(adapters(options=json.dumps({"marks": str(tmp_path), "changes": True})), "die-once")


def test_what_it_started_ends_with_it_and_the_folder_goes(adapters: Any, tmp_path: Path) -> None:
    adapter = adapters(options=json.dumps({"marks": str(tmp_path)}))
    made(adapter, "child")
    child = int((tmp_path / "child").read_text())
    exchange = Path(adapter._exchange.name)
    assert exchange.is_dir()
    assert Path(f"/proc/{child}").exists() or sys.platform != "linux"
    adapter.close()
    deadline = time.monotonic() + 30
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(child)
    assert not exchange.exists()


def _alive(process: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False).stdout.strip()
    return bool(state) and not state.startswith("Z")


# Before the first prompt


@pytest.mark.parametrize(
    ("ready", "told"),
    [
        ("die", "did not become ready: it ended with exit code 4; it last wrote: .*no such weights"),
        ("hang", "did not become ready: it gave no answer in the time it has"),
        ("version", "expected an answer with type ready, protocol 1 and model"),
        ("nameless", "expected an answer with type ready, protocol 1 and model"),
    ],
)
def test_a_program_that_does_not_become_ready_is_told(adapters: Any, ready: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        adapters(options=json.dumps({"ready": ready}), start_timeout=1.5 if ready == "hang" else 120.0)


def test_no_program_takes_a_zero_for_nothing() -> None:
    """``hello["guidance"] or 7.5`` would draw with 7.5 what the record says was drawn with 0."""
    found = []
    for program in PROGRAMS.glob("*.py"):
        for node in ast.walk(ast.parse(program.read_text())):
            if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and isinstance(node.values[1], ast.Constant):
                found.append(f"{program.name}: {ast.unparse(node)}")
    # Text that is to be rendered has no zero.
    assert [told for told in found if not told.endswith("or ''")] == []


def test_missing_pieces_are_told_before_anything_starts(tmp_path: Path) -> None:
    def told(source: str, **settings: str) -> str:
        with pytest.raises(InputError) as caught:
            load(f"adapter:{source}", settings)
        return str(caught.value)

    assert "there is no adapter 'imaginary': expected one of anytext, anytext2" in told("imaginary")
    assert "--set program=absent.py: there is no such file" in told("mine", program="absent.py")
    (tmp_path / "mine.sh").write_text("")
    assert "is not executable" in told("mine", program=str(tmp_path / "mine.sh"))
    assert "there is no such program" in told("mulan", python="no-such-python")
    assert "there is no such folder" in told("mulan", python=sys.executable, folder=str(tmp_path / "absent"))
    assert "examples/pixart_full.py is not in it" in told("mulan", python=sys.executable, folder=str(tmp_path))
    assert "there is nothing at /no/such/weights, which is given for unet" in told("omnidiffusion-sdxl", places="unet=/no/such/weights")
    assert "expected NAME=PATH,… with the names pixart, adapter, transformer" in told("mulan", places="vae=x")
    assert "expected a JSON object" in told("mulan", options="[1]")


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_declared_program_is_catalogued_and_says_what_it_needs(name: str) -> None:
    manifest = ADAPTERS[name]
    assert manifest.catalogued.family == "adapter"
    assert manifest.catalogued.repository
    assert manifest.commit or manifest.unpinned
    assert (PROGRAMS / manifest.program).is_file()
    with pytest.raises(InputError) as caught:
        load(name, {})
    message = str(caught.value)
    # The first thing that is missing is named, and then every step.
    for step in manifest.steps():
        assert step in message
    assert (f"(1) git clone {manifest.catalogued.repository} CLONE" in message) == bool(manifest.files)


def test_every_adapter_of_the_catalog_is_declared() -> None:
    assert {entry.source for entry in CATALOG.values() if entry.family == "adapter"} == set(ADAPTERS)


# Our wrappers, with stand-ins for the authors' packages: that they speak the protocol, not that the models work


def test_the_wrapper_of_anytext_speaks_to_its_pipeline(tmp_path: Path) -> None:
    clone = tmp_path / "AnyText"
    for name in ADAPTERS["anytext"].files:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text("")
    (clone / "modelscope").mkdir()
    (clone / "modelscope" / "__init__.py").write_text("")
    (clone / "modelscope" / "pipelines.py").write_text(
        "import numpy\n"
        "def pipeline(task, model, model_revision):\n"
        "    assert (task, model_revision) == ('my-anytext-task', 'v1.1.3')\n"
        "    def call(given, mode, **options):\n"
        "        print('noise on standard output')\n"
        "        assert mode == 'text-generation' and options['image_count'] == 1 and options['ddim_steps'] == 20\n"
        "        assert given['prompt'] == 'A board that says \"open\".', given\n"
        "        picture = numpy.full((options['image_height'], options['image_width'], 3), given['seed'], 'uint8')\n"
        "        return [picture], 0, '', ''\n"
        "    return call\n"
    )
    model: Any = load("anytext", {"python": sys.executable, "folder": str(clone), "width": "64", "height": "64"})
    row = {"prompt": "A board that says <sks1>.", "language": "en", "render_text": "open", "render_layout": None}
    (image,) = model.generate([row], [9])
    assert image.size == (64, 64)
    assert image.getpixel((0, 0)) == (9, 9, 9)
    assert model.record()["revision"] == "v1.1.3"
    assert model.record()["condition"] == "positions"
    model.close()


def test_the_wrapper_of_mulan_speaks_to_its_pipeline(tmp_path: Path) -> None:
    clone = tmp_path / "MuLan"
    (clone / "examples").mkdir(parents=True)
    (clone / "examples" / "pixart_full.py").write_text("")
    (clone / "mulankit.py").write_text("def transform(pipe, adapter_path):\n    pipe.adapter = adapter_path\n    return pipe\n")
    (clone / "torch.py").write_text(
        "float16 = 'half'\n"
        "class Generator:\n"
        "    def __init__(self, device): pass\n"
        "    def manual_seed(self, seed):\n"
        "        self.seed = seed\n"
        "        return self\n"
    )
    (clone / "diffusers.py").write_text(
        "from types import SimpleNamespace as Some\n"
        "from PIL import Image\n"
        "class Pipe:\n"
        "    def to(self, device, dtype): return self\n"
        "    def __call__(self, prompt, generator, width, height, **more):\n"
        "        assert self.adapter == 'mulanai/mulan-lang-adapter::pixart.pth' and self.transformer == 'mulanai/mulan-pixart'\n"
        "        return Some(images=[Image.new('RGB', (width, height), (generator.seed, len(prompt), 0))])\n"
        "class PixArtAlphaPipeline:\n"
        "    from_pretrained = staticmethod(lambda place: Pipe())\n"
        "class Transformer2DModel:\n"
        "    from_pretrained = staticmethod(lambda place, subfolder: place)\n"
    )
    model: Any = load("mulan", {"python": sys.executable, "folder": str(clone), "width": "32", "height": "16"})
    (image,) = model.generate(rows("बकरी"), [77])
    assert image.size == (32, 16)
    assert image.getpixel((0, 0)) == (77, 4, 0)
    assert model.name == "mulan-pixart"
    model.close()


def test_the_wrappers_import_nothing_of_ours() -> None:
    for path in PROGRAMS.glob("*.py"):
        assert not re.search(r"^\s*(from|import) (generate|dataset_builder|metrics|cards)\b", path.read_text(), re.MULTILINE), path.name
    assert os.access(PROGRAMS / "serving.py", os.R_OK)
