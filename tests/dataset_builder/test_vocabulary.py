"""Languages and varieties of a user's own: read whole or not at all, seen everywhere, and gone when their file is."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import command, error_of

from t2i_parity.dataset_builder import vocabulary
from t2i_parity.dataset_builder.controls.culture_tags import expected_culture
from t2i_parity.dataset_builder.countries import COUNTRIES
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.identification import identified
from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES, SCRIPTS, VARIABLE, Language, Script
from t2i_parity.dataset_builder.phrases import phrases
from t2i_parity.dataset_builder.schema import table
from t2i_parity.dataset_builder.sources.geo_extension import extended_rows, local_prompt
from t2i_parity.dataset_builder.varieties import VARIETIES, Variety
from t2i_parity.metrics.cross_lingual_gap import core as gap
from t2i_parity.metrics.text_rendering_precision.errors import error_analysis
from t2i_parity.validation.survey.texts import interface_languages, texts

BENGALI = "{code: bn, name: Bengali, native_name: বাংলা, script: Beng, branch: Indo-Aryan"
SWAHILI = "{code: sw, name: Swahili, native_name: Kiswahili, script: Latn, branch: Bantu}"
FILE = f"""\
languages:
  - {BENGALI}}}
  - {SWAHILI}
varieties:
  - {{code: NigE, name: Nigerian English}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = [*LANGUAGES, *SCRIPTS, *VARIETIES, *gap.LANGUAGES]
    yield
    assert [*LANGUAGES, *SCRIPTS, *VARIETIES, *gap.LANGUAGES] == before


def test_an_entry_is_seen_by_all_and_gone_with_its_file(file: Path) -> None:
    with vocabulary.given(str(file)):
        assert list(LANGUAGES)[-2:] == ["bn", "sw"]
        assert LANGUAGES["bn"].iso639_3 == "ben"
        assert LANGUAGES["bn"].written == Script("Beng", "Bengali")
        assert VARIETIES["NigE"].reference == "SAE"
        row = {"prompt_id": "a", "pair_id": "a", "prompt": "একটি বিড়াল", "language": "bn", "subset": "own", "dimension": "TA-C"}
        provenance = {"source": "s", "source_id": "0", "source_revision": "r", "license": "unknown", "producer": "p"}
        made = table("lingt2i_content", [{**row, **provenance, "derivation": "verbatim"}])
        assert made["script"].to_pylist() == ["Beng"]
        answer = gap.compute([0.5, 1.0], ["bn", "en"], n_resamples=0)
        assert answer["by_branch"] == {"Germanic": 1.0, "Indo-Aryan": 0.5}
        assert error_analysis(["ক"], ["ক"], languages=["bn"], n_resamples=0)["by_script"].keys() == {"Beng"}
    assert "bn" not in LANGUAGES
    assert VARIABLE not in os.environ
    with pytest.raises(ValueError, match="expected one of en, zh"):
        gap.compute([0.5], ["bn"], n_resamples=0)


def test_only_what_a_file_declares_is_stamped(file: Path) -> None:
    with vocabulary.given(str(file)):
        origin = vocabulary.origin()
        assert origin is not None
        assert vocabulary.stamp(["en", "bn"]) == origin.sha256[:16]
        assert vocabulary.stamp(["en"], ["NigE", None]) == origin.sha256[:16]
        assert vocabulary.stamp(["en", "hi"], ["SAE", None]) is None
        recorded = vocabulary.record(["en", "bn"], ["NigE"])
        assert recorded is not None
        assert (recorded["file"], recorded["languages"], recorded["varieties"]) == ("own.yaml", ["bn"], ["NigE"])
        vocabulary.require(recorded, "here")
    with pytest.raises(InputError, match=r"here has rows in bn, NigE, .*own\.yaml, SHA-256 [0-9a-f]{64}.*--vocabulary own\.yaml"):
        vocabulary.require(recorded, "here")


def test_what_a_language_lacks_is_told_where_it_is_needed(file: Path) -> None:
    from t2i_parity.dataset_builder.controls.transliteration import transliterate
    from t2i_parity.dataset_builder.controls.typos import perturb

    with vocabulary.given(str(file)):
        with pytest.raises(InputError, match="no transliteration for the language 'bn'"):
            transliterate("বাংলা", "bn")
        with pytest.raises(InputError, match="not in Beng: it has no alphabet"):
            perturb("বাংলা", 0.5, 0, "Beng")
        with pytest.raises(InputError, match="no phrases for the noun 'city' in 'bn'"):
            local_prompt("city", None, "bn")
        with pytest.raises(InputError, match="the survey has no texts in 'bn' for reviewed"):
            texts("bn")
        assert interface_languages() == LINGT2I_LANGUAGES
        assert {row["language"] for row in extended_rows()} == set(LINGT2I_LANGUAGES)
        assert expected_culture({"subset": "own", "language": "bn"}) is None


def test_what_a_language_declares_is_used(tmp_path: Path) -> None:
    path = tmp_path / "rich.yaml"
    survey = json.dumps({key: f"[{key}]" for key in texts("en")})
    path.write_text(
        f"""\
languages:
  - {BENGALI},
     transliteration: uroman, culture: {{expected: Indian, phrase: in Bengali style, named_by: [Baul]}},
     answers: ['এখানে .{{0,20}}অনুবাদ'], assents: [অবশ্যই], countries: {{JPN: জাপান দেশ}},
     phrases: {{city: [শহরের ছবি, '{{country}}: শহরের ছবি']}}, survey: {survey}}}
scripts:
  - {{code: Beng, name: Bengali, alphabet: কখগঘঙ, fonts: [NotoSerifBengali-Regular.ttf]}}
""",
        encoding="utf-8",
    )
    with vocabulary.given(str(path)):
        from t2i_parity.dataset_builder.controls.culture_tags import names_a_culture
        from t2i_parity.dataset_builder.controls.transliteration import transliterate
        from t2i_parity.dataset_builder.controls.typos import perturb
        from t2i_parity.generate import fonts

        assert expected_culture({"subset": "own", "language": "bn"}) == "Indian"
        assert phrases("answers").match("এখানে আপনার অনুবাদ")
        assert phrases("assents", ",").match("অবশ্যই, একটি")
        assert local_prompt("city", COUNTRIES["JPN"], "bn") == "জাপান দেশ: শহরের ছবি"
        assert local_prompt("city", COUNTRIES["IND"], "bn") == "ভারত: শহরের ছবি"
        assert interface_languages()[-1] == "bn"
        assert texts("bn")["begin"] == "[begin]"
        assert transliterate("বাংলা", "bn").isascii()
        assert set(perturb("বব", 1.0, 1, "Beng")) <= set("কখগঘঙব")
        assert fonts.face_for("বাংলা", "Beng")[0].name == "NotoSerifBengali-Regular.ttf"
        assert not names_a_culture("A Bengal cat")
    assert phrases("answers").match("এখানে আপনার অনুবাদ") is None


def test_the_identifier_knows_an_added_language_and_judges_the_others_as_before(file: Path) -> None:
    swahili, english = "Paka wa kijivu amelala kwenye dirisha la jikoni la nyumba", "A grey cat sleeps on the kitchen window of the house"
    before = identified(english, "en")
    assert identified(swahili, "sw") is None
    with vocabulary.given(str(file)):
        verdict = identified(swahili, "sw")
        assert verdict is not None
        assert verdict.agrees
        wrong = identified(english, "sw")
        assert wrong is not None
        assert wrong.flagged
        assert identified(english, "en") == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"languages:\n  - {BENGALI}, colour: red}}", r"line 2, languages\[0\] \(bn\), colour: unknown key: expected .*'colour'"),
        (f"languages:\n  - {BENGALI}, spoced: no}}", "got 'spoced'. Did you mean spaced?"),
        ("tongues: []", "unknown key: expected one of scripts, languages, varieties, got 'tongues'"),
        (f"languages:\n  - {SWAHILI}\n  - {BENGALI}, direction: up}}", r"line 3, .* \(bn\), direction: expected 'ltr' or 'rtl', got 'up'"),
        (f"languages:\n  - {BENGALI}, culture: {{expected: Indian, phase: x, phrase: y}}}}",
         "culture, phase: unknown key: expected one of expected, phrase"),
        ("languages:\n  - {code: bn, name: Bengali}", r"line 2, languages\[0\] \(bn\).*the key 'native_name' is not there"),
        (f"languages:\n  - {BENGALI.replace('bn', 'bengali')}}}", r"code: expected a BCP-47 code, such as bn, .* got 'bengali'"),
        (f"languages:\n  - {BENGALI.replace('Beng,', 'Bang,')}}}", r"script: expected an ISO 15924 code, such as Beng .* got 'Bang'"),
        (f"languages:\n  - {BENGALI.replace('bn', 'hi')}}}", r"\(hi\), code: expected one that is not taken, got 'hi', Hindi"),
        (f"languages:\n  - {SWAHILI}\n  - {SWAHILI}", r"line 3, languages\[1\] \(sw\), code: expected one that is not taken"),
        (f"languages:\n  - {BENGALI}, standard: xx}}", "standard: expected the code of another language, got 'xx'"),
        (f"languages:\n  - {BENGALI}, culture: {{expected: Martian, phrase: x}}}}", "expected one of Western, .* got 'Martian'"),
        (f"languages:\n  - {BENGALI}, answers: ['(']}}", r"answers: expected regular expressions, got '\('"),
        (f"languages:\n  - {BENGALI}, phrases: {{city: [a, b]}}}}", r"phrases\.city: expected \{country\} in the second phrase, got 'b'"),
        ("varieties:\n  - {code: NigE, name: x, reference: XX}", "reference: expected the code of another variety, or null, got 'XX'"),
        ("varieties:\n  - {code: NigE, name: x, language: fr}", "reference: expected a variety of fr, got 'SAE' of en"),
        ("varieties:\n  - {code: NigE, name: x, language: xx}", "language: expected one of en, .* got 'xx'"),
        ("varieties:\n  - {code: AAVE, name: x}", "code: expected one that is not taken, got 'AAVE', African"),
        ("varieties:\n  - {code: NigE, name: x, code: y}", "line 2: the key 'code' stands there twice"),
        ("languages: [", "is not valid YAML"),
        ("languages: 5", "expected a valid tuple|expected a mapping"),
        ("- a", "expected a mapping of scripts, languages, varieties"),
    ],
)  # fmt: skip
def test_faults_are_named_and_nothing_is_taken(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told) as caught, vocabulary.given(str(path)):
        pass
    assert str(path) in str(caught.value)
    assert "  " not in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    message = error_of("build", "--vocabulary", str(tmp_path / "none.yaml"), "--out", str(tmp_path / "prompts"))
    assert "none.yaml cannot be read (No such file" in message
    assert "expects the path of a YAML file" in error_of("build", "--vocabulary")


