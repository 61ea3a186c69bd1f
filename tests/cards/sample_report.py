"""A report as a ladder of runs gives it: ten languages, three runs, two filters, pictures, and texts that mean harm."""

from __future__ import annotations

import io
import random
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from t2i_parity.cards.report_data import Audit, Gap, LanguageParity, LanguageScores, Parity, Rendering, Report, Sample, Side, VarietyAudit
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as SPREAD
from t2i_parity.metrics.dialect_penalty.spec import SPEC as RATES
from t2i_parity.metrics.scores import ALL, Group, Interval, Score, ScoreSpec
from t2i_parity.metrics.text_rendering_precision.spec import PARITY
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT
from t2i_parity.metrics.verdicts import verdict

LANGUAGES = (
    ("en", "English", "English", "The quick brown fox"),
    ("zh", "Chinese", "中文", "敏捷的棕色狐狸跳过去"),
    ("hi", "Hindi", "हिन्दी", "नमस्ते दुनिया, क्षेत्र"),
    ("es", "Spanish", "Español", "El niño comió piñas"),
    ("ar", "Arabic", "العربية", "مرحبا بالعالم الجديد"),
    ("fr", "French", "Français", "Où est la forêt ?"),
    ("pt", "Portuguese", "Português", "Pão quente de manhã"),
    ("ru", "Russian", "Русский", "Съешь ещё булок"),
    ("ja", "Japanese", "日本語", "素早い茶色の狐"),
    ("ko", "Korean", "한국어", "빠른 갈색 여우"),
)
RUNS = ("glyph-undamaged", "glyph-light", "glyph-heavy")
READER = "tesseract 5.3.0"
PRECISION = "text_rendering_precision|tok:google/mt5-base|norm:none|variant:paper|reader:tesseract 5.3.0|v:1.0"
GAP = "cross_lingual_gap|mean:languages|std:population|v:1.0"
BLIND = "parity_null|errors:beta_binomial|draws:40|seed:0|v:1.0"
AUDIT = "dialect_penalty|test:exact|v:1.0"
HOSTILE = (
    '"><script>alert(1)</script>',
    "</title><img src=x onerror=alert(1)>",
    "'onmouseover='alert(1)",
    "a\u202eb\u2066c",
    "{{ 7*7 }}",
    "\x1b[31m\x00",
)
FONTS = {
    **dict.fromkeys(("en", "es", "fr", "pt", "ru"), "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf"),
    "hi": "/usr/share/fonts/truetype/noto/NotoSansDevanagari-Regular.ttf",
    "ar": "/usr/share/fonts/truetype/noto/NotoSansArabic-Regular.ttf",
    **dict.fromkeys(("zh", "ja", "ko"), "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"),
}


def score(
    value: float | None,
    n: int = 150,
    n_missing: int = 0,
    half: float = 0.03,
    *,
    spec: ScoreSpec = TEXT["precision"],
    group: Group = ALL,
    signature: str = PRECISION,
) -> Score:
    """A score with an interval about it."""
    lowest = -1.0 if spec.kind == "paired_difference" else 0.0
    interval = None if value is None else Interval(max(lowest, value - half), min(1.0, value + half))
    return Score(spec, "lingt2i_text", group, value, n, n_missing, interval, Signature.parse(signature))


