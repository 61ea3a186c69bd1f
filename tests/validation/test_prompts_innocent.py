"""What looks like a fault and is none, and how much of what is nearly the same is seen."""

from __future__ import annotations

import os
import random

import pytest
from prompt_tables import change, clean, found, put, row, told, value

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.schema import table
from t2i_parity.dataset_builder.sources import dialectgen
from t2i_parity.dataset_builder.storage import decode_classes
from t2i_parity.validation.prompts import copies
from t2i_parity.validation.prompts.language import verdicts
from t2i_parity.validation.prompts.model import Prompts, Rows
from t2i_parity.validation.prompts.rendering import wrong_layout

REFERENCE = os.environ.get("T2I_PARITY_REFERENCE")
CONTENT, TEXT, DIALECT = "lingt2i_content", "lingt2i_text", "dialect"

PROMPTS = (
    ("en", "As an AI-generated portrait in the manner of an old master, a woman in a red hat looks out of the frame"),
    ("en", "Sure-footed mountain goats on a cliff of bare rock, with the sea far below them in the morning light"),
    ("en", "A chalkboard on which 5 * 3 * 2 = 30 is written, beside a jar of pencils & two rulers (one broken) [sic]"),
    (
        "en",
        "A family \U0001f468\u200d\U0001f469\u200d\U0001f467 drawn on a fridge ❤\ufe0f next to a shopping list and a 50% discount coupon",
    ),
    ("fr", "«\u00a0Bonjour\u00a0!\u00a0» dit une enseigne peinte à la main au-dessus de la porte d'une petite boulangerie de village"),
    ("hi", "एक नीली साइकिल पेड़ के नीचे खड़ी है और उसकी टोकरी में ताज़े फूल और क्\u200dष अक्षर वाला एक काग़ज़ रखा हुआ है"),
    ("ar", "لوحة خشبية معلّقة فوق باب قديم، وبجانبها نبتة خضراء في أصيص من الفخار ومصباح نحاسي صغير"),
    ("zh", "一张木桌上放着一台 ＡＢＣ 牌老式收音机和一杯热茶，窗外下着小雨，远处有一座桥"),
    ("ja", "木の机の上に古いラジオと湯気の立つお茶が置かれ、窓の外では静かに雨が降っている　夜の風景"),
    ("ru", "Старый трамвай № 7 едет по мокрой улице мимо вывески WiFi, а на остановке стоит женщина с зонтом"),
    ("es", "Claro de luna sobre un lago tranquilo rodeado de pinos, con una barca de madera atada a la orilla"),
    ("ko", "네모난 창문이 있는 작은 집 앞에 눈사람이 서 있고 그 옆에서 강아지가 뛰어놀고 있는 겨울 풍경"),
)
SIGNS = (
    ("en", "Sorry, we're closed"),
    ("en", "C++ & Rust: 2 < 3"),
    ("en", "Wi-Fi: guest_2026"),
    ("es", "TODO A MITAD DE PRECIO"),
    ("es", "Claro, ¡hoy abrimos!"),
    ("zh", "对不起，已售完"),
    ("ja", "はい、どうぞ"),
    ("fr", "20 % d'eau en plus"),
    ("pt", "Taxi"),
    ("ru", "WC 100 ₽"),
    ("ko", "네, 열었습니다!"),
    ("en", "(≧▽≦)"),
    ("en", "REFUND"),
    ("en", "one line\nand another"),
)


@pytest.mark.parametrize(("language", "prompt"), PROMPTS)
def test_an_ordinary_prompt_is_no_fault(language: str, prompt: str) -> None:
    tables = clean()
    put(tables, CONTENT, row(tables, CONTENT, language=language), "prompt", prompt)
    assert found(tables).findings == []


@pytest.mark.parametrize(("language", "sign"), SIGNS)
def test_an_ordinary_sign_is_no_fault(language: str, sign: str) -> None:
    tables = clean()
    number = row(tables, TEXT, language=language)
    change(tables, TEXT, number, "render_text", lambda _: sign)
    # A prompt has no line breaks, and here one stands in its text.
    wanted = {("spaces", "warning", TEXT, number, "prompt")} if "\n" in sign else set()
    assert told(found(tables)) == wanted


def test_short_texts_that_two_languages_share_are_no_copies() -> None:
    tables = clean()
    first = value(tables, TEXT, 0, "pair_id")
    for language in ("en", "es", "fr", "pt"):
        put(tables, TEXT, row(tables, TEXT, language=language, pair_id=first), "render_text", "Taxi Central")
    assert found(tables).findings == []


