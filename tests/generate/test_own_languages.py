"""Bengali and Swahili, one entry each in a user's file, from prompts to the report; a language without a reader stops nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import command, error_of

VOCABULARY = """\
languages:
  - {code: bn, name: Bengali, native_name: বাংলা, script: Beng, branch: Indo-Aryan}
  - {code: sw, name: Swahili, native_name: Kiswahili, script: Latn, branch: Bantu}
  - {code: chr, name: Cherokee, native_name: ᏣᎳᎩ, script: Cher, branch: Iroquoian, tesseract: null}
"""
TEXTS = {
    "bn": ("খোলা আছে", "প্রবেশ নিষেধ", "ধন্যবাদ"),
    "sw": ("Imefunguliwa", "Hakuna kuingia", "Asante sana"),
    "en": ("Now open", "No entry", "Thank you"),
    "chr": ("ᎠᏍᏚᎢᏓ",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged and scored run over all four, and the vocabulary it was made with."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.yaml").write_text(VOCABULARY, encoding="utf-8")
    rows = [
        {"prompt": f'A sign that says "{text}"', "render_text": text, "language": code, "pair_id": f"sign-{number}"}
        for code, texts in TEXTS.items()
        for number, text in enumerate(texts)
    ]
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    own = ["--vocabulary", str(folder / "own.yaml")]
    run, prompts = str(folder / "run"), str(folder / "prompts")
    command("build", "lingt2i_text", "--source", "rows", "--input", f"rows={folder}/rows.jsonl", "--out", prompts, *own)
    command("generate", "--model", "glyph", "--prompts", prompts, "--out", run, *own)
    for reader in ("tesseract", "rapidocr"):
        command("judge", run, "--with", reader, *own)
    command("score", run, "--tokenizer", "tekken", *own)
    command("report", run, "--no-tables", "--out", str(folder / "report.html"), *own)
    return folder


def test_both_are_read_scored_and_reported(folder: Path) -> None:
    from t2i_parity.dataset_builder import vocabulary
    from t2i_parity.generate.run import Run

    page = (folder / "report.html").read_text(encoding="utf-8")
    assert {"Bengali", "Swahili"} <= {name for name in ("Bengali", "Swahili") if name in page}
    with vocabulary.given(str(folder / "own.yaml")):
        run = Run.open(str(folder / "run"))
        images = {row["image_id"]: row for row in run.images().read(["image_id", "language", "render_text", "status"]).to_pylist()}
        assert {row["status"] for row in images.values()} == {"ok"}
        read = {name: run.observations(name).read().to_pylist() for name in ("tesseract", "rapidocr")}
    texts = {row["image_id"]: row["text"] for row in read["tesseract"]}
    wrong = [row for key, row in images.items() if row["language"] != "chr" and texts[key] != row["render_text"]]
    assert not wrong, (wrong, texts)
    failed = {name: {images[row["image_id"]]["language"] for row in rows if row["status"] == "failed"} for name, rows in read.items()}
    assert failed == {"tesseract": {"chr"}, "rapidocr": {"chr", "bn"}}
    reasons = {row["reason"] for rows in read.values() for row in rows if row["reason"]}
    assert "out of scope: tesseract cannot read Cherokee (chr): there is no Tesseract model of it" in reasons
    assert any("rapidocr cannot read Bengali (bn): its recogniser has no letters of the script Beng" in reason for reason in reasons)
    recorded = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))["identity"]["prompts"]["vocabulary"]
    assert recorded["languages"] == ["bn", "chr", "sw"]
    assert len(recorded["sha256"]) == 64


def test_a_run_is_not_opened_without_its_vocabulary(folder: Path) -> None:
    message = error_of("score", str(folder / "run"))
    assert "has rows in bn, chr, sw, declared in a vocabulary that is not in use here (own.yaml, SHA-256" in message


def test_a_missing_font_costs_its_language_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from t2i_parity.dataset_builder.errors import InputError, InputWarning
    from t2i_parity.generate import fonts
    from t2i_parity.generate.models.glyph import Glyph, GlyphSettings

    files = {name: path for name, path in fonts._files().items() if "Devanagari" not in name}
    monkeypatch.setattr(fonts, "_files", lambda: files)
    glyph = Glyph("", GlyphSettings())
    with pytest.warns(InputWarning, match=r"glyph cannot set Hindi \(hi\): no font for the script Deva"):
        glyph.check([{"language": "hi"}, {"language": "en"}])
    with pytest.raises(InputError, match="no font for the script Deva"):
        glyph.check([{"language": "hi"}])
    with pytest.raises(ValueError, match="out of scope: glyph cannot set Hindi"):
        glyph.generate([{"language": "hi", "render_text": "खुला"}], [1])


def test_signatures_of_our_own_languages_do_not_change_with_a_vocabulary(folder: Path) -> None:
    from t2i_parity.dataset_builder import vocabulary
    from t2i_parity.generate.judges import load

    before = load("hybrid", {}).signature()
    with vocabulary.given(str(folder / "own.yaml")):
        hybrid = load("hybrid", {})
        hybrid.check([{"language": "en"}, {"language": "hi"}])
        assert hybrid.signature() == before
        hybrid.check([{"language": "en"}, {"language": "bn"}])
        assert "ben@" in hybrid.signature()