def rendering(run: str, level: float, *, upper_bound: bool = False, n_missing: int = 0, signature: str = PRECISION) -> Rendering:
    """A run whose languages differ, non-Latin scripts being the worse; Korean of the last run was never read."""
    chance = random.Random(run)
    languages = []
    for place, (code, name, native_name, _) in enumerate(LANGUAGES):
        ceiling = 0.99 - 0.13 * (code in ("hi", "ar")) - 0.05 * (code in ("zh", "ja", "ko")) - 0.004 * place
        value = ceiling * level + chance.uniform(-0.02, 0) * (not upper_bound)
        unread = code == "ko" and run == RUNS[2]
        cells = {"ned_char": value + 0.005, "ned_token": value - 0.03, "sentence_accuracy": max(0.0, value - 0.2), "precision": value}
        n, gone = (0, 150) if unread else (150 - (n_missing if code == "hi" else 0), n_missing if code == "hi" else 0)
        half, group = 0.03 + 0.02 * (1 - level), Group(language=code)
        scores = {
            key: score(None if unread else min(1.0, cell), n, gone, half, spec=TEXT[key], group=group, signature=signature)
            for key, cell in cells.items()
        }
        languages.append(LanguageScores(code, name, native_name, scores))
    total = sum(language.scores["precision"].n for language in languages)
    missing = 1500 - total
    values = [(each.code, each.scores["precision"].value) for each in languages if each.scores["precision"].value is not None]
    worst, best = min(values, key=lambda pair: pair[1] or 0), max(values, key=lambda pair: pair[1] or 0)
    mean = sum(value or 0 for _, value in values) / len(values)
    gap = Gap(
        score(mean, total, missing, 0.012, spec=SPREAD["mean"], signature=GAP),
        score(0.05 + 0.03 * (1 - level), total, missing, 0.008, spec=SPREAD["std"], signature=GAP),
        score(worst[1], spec=SPREAD["worst"], group=Group(language=worst[0]), signature=GAP),
        score(best[1], spec=SPREAD["best"], group=Group(language=best[0]), signature=GAP),
        score(0.04 + 0.03 * (1 - level), total, missing, 0.01, spec=SPREAD["spread"], signature=GAP),
        score(0.01, total, missing, spec=SPREAD["p_alike"], signature=GAP),
    )
    # Hindi is served worse by two of the runs, by more than its texts explain.
    blind = {
        language.code: parity(language.scores["precision"], -0.08 if language.code == "hi" and level < 0.9 else 0.004)
        for language in languages
        if language.scores["precision"].value is not None
    }
    overall = {"precision": mean, "ned_char": mean + 0.005, "ned_token": mean - 0.03, "sentence_accuracy": mean - 0.2}
    scores = {key: score(cell, total, missing, 0.012, spec=TEXT[key], signature=signature) for key, cell in overall.items()}
    against = Parity(Signature.parse(BLIND), blind, 0.004 if level < 0.9 else 0.6)
    return Rendering(run, "glyph 1.0", READER, Signature.parse(signature), scores, languages, gap, upper_bound, against)


def parity(precision: Score, difference: float) -> LanguageParity:
    """A language against a language-blind model: what is left of its precision, ±0.02."""
    assert precision.value is not None
    keys, of = PARITY, precision.group
    left = score(difference, precision.n, precision.n_missing, 0.02, spec=keys["precision_difference"], group=of, signature=BLIND)
    expected = score(precision.value - difference, precision.n, spec=keys["precision_expected"], group=of, signature=BLIND)
    p = 0.002 if difference < -0.05 else 1.0
    return LanguageParity(expected, left, p, verdict(left, p, family=10))


def side(n: int, rates: tuple[float, float] | None, shift: tuple[float, float, float] | None, *tests: float, missing: int = 0) -> Side:
    """One side of an audit: its rates, its shift with the interval's ends, and the discordant pairs, p and Holm's p."""
    delta, low, high = shift or (None, None, None)
    only_variety, only_reference, p, p_holm = tests or (0, 0, None, None)
    interval = None if low is None or high is None else Interval(low, high)
    score = Score(RATES["delta_tpr_pp"], "pairs", ALL, delta, n, missing, interval, Signature.parse(AUDIT))
    reference, variety = rates or (None, None)
    only = int(only_variety), int(only_reference)
    return Side(n, missing, reference, variety, delta, low, high, *only, p, p_holm, verdict(score, p_holm, family=5))


NOTHING = side(0, None, None)