def test_controls_stand_beside_the_design() -> None:
    tables = clean()
    rows = decode_classes(tables[DIALECT]).to_pylist()
    noisy = [
        {
            **each, "prompt_id": f"{each['prompt_id']}-typos-{seed}", "derived_from": each["prompt_id"], "derivation": "typo_perturbed",
            "subset": f"typo_seed{seed}", "prompt": each["prompt"].replace("e", "w"),
        }
        for seed in range(2) for each in rows if each["variety"] == "SAE"
    ]  # fmt: skip
    tables[DIALECT] = table(DIALECT, [*rows, *noisy])
    assert found(tables).findings == []


def test_a_subset_may_hold_several_designs() -> None:
    """A reference with one variety each, as DialectGen has it: the reference alone is incomplete, another variety is not."""
    tables = clean()
    rows = decode_classes(tables[DIALECT]).to_pylist()
    halves = [
        {**each, "pair_id": f"{each['pair_id']}-{variety}", "prompt_id": f"{each['prompt_id']}-{variety}", "derived_from": None}
        for each in rows
        for variety in ("AAVE", "IndE")
        if each["variety"] in ("SAE", variety)
    ]
    tables[DIALECT] = table(DIALECT, halves)
    assert {finding.check for finding in found(tables).findings} == {"duplicate"}  # each reference stands twice here
    alone = next(number for number, each in enumerate(halves) if each["variety"] == "IndE")
    tables[DIALECT] = table(DIALECT, [each for number, each in enumerate(halves) if number != alone])
    incomplete = [finding for finding in found(tables).findings if finding.check == "pair_complete"]
    assert len(incomplete) == 1
    assert "SAE" in incomplete[0].found


def test_the_starter_edition_passes_without_a_finding() -> None:
    report = found(starter.tables())
    assert report.findings == []
    assert sum(count.wrong for count in report.counts) == 0
    assert [count.design for count in report.counts if count.design is None] == []


@pytest.mark.skipif(REFERENCE is None, reason="T2I_PARITY_REFERENCE names no folder with the studies' files")
def test_dialectgen_as_published_has_no_error() -> None:
    report = found(dialectgen.SOURCE.tables(f"{REFERENCE}/dialectgen", "concise"), "mit")
    assert report.passes("error")
    assert [finding.prompt_id for finding in report.findings if finding.check == "unconverted"] == ["dialectgen-concise-che-0178-ChcE"]


def test_the_identifier_agrees_with_every_long_sentence_of_the_starter_edition() -> None:
    rows = Rows(CONTENT, starter.tables()[CONTENT], Prompts("starter", {}))
    judged = [verdict for verdict in verdicts(rows) if verdict is not None]
    assert len(judged) == len(rows)
    assert all(verdict.agrees and not verdict.short for verdict in judged)


def test_texts_that_differ_in_a_word_or_a_letter_are_near() -> None:
    """In every language, a copy with one word left out or one letter changed is seen, and texts that were not touched are not."""
    rng = random.Random(0)
    rows = decode_classes(starter.tables()[CONTENT]).to_pylist()
    changed = []
    for number, each in enumerate(rows):
        text = each["prompt"]
        words = text.split(" ")
        if number % 2 and len(words) > 12:
            place = rng.randrange(len(words))
            text = " ".join(words[:place] + words[place + 1 :])
        else:
            place = rng.randrange(len(text))
            text = text[:place] + "x" + text[place + 1 :]
        changed.append({**each, "prompt_id": f"{each['prompt_id']}-near", "pair_id": f"{each['pair_id']}-near", "prompt": text})
    prompts = table(CONTENT, [*rows, *({**each, "derived_from": None} for each in changed)])
    check = next(check for check in copies.CHECKS if check.name == "near_duplicate")
    seen = [fault.row for fault in check.run(Rows(CONTENT, prompts, Prompts("near", {})))]
    assert min(number for number in seen if number is not None) >= len(rows)
    assert len(seen) >= 0.95 * len(rows)


@pytest.mark.parametrize("layout", ["", "null", "{}", "[]", "[1]", "[" * 5_000, '[[[[0, 0], [1, 0], [1, 1], [0, "1"]], [[0, 0], [1, 1]]]]'])
def test_what_is_no_layout_is_told(layout: str) -> None:
    assert wrong_layout(layout)
