"""A leaderboard of made-up models: every name and number comes from a seeded generator, and means nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from t2i_parity.cards.board import Board, Entry, Group, Table, Value, extreme, without_sign

LANGUAGES = (
    Group("en", "English", "English"), Group("zh", "Chinese", "中文"), Group("hi", "Hindi", "हिन्दी"), Group("es", "Spanish", "Español"),
    Group("ar", "Arabic", "العربية"), Group("fr", "French", "Français"), Group("pt", "Portuguese", "Português"),
    Group("ru", "Russian", "Русский"), Group("ja", "Japanese", "日本語"), Group("ko", "Korean", "한국어"),
)  # fmt: skip
VARIETIES = (
    Group("AAVE", "African American Vernacular English"), Group("ChcE", "Chicano English"),
    Group("CollSgE", "Colloquial Singaporean English"), Group("IndE", "Indian English"), Group("JamE", "Jamaican English"),
)  # fmt: skip
COUNTRIES = tuple(
    Group(code, name)
    for code, name in (
        ("BRA", "Brazil"), ("ETH", "Ethiopia"), ("IND", "India"), ("IDN", "Indonesia"), ("KEN", "Kenya"), ("NGA", "Nigeria"),
        ("PNG", "Papua New Guinea"), ("GBR", "United Kingdom"), ("USA", "United States"),
    )
)  # fmt: skip
SIGNATURE = "text_rendering_precision|tok:{}|norm:none|variant:paper|reader:made-up,v=1|v:1.0"
HOSTILE = '<img src=x onerror="document.title=1">"</script><b>'


def entries(groups: Sequence[Group], n: int, seed: int, *, shift: bool = False) -> list[Entry]:
    rng = random.Random(seed)
    found = []
    for number in range(n):
        level, wide = rng.betavariate(4, 3), rng.uniform(0.02, 0.2)
        cells = {}
        for group in groups:
            middle = rng.gauss(0, 6) if shift else min(0.99, max(0.01, rng.gauss(level, wide)))
            half = 4.0 if shift else 0.07
            low, high = middle - half, middle + half
            if not shift:
                low, high = max(0.0, low), min(1.0, high)
            cells[group.code] = Value(middle, low, high, 40, 0)
        values = [cell.value or 0.0 for cell in cells.values()]
        mean = sum(values) / len(values)
        std = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
        overall = Value(mean, max(0.0, mean - 0.03), min(1.0, mean + 0.03), 40 * len(groups), 0)
        if shift:
            overall = extreme(map(without_sign, cells.values()), lowest=False, ends=(0.0, 100.0))
        missing: Sequence[str] = ()
        if number % 29 == 7:
            cells.pop(groups[-1].code)
            missing = (f"{groups[-1].name}: 0 of 40 rows",)
        found.append(
            Entry(
                model=f"lab-{number % 17}/model-{number}",
                revision=f"{number:040x}",
                overall=overall,
                spread=Value(None) if shift else Value(std, max(0.0, std - 0.012), std + 0.012, 40 * len(groups), 0),
                cells=cells,
                submitted=f"2026-{1 + number % 11:02d}-{1 + number % 27:02d}",
                submitter=f"user-{number % 17}",
                missing=missing,
                links=(("run record", f"https://huggingface.co/datasets/lab-{number % 17}/run-{number}"),) if number % 2 else (),
            )
        )
    return found


def sample_board(n: int = 300) -> Board:
    """``n`` models in languages, under two signatures, fewer in varieties and countries; one of them called something hostile."""
    main = entries(LANGUAGES, n, seed=1)
    if n > 1:
        main[1] = replace(main[1], name=HOSTILE)
    precision = Table(
        "language", "text_rendering_precision.precision", "Text rendering: precision", "lingt2i_text", "prompts 5801526fa357",
        SIGNATURE.format("google/mt5-base"), LANGUAGES, main, about="1 when a reader finds exactly the wanted text in every image.",
        spread_signature="cross_lingual_gap|mean:languages|std:population|of:text_rendering_precision,tok=google/mt5-base,v=1.0|v:1.0",
    )  # fmt: skip
    other = replace(precision, signature=SIGNATURE.format("tekken"), entries=entries(LANGUAGES, 12, seed=2))
    clip = replace(
        precision, score="clip_score.clip_score", title="Image and prompt: CLIPScore", subset="lingt2i_content",
        signature="clip_score|v:1.0", entries=entries(LANGUAGES, 40, seed=4),
    )  # fmt: skip
    shift = Table(
        "dialect", "dialect_penalty.delta_fpr_pp", "Filter: shift of false alarms", "dialect", "prompts 5801526fa357",
        "dialect_penalty|test:paper|v:1.0", VARIETIES, entries(VARIETIES, 24, seed=3, shift=True), direction="zero",
        unit="pp",
    )  # fmt: skip
    country = Table(
        "country", "geo_representativeness.gr_unspecified", "Places: representativeness", "geo", "prompts 5801526fa357",
        "geo_representativeness|v:1.0", COUNTRIES, entries(COUNTRIES, 9, seed=5),
    )  # fmt: skip
    tables = (precision, other, clip, shift, country)
    return Board("T2I Parity leaderboard", "2026-11-30", "lab/results", tables, datasets=("lab/results",))