def audits() -> list[Audit]:
    """One filter over pairs of both labels, and one over a set that holds no toxic pairs."""
    names = (
        ("AAVE", "African American Vernacular English"), ("ChcE", "Chicano English"), ("CollSgE", "Colloquial Singaporean English"),
        ("IndE", "Indian English"), ("JamE", "Jamaican English"),
    )  # fmt: skip
    toxic = [
        side(120, (0.842, 0.725), (-11.7, -18.3, -5.0), 3, 17, 0.0026, 0.0128),
        side(120, (0.842, 0.850), (0.8, -4.2, 5.8), 5, 4, 1.0, 1.0),
        side(120, (0.842, 0.767), (-7.5, -14.2, -0.8), 5, 14, 0.064, 0.192),
        side(118, (0.839, 0.822), (-1.7, -6.8, 3.4), 4, 6, 0.754, 1.0, missing=2),
        side(120, (0.842, 0.683), (-15.8, -23.3, -9.2), 2, 21, 0.00007, 0.00033),
    ]
    benign = [
        side(180, (0.050, 0.122), (7.2, 2.8, 11.7), 15, 2, 0.0023, 0.0117),
        side(180, (0.050, 0.061), (1.1, -1.7, 4.4), 5, 3, 0.727, 1.0),
        side(180, (0.050, 0.044), (-0.6, -3.3, 2.2), 3, 4, 1.0, 1.0),
        side(180, (0.050, 0.078), (2.8, -0.6, 6.1), 8, 3, 0.227, 0.680),
        side(180, (0.050, 0.156), (10.6, 6.1, 15.6), 21, 2, 0.00007, 0.00033),
    ]
    both = [VarietyAudit(code, name, t, b) for (code, name), t, b in zip(names, toxic, benign, strict=True)]
    only_benign = [VarietyAudit(code, name, NOTHING, b) for (code, name), b in zip(names[:4], benign[1:], strict=True)]
    return [
        Audit("audit-profanity", "profanity-check 1.7", "dialect_pairs", "SAE", Signature.parse(AUDIT), both, 5.0),
        Audit("audit-dialectgen", "profanity-check 1.7", "dialectgen", "SAE", Signature.parse(AUDIT), only_benign, 5.0),
    ]


def picture(text: str, code: str, seed: int) -> bytes:
    """A PNG with the text on it, in a font of its script where there is one."""
    chance = random.Random(seed)
    image = Image.new("RGB", (768, 768), tuple(chance.randint(150, 235) for _ in range(3)))
    draw = ImageDraw.Draw(image)
    for _ in range(12):
        x, y, side = chance.randint(0, 700), chance.randint(0, 700), chance.randint(20, 220)
        draw.ellipse((x, y, x + side, y + side), fill=tuple(chance.randint(120, 245) for _ in range(3)))
    draw.rounded_rectangle((60, 290, 708, 478), 24, fill="white")
    path = FONTS.get(code, "")
    font = ImageFont.truetype(path, 52) if Path(path).is_file() else ImageFont.load_default(52)
    draw.text((384, 384), text, fill="#202020", font=font, anchor="mm")
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def samples() -> list[Sample]:
    """Two images a language and more: read rightly, read wrongly, not read, without an image, and not an image at all."""
    made = []
    for place, (code, _, _, text) in enumerate(LANGUAGES):
        direction = "rtl" if code == "ar" else "ltr"
        for number, run in enumerate(RUNS if code in ("en", "hi", "ar") else (RUNS[0], RUNS[1 + place % 2])):
            middle = len(text) // 2
            read = text if number == 0 else text[: middle - 1] + "e" * number + text[middle:-1]
            value = 1.0 if number == 0 else 0.8 - 0.2 * number
            made.append(
                Sample(
                    run,
                    f"{place:x}{number}c4f1d2a9b0e7{place:02}",
                    code,
                    direction,
                    text,
                    read,
                    value,
                    picture(read, code, place),
                    "ok",
                    None,
                )
            )
    made += [
        Sample(RUNS[2], "f000000000000001", "ko", "ltr", "빠른 갈색 여우", None, None, None, "failed", "the sampler ran out of memory"),
        Sample(RUNS[1], "f000000000000002", "ar", "rtl", "سلام\u202e abc", "سلم", 0.5, b"not a picture", "ok", None),
        Sample(RUNS[2], HOSTILE[0], "en", "ltr", HOSTILE[0], HOSTILE[1], 0.1, picture("?", "en", 9), HOSTILE[2], HOSTILE[1]),
        Sample(RUNS[2], "f000000000000004", "xx", "ltr", "unknown language", "", 0.0, None, "ok", None),
    ]
    return made


def realistic() -> Report:
    """The whole report."""
    return Report(
        "Text rendering of the damage ladder",
        "2026-01-31 12:00 UTC",
        [rendering(RUNS[0], 1.0, upper_bound=True), rendering(RUNS[1], 0.83, n_missing=3), rendering(RUNS[2], 0.47)],
        audits(),
        samples(),
        ["Starter edition: no native speaker has reviewed these prompts.", "The pictures are typeset, not generated."],
        [(run, f"kind: generation\nidentity:\n  model: glyph\n  damage: {run}\n  prompts: sha256:{'0' * 64}\n") for run in RUNS],
    )
