"""Typed scores: groups, signatures inside signatures, specs, and files of today and of version 0.1 read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2i_parity.generate.specs import specs
from t2i_parity.metrics import stored
from t2i_parity.metrics._common import Signature, compare
from t2i_parity.metrics.scores import ALL, Group, Interval, MetricSpec, Score, ScoreSpec, labelled
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT

TEXTS = st.text(st.characters(exclude_characters="|\n", exclude_categories=["Cs"]), max_size=8)
KEYS = st.text("abc%{}., =", min_size=1, max_size=4)
SIGNATURES = st.recursive(
    st.builds(Signature, TEXTS.filter(bool), st.dictionaries(KEYS, TEXTS, max_size=3), TEXTS),
    lambda inner: st.builds(Signature, TEXTS.filter(bool), st.dictionaries(KEYS, st.one_of(TEXTS, inner), max_size=3), TEXTS),
    max_leaves=4,
)


@given(SIGNATURES)
def test_a_signature_comes_back_whole(signature: Signature) -> None:
    signature = Signature(signature.metric.replace(":", ""), signature.fields, signature.version)
    if signature.metric:
        assert Signature.parse(str(signature)) == signature
        assert not compare(signature, str(signature))


def test_a_difference_inside_is_named_by_its_path() -> None:
    one, other = (Signature("m", {"reader": Signature("tesseract", {"psm": psm}, "5")}, "1.0") for psm in ("7", "13"))
    assert compare(one, other) == {"reader.psm": ("7", "13")}


@pytest.mark.parametrize("text", ["", "m", "m|v", "m|a:b", "m|v:1|a:b", "m|a:1|a:2|v:1", "|v:1", "m|a:{b}|v:1", "m|v:{x|v:1}"])
def test_what_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a signature"):
        Signature.parse(text)


def test_groups_are_what_they_are_cut_by_whatever_codes_hold() -> None:
    hostile = Group(language="hi, dimension=x", dimension="|:,")
    assert hostile["dimension"] == "|:,"
    assert hostile != Group(language="hi", dimension="x")
    assert Group(a="1", b="2") == Group(b="2", a="1")
    assert hash(Group(a="1", b="2")) == hash(Group(b="2", a="1"))
    assert Group().axes == ()
    assert str(ALL) == "all"
    labels, of = labelled([hostile, ALL, hostile])
    assert [of[label] for label in labels] == [hostile, ALL, hostile]


def test_a_spec_holds_its_own_scores_only() -> None:
    with pytest.raises(ValueError, match="declared as another metric's"):
        MetricSpec("mine", "Mine", "", (ScoreSpec("other", "key", "Key"),))
    with pytest.raises(KeyError, match="declares no score 'nothing'"):
        TEXT["nothing"]


def test_every_metric_is_declared_whole() -> None:
    for name, spec in specs().items():
        assert spec.name == name
        assert spec.title
        assert spec.about
        assert len({score.key for score in spec.scores}) == len(spec.scores), name
        assert (spec.compute is None) == (not spec.columns), name
        if spec.unequal:
            assert spec.unequal in {score.row.column for score in spec.scores if score.row is not None}, name
        for score in spec.scores:
            assert score.title
            assert (score.unit == "p") == (score.kind == "p_value"), score.name
            assert (score.unit == "count") == (score.kind == "count"), score.name


def test_scores_come_back_from_their_file() -> None:
    signature = Signature("text_rendering_precision", {"reader": Signature("tesseract", {"psm": "7"}, "5")}, "1.0")
    scores = [
        Score(TEXT["precision"], "lingt2i_text", Group(language="hi"), 0.5, 4, 1, Interval(0.25, 0.75, 0.9), signature),
        Score(TEXT["sentence_accuracy"], "lingt2i_text", ALL, None, 0, 5, None, signature, published=0.25),
    ]
    assert stored.read(json.loads(json.dumps([score.json() for score in scores])), specs()) == scores


def test_a_score_of_nobody_here_keeps_what_the_file_says() -> None:
    mine = ScoreSpec("mine", "how_far", "How far", unit="pp", direction="zero")
    score = Score(mine, "s", ALL, 1.5, 3, 0, None, Signature("mine", {}, "1"))
    (read,) = stored.read([score.json()], specs())
    assert (read.spec.title, read.spec.unit, read.spec.direction) == ("How far", "pp", "zero")
    with pytest.raises(ValueError, match="score 0: expected an entry of scores"):
        stored.read([{**score.json(), "direction": "sideways"}], specs())


READER = "tesseract|models:row-language|layout:lines|bidi:stripped|method:2|v:5.5.4"
FOLDED = "tesseract,models=row-language,layout=lines,bidi=stripped,method=2,v=5.5.4"
FIRST = [
    {
        "metric": "text_rendering_precision.precision",
        "subset": "lingt2i_text",
        "group": "language:en",
        "value": 0.35227513227513224,
        "n": 3,
        "n_missing": 0,
        "ci_low": 0.2714285714285714,
        "ci_high": 0.3888888888888889,
        "signature": f"text_rendering_precision|tok:mistral-common/tekken_240911|norm:none|variant:paper|reader:{FOLDED}|v:1.0",
        "higher_is_better": True,
        "unit": "fraction",
    },
    {
        "metric": "cross_lingual_gap.std",
        "subset": "lingt2i_text",
        "group": "all",
        "value": 0.10879410243243204,
        "n": 9,
        "n_missing": 0,
        "ci_low": 0.031981122528285895,
        "ci_high": 0.20595385152657988,
        "signature": "cross_lingual_gap|mean:languages|std:population|of:text_rendering_precision,tok=mistral-common/tekken_240911,"
        f"norm=none,variant=paper,reader={FOLDED},v=1.0|v:1.0",
        "higher_is_better": False,
        "unit": "fraction",
    },
    {
        "metric": "dialect_penalty.delta_tpr_pp",
        "subset": "starter",
        "group": "variety:AAVE,category:guns, knives",
        "value": None,
        "n": 0,
        "n_missing": 2,
        "ci_low": None,
        "ci_high": None,
        "signature": "dialect_penalty|test:paper|v:1.0",
        "higher_is_better": False,
        "unit": "pp",
    },
]
"""As version 0.1 wrote them."""


def test_files_of_version_0_1_are_still_read() -> None:
    text, spread, penalty = stored.read(FIRST, specs(), judges=[READER], level=0.9)
    assert text.spec is TEXT["precision"]
    assert text.group == Group(language="en")
    assert text.interval == Interval(0.2714285714285714, 0.3888888888888889, 0.9)
    assert text.signature.fields["reader"] == Signature.parse(READER)
    assert spread.signature.fields["of"] == text.signature
    assert spread.group == ALL
    assert penalty.group == Group(variety="AAVE", category="guns, knives")
    assert penalty.spec.direction == "zero"


def test_without_its_judges_a_first_signature_stays_as_it_was_written() -> None:
    text, spread, _ = stored.read(FIRST, specs())
    assert text.signature.fields["reader"] == FOLDED
    assert spread.signature.fields["of"] == text.signature


@pytest.mark.parametrize("group", ["hi", "", ":x"])
def test_a_first_group_that_is_none_is_told(group: str) -> None:
    with pytest.raises(ValueError, match="score 0"):
        stored.read([{**FIRST[0], "group": group}], specs())
