"""Clients of the loopback hub, and scored runs to hand to them, made without a model: what the tests of publishing share."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from loopback_hub import LoopbackHub, run_client
from PIL import Image

from t2i_parity.dataset_builder.prompts import load_prompts
from t2i_parity.generate.entries import ScoreSettings
from t2i_parity.generate.images import planned
from t2i_parity.generate.run import Run, image_features
from t2i_parity.generate.score import score

TESTS = Path(__file__).parent
MODEL = {"model": "org/painter", "revision": "1" * 40}
READER = "reader|method:made-up|v:1.0"
PRELUDE = f"""
import json, sys
sys.path[:0] = {[str(TESTS.parent), str(TESTS)]!r}
from pathlib import Path
from commands import command, error_of
from huggingface_hub import HfApi
api, told = HfApi(), {{}}
"""


def ask(code: str, hub: LoopbackHub, place: Path, token: str | None = "", **given: object) -> Any:
    """What a client script leaves in ``told``; ``given`` are its variables."""
    values = "".join(f"{name} = {(str(value) if isinstance(value, Path) else value)!r}\n" for name, value in given.items())
    done = run_client(f"{PRELUDE}{values}{code}\nprint(json.dumps(told))", hub, place, token=token)
    shown = done.stdout + done.stderr
    assert not any(secret in shown for secret in (hub.token, hub.guest_token))
    return json.loads(done.stdout.splitlines()[-1])


def made_run(
    folder: Path,
    prompts: Path,
    config: str = "lingt2i_text",
    *,
    repository: str = "lab/prompts",
    without: int = 0,
    columns: Mapping[str, Any] | None = None,
    scored: bool = True,
) -> Run:
    """A run over built prompts as ``generate``, ``judge`` and ``score`` leave it: plain pictures, read with some letters missing.

    The last ``without`` prompts were not asked; ``columns`` are put over each row's own; ``repository`` is where it says its prompts are.
    """
    opened = load_prompts(str(prompts), config)
    identity = {"model": MODEL, "guardrail": None, "seed": 42, "prompts": {**opened.origin, "repository": repository}}
    run = Run.start(str(folder), "generation", identity=identity, details={"arguments": {}})
    run.write_record()
    rows = list(opened.rows)
    plan = planned(rows[: len(rows) - without], MODEL, seed=42, images_per_prompt=1)
    schema = image_features().arrow_schema
    made = [
        {**dict.fromkeys(schema.names), **row, "image": {"bytes": _png(row["image_id"]), "path": None}, "status": "ok", **(columns or {})}
        for row in plan
    ]
    run.images().replace(pa.Table.from_pylist(made, schema=schema))
    seen = {
        "image_id": [row["image_id"] for row in plan],
        "judge": [READER] * len(plan),
        "text": [(row["render_text"] or row["prompt"])[int(row["image_id"][0], 16) % 3 :] for row in plan],
        "status": ["ok"] * len(plan),
        "reason": pa.nulls(len(plan), pa.string()),
    }
    run.observations("reader").replace(pa.table(seen))
    if scored:
        score(run, ScoreSettings(tokenizer="tekken", n_resamples=50))
    return run


def _png(identity: str) -> bytes:
    buffer = io.BytesIO()
    colour = tuple(hashlib.sha256(identity.encode()).digest()[:3])
    Image.new("RGB", (24, 16), colour).save(buffer, "PNG")
    return buffer.getvalue()