def test_the_option_stands_anywhere_and_in_the_root_help(file: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("prompt,language,dimension\nPaka mweusi,sw,TA-C\n", encoding="utf-8")
    asked = ["build", "lingt2i_content", "--source", "rows", "--input", f"rows={rows}", "--out"]
    for place, arguments in enumerate((["--vocabulary", str(file), *asked, "{}"], [*asked, "{}", f"--vocabulary={file}"])):
        assert "sw" in command(*(each.format(tmp_path / str(place)) for each in arguments)).stdout
    recorded = json.loads((tmp_path / "0" / "vocabulary.json").read_text(encoding="utf-8"))
    assert recorded["languages"] == ["sw"]
    assert len(recorded["sha256"]) == 64
    assert re.search(r"--vocabulary\s+FILE", command("--help").stdout)
    assert "unknown language 'sw'" in error_of(*asked, str(tmp_path / "prompts"))


def _known(codes: list[str]) -> list[bool]:
    return [code in LANGUAGES for code in codes]


def test_other_processes_see_the_same_vocabulary(file: Path) -> None:
    code = "from t2i_parity.dataset_builder.languages import LANGUAGES; print(LANGUAGES['bn'].name, 'sw' in LANGUAGES)"
    with vocabulary.given(str(file)):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(_known, [["bn", "sw", "xx"]]) == [True, True, False]
    assert done.stdout.split() == ["Bengali", "True"]


def test_a_package_adds_a_language_by_a_call() -> None:
    code = (
        "from t2i_parity.dataset_builder import vocabulary as v; from t2i_parity.dataset_builder.languages import *; "
        "from t2i_parity.dataset_builder.varieties import *; "
        "v.add(Language('bn', 'Bengali', 'বাংলা', 'Beng', 'Indo-Aryan', 'ben')); v.add(Variety('Rarhi', 'Rarhi', 'bn', None)); "
        "print(LANGUAGES['bn'].written.name, VARIETIES['Rarhi'].language, len(v.stamp(['bn'])), v.record(['bn'])['languages'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Bengali", "bn", "16", "['bn']"]
    for entry, told in (
        (Language("bn", "Bengali", "বাংলা", "Bang", "Indo-Aryan", "ben"), "ISO 15924"),
        (Variety("en", "x"), "which is a language"),
    ):
        with pytest.raises(InputError, match=told):
            vocabulary.add(entry)
