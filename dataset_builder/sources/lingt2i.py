"""LingT2I (Zhang et al. 2026, arXiv:2608.11002): content generation and text rendering in ten languages.

Upstream layout: a dataset on the hub, ``RISys-Lab/LingT2I`` in the paper and ``RISys-Lab/TRIG-Multilingual`` in the code, with the splits
``content_generation`` (``data_id, prompt, dimension, lang``) and ``text_rendering`` (also ``render_text, render_layout, condition_image,
img_id``). ``data_id`` is ``{dimension}_{language}_{meaning}``. A text-rendering prompt is English and holds ``<sks1>`` where the text goes;
as in the authors' code, ``prompt`` gets the bare text there, and ``verbatim_prompt`` keeps the placeholder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.schema import DIMENSIONS, Values, table_from_columns
from t2i_parity.dataset_builder.sources.base import Account, Source
from t2i_parity.dataset_builder.sources.layout import canonical

PLACEHOLDER = "<sks1>"
CONTENT_COLUMNS = dict.fromkeys(("data_id", "prompt", "dimension", "lang"), pa.string())
TEXT_COLUMNS = {
    **CONTENT_COLUMNS,
    **dict.fromkeys(("render_text", "render_layout"), pa.string()),
    "condition_image": pa.struct({"bytes": pa.binary(), "path": pa.string()}),
    "img_id": pa.string(),
}
CONTENT_DIMENSIONS = tuple(code for code in DIMENSIONS if code != "TR")

_FILLED_IN = "<sks1> filled in by dataset_builder.sources.lingt2i 1.0"
MAKERS = {
    "lingt2i_content": ("Gemini 2.5 Flash from DOCCI captions, ToxiGen for R-T (LingT2I §3.2)", "Gemini 2.5 Pro (LingT2I §3.2)"),
    "lingt2i_text": (
        f"EasyText (LingT2I §3.3), {_FILLED_IN}",
        f"EasyText, its text translated by Gemini 2.5 Pro (LingT2I §3.3), {_FILLED_IN}",
    ),
}
"""Who made the English prompts of a config, and who the others, as the paper has it."""


def _read(source: Source, place: str, part: str) -> dict[str, pa.Table]:
    account = Account(source, place)
    where, content = account.split("content_generation", CONTENT_COLUMNS)
    if content is not None:
        _check(account, where, content, source.expected["content_generation"], CONTENT_DIMENSIONS)
    where, text = account.split("text_rendering", TEXT_COLUMNS)
    layouts: list[str | None] = []
    if text is not None:
        _check(account, where, text, source.expected["text_rendering"], ("TR",))
        layouts = _checked_layouts(account, where, text)
    account.close()
    assert content is not None
    assert text is not None  # or the account would have had something to tell
    filled = [
        prompt.replace(PLACEHOLDER, rendered)
        for prompt, rendered in zip(text["prompt"].to_pylist(), text["render_text"].to_pylist(), strict=True)
    ]
    own: dict[str, Values] = {
        "prompt": filled,
        "verbatim_prompt": text["prompt"],
        "render_text": text["render_text"],
        "render_layout": layouts,
        "condition_image": text["condition_image"],
    }
    return {
        "lingt2i_content": _table("lingt2i_content", account, content, {"prompt": content["prompt"]}, "verbatim"),
        "lingt2i_text": _table("lingt2i_text", account, text, own, "templated"),
    }


def _table(config: str, account: Account, split: pa.Table, own: Mapping[str, Values], english_derivation: str) -> pa.Table:
    english = pc.equal(split["lang"], "en")
    meaning = _parts(split["data_id"]).field("meaning")
    of_dimension = pc.binary_join_element_wise("lingt2i", split["dimension"], "-")
    return table_from_columns(
        config,
        {
            **own,
            **account.source.provenance(),
            "prompt_id": pc.binary_join_element_wise("lingt2i", split["data_id"], "-"),
            "pair_id": pc.binary_join_element_wise(of_dimension, meaning, "_"),
            "language": split["lang"],
            "subset": config,
            "dimension": split["dimension"],
            "source_id": split["data_id"],
            "source_revision": account.revision(),
            "derivation": pc.if_else(english, english_derivation, "translated"),
            "derived_from": pc.if_else(english, None, pc.binary_join_element_wise(of_dimension, "en", meaning, "_")),
            "producer": pc.if_else(english, *MAKERS[config]),
        },
        rows=len(split),
    )


def _check(account: Account, where: str, split: pa.Table, expected: int, dimensions: Sequence[str]) -> None:
    """What both splits must hold: ids, dimensions and languages that agree, and every meaning in every language."""
    account.count(where, "rows", len(split), expected)
    account.unique(where, "data_id", split["data_id"])
    account.known(where, "dimension", split["dimension"], dimensions)
    account.known(where, "lang", split["lang"], LINGT2I_LANGUAGES)
    account.texts(where, "prompt", split["prompt"])
    parts = _parts(split["data_id"])
    agree = pc.and_(pc.equal(parts.field("dimension"), split["dimension"]), pc.equal(parts.field("lang"), split["lang"]))
    account.rows(where, pc.invert(agree), "data_id is not {dimension}_{lang}_{meaning} of the row")
    cells = _counts(pc.binary_join_element_wise(split["dimension"], split["lang"], " "))
    each = expected // len(dimensions) // len(LINGT2I_LANGUAGES)
    found = {cell: cells.get(cell, 0) for cell in (f"{code} {lang}" for code in dimensions for lang in LINGT2I_LANGUAGES)}
    uneven = {cell: n for cell, n in found.items() if n != each}
    account.each(where, f"expected {each:,} rows of each dimension in each language", uneven)
    meanings = _counts(pc.binary_join_element_wise(parts.field("dimension"), parts.field("meaning"), "_"))
    partial = {meaning: n for meaning, n in meanings.items() if n != len(LINGT2I_LANGUAGES)}
    account.each(where, f"expected each meaning in {len(LINGT2I_LANGUAGES)} languages", partial)


def _checked_layouts(account: Account, where: str, text: pa.Table) -> list[str | None]:
    """The layouts in one form; and the checks of what only text rendering has."""
    account.texts(where, "render_text", text["render_text"])
    account.rows(where, pc.invert(pc.match_substring(text["prompt"], PLACEHOLDER)), f"prompt holds no {PLACEHOLDER}")
    others = pc.match_substring_regex(text["prompt"], r"<sks(\d\d|[^1]>)")
    account.rows(where, pc.fill_null(others, False), f"prompt holds a placeholder that is not {PLACEHOLDER}")
    layouts: list[str | None] = []
    wrong: dict[str, list[int]] = {}
    for row, layout in enumerate(text["render_layout"].to_pylist()):
        try:
            layouts.append(canonical(layout) if layout else None)
        except ValueError as error:
            wrong.setdefault(str(error), []).append(row)
    account.reasons(where, wrong)
    return layouts


def _parts(data_id: pa.ChunkedArray) -> pa.StructArray:
    """``data_id`` taken apart, three empty parts where it is something else."""
    return pc.extract_regex(data_id.combine_chunks(), pattern=r"^(?P<dimension>[^_]+)_(?P<lang>[^_]+)_(?P<meaning>.+)$")


def _counts(values: pa.ChunkedArray) -> dict[str, int]:
    counts = values.drop_null().value_counts()
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


SOURCE = Source(
    name="lingt2i",
    title="LingT2I",
    url="https://huggingface.co/datasets/RISys-Lab/LingT2I",
    license="CC-BY-NC-SA-4.0",
    revision=None,  # no commit of the hub's is known to us: the one that is read goes into every row
    counts={"lingt2i_content": 30_000, "lingt2i_text": 3_000},
    read=_read,
    default="RISys-Lab/LingT2I",
    expected={"content_generation": 30_000, "text_rendering": 3_000},
)
