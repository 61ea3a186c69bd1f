"""Judges that ask a service, through the real commands: what they ask, what becomes of the answers, and what no fault can do."""

from __future__ import annotations

import base64
import io
import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import command, error_of
from judged_runs import content_run
from loopback_api import BROKEN, NOT_JSON, RATE_LIMITED, TRUNCATED, Fault, LoopbackApi, chat_answer, serving
from PIL import Image

from t2i_parity.dataset_builder import endpoints
from t2i_parity.dataset_builder.answers import AnswerError
from t2i_parity.dataset_builder.chat import Token
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.judges import load
from t2i_parity.generate.judges.culture import ELEMENTS, TAGS
from t2i_parity.generate.judges.toxicity import verdict_in
from t2i_parity.generate.judges.trigscore import QUALITIES, rating_tokens
from t2i_parity.generate.judges.vlm_reader import marked
from t2i_parity.generate.run import Run
from t2i_parity.metrics.bias_entropy.core import CATEGORIES
from t2i_parity.metrics.culture_alignment import core as culture_alignment
from t2i_parity.metrics.scores import Group, Score
from t2i_parity.metrics.trigscore import core as trigscore

OPENAI = "/v1/chat/completions"
GEMINI = "/models/gemini-test:generateContent"
Answer = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come at once; that they wait is tested where they are made."""
    monkeypatch.setattr(endpoints, "LONGEST_WAIT", 0.01)


def openai(api: LoopbackApi, *more: str) -> list[str]:
    """The options that ask a loopback server in OpenAI's way."""
    pairs = ["backend=openai", "model=served-model", f"url={api.url}/v1", *more]
    return [word for pair in pairs for word in ("--set", pair)]


def gemini(api: LoopbackApi, *more: str) -> list[str]:
    pairs = ["backend=gemini", "model=gemini-test", f"url={api.url}", *more]
    return [word for pair in pairs for word in ("--set", pair)]


def gemini_answer(text: str, finish: str = "STOP", **more: Any) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": finish, **more}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10},
    }


def asked(body: dict[str, Any]) -> str:
    """The text of the last turn, of either kind of request."""
    if "contents" in body:
        return str(body["contents"][-1]["parts"][-1]["text"])
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[-1]["text"])


def picture(body: dict[str, Any]) -> Image.Image:
    """The picture that is asked about."""
    if "contents" in body:
        data = body["contents"][0]["parts"][0]["inlineData"]["data"]
    else:
        turn = next(message for message in body["messages"] if message["role"] == "user")
        data = turn["content"][0]["image_url"]["url"].partition(",")[2]
    return Image.open(io.BytesIO(base64.b64decode(data)))


def number(body: dict[str, Any]) -> int:
    """Which row of a content run a request is about: its picture's width tells."""
    return picture(body).width - 64


def repaired(body: dict[str, Any]) -> bool:
    """Whether this is a second question about an answer."""
    return "That answer cannot be used" in asked(body)


def people(*genders: str) -> str:
    return json.dumps({"people": [{"race": "Asian", "gender": gender, "age": "Adult"} for gender in genders]})


def observations(run: str, judge: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Run.open(run).observations(judge).read().to_pylist()
    return sorted(rows, key=lambda row: IDS.index(row["image_id"]))


def scores(run: str) -> dict[tuple[str, str, Group], Score]:
    return {(score.spec.name, score.subset, score.group): score for score in Run.open(run).scores()}


@pytest.fixture
def run(tmp_path: Path) -> str:
    return content_run(tmp_path / "run")


@pytest.fixture(scope="module", autouse=True)
def _ids(tmp_path_factory: pytest.TempPathFactory) -> None:
    url = content_run(tmp_path_factory.mktemp("ids") / "run")
    IDS[:] = Run.open(url).images().read(["image_id"])["image_id"].to_pylist()


IDS: list[str] = []
"""The ids of a content run's images, in their order."""


# Faults


@pytest.mark.parametrize("backend", ["openai", "gemini"])
def test_passing_faults_lose_nothing(run: str, backend: str) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        text = people("Male") if number(body) % 2 else people()
        return chat_answer(text) if backend == "openai" else gemini_answer(text)

    with serving({OPENAI: answer, GEMINI: answer}) as api:
        api.then([RATE_LIMITED, BROKEN, TRUNCATED, NOT_JSON, Fault(silence=1.5), Fault(body='{"odd": 1}'), Fault(503, "")])
        command("judge", run, "--with", "demographics", *(openai if backend == "openai" else gemini)(api, "timeout=1"))
        assert len(api.seen) == len(IDS) + 7
    rows = observations(run, "demographics")
    assert [row["status"] for row in rows] == ["ok"] * len(IDS)
    assert [len(row["people"]) for row in rows] == [place % 2 for place in range(len(IDS))], "each answer with its own image"


def test_lasting_faults_are_told_apart_and_nothing_is_scored_that_was_not_judged(run: str) -> None:
    """One row each: refused by the model, refused by the service, failing server, wrong schema, unknown category, cut off, prose, empty."""
    person = '{"people": [{"race": "Asian", "gender": "Male", "age": "%s"}]}'
    said: dict[int, Any] = {
        2: chat_answer('{"persons": []}'),
        3: chat_answer(person % "Unknown"),
        4: chat_answer(people("Male", "Male")[:-3], "length"),
        5: chat_answer("I see two men."),
        6: chat_answer(""),
        7: chat_answer('{"people": [{"race": "Parse Error", "gender": "Error", "age": "Adult"}]}'),
    }
    refusal = chat_answer("")
    refusal["choices"][0]["message"] |= {"content": None, "refusal": "I do not describe people"}

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if number(body) == 0:
            return refusal
        if number(body) == 1:
            return {"choices": "none"}
        return said.get(number(body)) or chat_answer(people("Female"))

    with serving({OPENAI: answer}) as api:
        command("judge", run, "--with", "demographics", *openai(api))
        questions = len(api.seen)
        command("judge", run, "--with", "demographics", *openai(api))
        assert len(api.seen) == questions, "what was judged is not asked again"
    rows = observations(run, "demographics")
    assert len(rows) == len(IDS)
    assert [row["status"] for row in rows] == ["refused"] + ["failed"] * 7 + ["ok"] * 6
    assert all(row["people"] is None and row["answer"] is None for row in rows[:8])
    assert rows[0]["reason"] == "I do not describe people"
    for row, reason in zip(
        rows[1:],
        (
            "not of the promised form",
            "'people' is a required property",
            "'Unknown' is not one of",
            "cut off",
            "no complete JSON object; the last one was 'I see two men.'",
            "empty",
            "is not one of",
        ),
        strict=False,
    ):
        assert reason in row["reason"], row["reason"]
    command("score", run, "--resamples", 20)
    whole = scores(run)["bias_entropy.gender", "lingt2i_content", Group()]
    assert (whole.value, whole.n, whole.n_missing) == (0.0, 4, 8)


def test_a_bad_answer_is_asked_for_again_and_that_is_recorded(run: str) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if number(body) % 2 == 0 and not repaired(body):
            return chat_answer("There is a man.")
        return chat_answer(people("Male"))

    with serving({OPENAI: answer}) as api:
        done = command("judge", run, "--with", "demographics", *openai(api, "input_price=2", "output_price=10"))
        again = [body for _, body, _ in api.seen if repaired(body)]
    assert len(again) == 7
    assert [message["role"] for message in again[0]["messages"]] == ["system", "user", "assistant", "user"]
    assert again[0]["messages"][2]["content"] == "There is a man."
    rows = observations(run, "demographics")
    assert [row["attempts"] for row in rows] == [2, 1] * 7
    assert [row["input_tokens"] for row in rows] == [20, 10] * 7
    written = sum(row["output_tokens"] for row in rows)
    assert f"210 tokens read and {written} written, about ${(2 * 210 + 10 * written) / 1e6:.4f}" in done.stderr
    spent = rows[1]
    assert spent["cost"] == pytest.approx((2 * spent["input_tokens"] + 10 * spent["output_tokens"]) / 1e6)


def test_once_is_once(run: str) -> None:
    with serving({OPENAI: lambda body: chat_answer("There is a man.")}) as api:
        command("judge", run, "--with", "demographics", *openai(api, "attempts=1"), check=1)
        assert len(api.seen) == len(IDS)
    assert all("asked once" in row["reason"] for row in observations(run, "demographics"))


def test_requests_are_made_at_once(run: str) -> None:
    seven = threading.Barrier(7, timeout=20)

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        seven.wait()
        return chat_answer("no")

    with serving({OPENAI: answer}) as api:
        command("judge", run, "--with", "toxicity", *openai(api, "concurrency=7"))
    assert {row["verdict"] for row in observations(run, "toxicity")} == {"no"}


def test_neither_key_nor_address_is_kept(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARITY_TEST_KEY", "a-secret-key")

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return gemini_answer("no")

    with serving({GEMINI: answer}) as api:
        api.then([Fault(400, '{"error": {"message": "bad"}}')])
        done = command("judge", run, "--with", "toxicity", *gemini(api, "key_variable=PARITY_TEST_KEY"))
        port = api.url.rpartition(":")[2]
        headers = {name.lower(): value for name, value in api.seen[0][2].items()}
        assert headers["x-goog-api-key"] == "a-secret-key"
    written = b"".join(path.read_bytes() for path in Path(run).rglob("*") if path.is_file())
    rows = json.dumps(observations(run, "toxicity"))
    for secret in ("a-secret-key", f":{port}", "PARITY_TEST_KEY"):
        assert secret.encode() not in written
        assert secret not in rows + done.stdout + done.stderr
    assert "|backend:gemini|model:gemini-test|" in rows


def test_what_concerns_all_rows_ends_the_work_and_keeps_what_was_done(run: str) -> None:
    with serving({OPENAI: lambda body: chat_answer("no")}) as api:
        options = openai(api, "concurrency=1")
        api.then([Fault(200, None)] * 4 + [Fault(401, '{"error": {"message": "key expired"}}')])
        message = error_of("judge", run, "--with", "toxicity", "--batch-size", 2, *options)
        assert "key expired" in message
        command("judge", run, "--with", "toxicity", *options)
    rows = observations(run, "toxicity")
    assert len(rows) == len(IDS)
    assert {row["verdict"] for row in rows} == {"no"}


# Each judge


def test_the_reader_reads_what_is_between_the_marks(prompts: Path, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    chosen = ("--config", "lingt2i_text", "--languages", "en,hi,ja", "--limit", 6)
    command("generate", "--model", "glyph", "--prompts", prompts, *chosen, "--out", run)
    rows = Run.open(run).images().read(["image_id", "language", "render_text"]).to_pylist()
    wanted = {row["language"]: [other["render_text"] for other in rows if other["language"] == row["language"]] for row in rows}

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        for name, code in (("English", "en"), ("Hindi", "hi"), ("Japanese", "ja")):
            if f"expected to be in {name} (" in asked(body):
                assert wanted[code][0] not in asked(body), "the wanted text is never told"
                halves = "\n".join([wanted[code][0][:2], wanted[code][0][2:]]) if code == "ja" else wanted[code][0]
                return chat_answer(f"```\n<text>{halves}</text>\n```")
        raise AssertionError(asked(body))

    with serving({OPENAI: answer}) as api:
        command("judge", run, "--with", "vlm-reader", *openai(api))
    read = {row["image_id"]: row["text"] for row in Run.open(run).observations("vlm-reader").read().to_pylist()}
    assert all(read[row["image_id"]] == wanted[row["language"]][0] for row in rows), "lines joined as the script wants"
    command("score", run, "--tokenizer", "tekken", "--resamples", 20)
    for code in ("en", "hi", "ja"):
        found = scores(run)["text_rendering_precision.sentence_accuracy", "lingt2i_text", Group(language=code)]
        assert (found.value, found.n) == (0.5, 2)


def two_lines(**row: Any) -> dict[str, Any]:
    corners = [[[[100, y], [900, y], [900, y + 200], [100, y + 200]], [[0, 0], [9, 9]]] for y in (100, 700)]
    return {"prompt_id": "p", "language": "zh", "render_layout": json.dumps(corners), "image": Image.new("RGB", (512, 256)), **row}


def test_the_reader_reads_lines_one_by_one_where_the_layout_puts_them() -> None:
    sizes = []

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        sizes.append(picture(body).size)
        return chat_answer("<text>营业</text>")

    with serving({OPENAI: answer}) as api:
        options = {"backend": "openai", "model": "m", "url": f"{api.url}/v1", "crop": "layout"}
        reader = load("vlm-reader", options)
        reader.check([two_lines()])
        whole = two_lines(render_layout=None, image=Image.new("RGB", (80, 60)))
        first, second = reader.observe([two_lines(), whole])
        assert isinstance(first, dict)
        assert isinstance(second, dict)
        assert (first["text"], first["crops"], first["input_tokens"]) == ("营业营业", 2, 20)
        assert (second["text"], second["crops"]) == ("营业", 0)
        # 800 by 200 of 1024 pixels, with 15% of the height around it, in a picture of 512 by 256.
        assert sorted(sizes) == [(80, 60), (416, 66), (416, 66)]
        api.then([Fault(body=json.dumps(chat_answer("nothing there")))] * 2)
        broken, kept = load("vlm-reader", options | {"concurrency": "1", "attempts": "1"}).observe([two_lines(), two_lines()])
        assert "line 0: no usable answer" in str(getattr(broken, "reason", ""))
        assert isinstance(kept, dict)


def test_layouts_that_are_none_are_told() -> None:
    with serving({}) as api:
        reader = load("vlm-reader", {"backend": "openai", "model": "m", "url": api.url, "crop": "layout"})
    with pytest.raises(InputError, match="needs rows with a render_layout"):
        reader.check([two_lines(render_layout=None)])
    with pytest.raises(InputError, match=r"row 1 \(p\): render_layout is not JSON"):
        reader.check([two_lines(), two_lines(render_layout="{")])


@pytest.mark.parametrize("answer", ["open", "<text>open", "<text>a</text> or <text>b</text>", "open</text>"])
def test_text_without_its_marks_is_no_reading(answer: str) -> None:
    with pytest.raises(AnswerError):
        marked(answer)


def test_no_text_is_a_reading() -> None:
    assert marked("<text></text>") == ""
    assert marked('<TEXT>\n "«x»" \n</TEXT>') == '"«x»"'


def word_probabilities(*places: dict[str, float]) -> list[dict[str, Any]]:
    """``logprobs.content`` of an answer: in each place the tokens and their log-probabilities, the first one taken."""
    return [
        {
            "token": next(iter(place)),
            "logprob": next(iter(place.values())),
            "top_logprobs": [{"token": token, "logprob": value} for token, value in place.items()],
        }
        for place in places
    ]


@pytest.mark.parametrize("backend", ["openai", "gemini"])
def test_ratings_by_the_rows_own_dimension(run: str, backend: str) -> None:
    top = {"Good": -0.4, " excellent": -1.5, "The": -3.0}

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        assert "Rate this one aspect of the image." in asked(body)
        place = {"I": -0.1, "Sorry": -3.0} if number(body) == 3 else top
        if backend == "openai":
            assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 4)
            return chat_answer("Good", "length", word_probabilities(place))
        assert body["generationConfig"]["logprobs"] == 20
        listed = [{"token": token, "logProbability": value} for token, value in place.items()]
        return gemini_answer(
            "Good", "MAX_TOKENS", logprobsResult={"chosenCandidates": listed[:1], "topCandidates": [{"candidates": listed}]}
        )

    with serving({OPENAI: answer, GEMINI: answer}) as api:
        command("judge", run, "--with", "trigscore", *(openai if backend == "openai" else gemini)(api))
        questions = {number(body): asked(body) for _, body, _ in api.seen}
    rows = observations(run, "trigscore")
    for place, row in enumerate(Run.open(run).images().read(["dimension", "language", "prompt"]).to_pylist()):
        assert QUALITIES[row["dimension"]].definition in questions[place]
        assert f"<prompt>{row['prompt']}</prompt>" in questions[place], "with its braces"
        assert f"The prompt is in {'Hindi' if row['language'] == 'hi' else 'English'}." in questions[place]
    assert [row["status"] for row in rows] == ["ok"] * 3 + ["failed"] + ["ok"] * 10
    assert "no rating word among 'I', 'Sorry', the 2 likeliest tokens" in rows[3]["reason"]
    assert rows[0]["rating_tokens"] == ["Good", " excellent", "The"]
    assert rows[0]["rating_logprobs"] == [-0.4, -1.5, -3.0]
    command("score", run, "--resamples", 20)
    whole = scores(run)["trigscore.trigscore", "lingt2i_content", Group()]
    assert whole.value == pytest.approx(trigscore.per_row([list(top)], [list(top.values())])["score"][0])
    assert (whole.n, whole.n_missing) == (11, 1)
    assert f"|backend:{backend}|" in str(whole.signature)
    assert scores(run)["trigscore.trigscore", "lingt2i_content", Group(dimension="TA-C", language="hi")].n_missing == 1


def test_a_service_without_probabilities_cannot_rate(run: str) -> None:
    with serving({OPENAI: lambda body: chat_answer("Good")}) as api:
        message = error_of("judge", run, "--with", "trigscore", *openai(api))
    assert "answered as served-model without log-probabilities" in message


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        # One word in several spellings, each a token of its own.
        ([{"good": -1.0, " good": -2.0, "Good": -3.0}], {"good": -1.0, " good": -2.0, "Good": -3.0}),
        # A word in pieces: its beginning stands for it.
        ([{"terr": -0.5, "bad": -1.0}, {"ible": -0.1}], {"terr": -0.5, "bad": -1.0}),
        # A beginning of one letter says nothing yet; with its continuations it does.
        ([{"t": -0.5, "bad": -1.0}, {"errible": -0.1, "he": -3.0}], {"terrible": -0.6, "the": -3.5, "bad": -1.0}),
        # Blank and opening tokens, several of them.
        ([{"\n": -0.1, "good": -3.0}, {'"': -0.2}, {"bad": -0.3, "good": -2.0}], {'\n"bad': -0.6, '\n"good': -2.3, "good": -3.0}),
        ([{"**": -0.1}, {"Medium": -0.2}], {"**Medium": -0.3}),
        # What could become no rating word is left as it is.
        ([{"The": -0.1, "good": -3.0}, {" good": -0.1}], {"The": -0.1, "good": -3.0}),
        # The answer ends before it says anything.
        ([{" ": -0.1, "good": -3.0}], {" ": -0.1, "good": -3.0}),
        # The one that was taken is not among the likeliest.
        ([{"good": -1.0}], {"good": -1.0}),
    ],
)
def test_tokens_of_a_rating(places: list[dict[str, float]], expected: dict[str, float]) -> None:
    answer = [Token(next(iter(place)), next(iter(place.values())), tuple(place.items())) for place in places]
    tokens, logprobs = rating_tokens(answer)
    assert dict(zip(tokens, logprobs, strict=True)) == pytest.approx(expected)
    assert logprobs == sorted(logprobs, reverse=True)
    bare = [Token(token.text, token.logprob, tuple(each for each in token.top if each[0] != token.text)) for token in answer]
    assert dict(zip(*rating_tokens(bare), strict=True)) == pytest.approx(expected)


@pytest.fixture(scope="module")
def tekken() -> Any:
    """A real tokenizer: 131,000 tokens over many languages. It cuts "terrible" in two and "EXCELLENT" in five."""
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return Tekkenizer.from_file(Path(mistral_common.__file__).parent / "data" / "tekken_240911.json")


@pytest.mark.parametrize("word", trigscore.SCALE)
def test_every_spelling_of_a_rating_is_understood_as_a_real_tokenizer_cuts_it(word: str, tekken: Any) -> None:
    for spelling in (word, word.capitalize(), word.upper(), f" {word}", f'"{word}', f"**{word.capitalize()}", f"\n\n{word}"):
        pieces = [tekken.decode([number]) for number in tekken.encode(spelling, bos=False, eos=False)]
        tokens, _ = rating_tokens([Token(piece, -0.5, ((piece, -0.5),)) for piece in pieces[:4]])
        assert [trigscore.words_of(token) for token in tokens] == [[word]], (spelling, pieces)


def test_a_beginning_that_two_words_share_is_carried_on() -> None:
    answer = [Token("ex", -0.5, (("ex", -0.5),)), Token("cellent", -0.1, (("cellent", -0.1), ("treme", -2.0)))]
    assert rating_tokens(answer, ["excellent", "extreme"]) == (["excellent", "extreme"], [-0.6, -2.5])
    assert rating_tokens(answer, ["excellent", "bad"])[0] == ["ex"]
    twice = [Token(" ", -0.5, ((" ", -0.5), (" good", -1.0))), Token("good", -0.2, (("good", -0.2),))]
    tokens, logprobs = rating_tokens(twice)
    assert tokens == [" good"], "one text by two ways is one alternative"
    assert logprobs[0] == pytest.approx(math.log(math.exp(-0.7) + math.exp(-1.0)))


def test_qualities_of_text_are_asked_with_the_text(prompts: Path, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    chosen = ("--config", "lingt2i_text", "--languages", "ar", "--limit", 1)
    command("generate", "--model", "glyph", "--prompts", prompts, *chosen, "--out", run)
    with serving({OPENAI: lambda body: chat_answer("Good", "stop", word_probabilities({"Good": -0.1}))}) as api:
        for judge in ("text-quality", "text-aesthetics", "background-fusion"):
            command("judge", run, "--with", judge, *openai(api))
        questions = [asked(body) for _, body, _ in api.seen]
    wanted = Run.open(run).images().read(["render_text"])["render_text"][0].as_py()
    assert len(questions) == len(set(questions)) == 3
    for question, code in zip(questions, ("text-quality", "text-aesthetics", "background-fusion"), strict=True):
        assert f"<text>{wanted}</text>" in question
        assert "a text in Arabic (العربية, script Arab)" in question
        assert QUALITIES[code].definition in question


@pytest.mark.parametrize("judge", ["text-quality", "text-aesthetics", "background-fusion"])
def test_a_quality_of_text_needs_a_text(run: str, judge: str) -> None:
    with serving({}) as api:
        assert f"{judge} is a quality of rendered text" in error_of("judge", run, "--with", judge, *openai(api))


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("yes", "yes"), ("No", "no"), ("No.", "no"), ("  NO!\n", "no"), ("**No**", "no"), ('"Yes"', "yes"), ("Uncertain.", "uncertain"),
        ("Answer: no", "no"), ("The answer is yes.", "yes"), ("No, the image shows no nudity.", "no"), ("Yes - there is blood.", "yes"),
    ],
)  # fmt: skip
def test_verdicts_are_read_whatever_is_around_them(answer: str, verdict: str) -> None:
    assert verdict_in(answer) == verdict


@pytest.mark.parametrize(
    "answer",
    ["", "Not sure", "None", "nothing", "Yesterday", "maybe", "No, but then yes", "yes/no", "The image shows no people.", "0.5", "I"],
)
def test_what_is_no_verdict_is_not_taken_for_one(answer: str) -> None:
    with pytest.raises(AnswerError):
        verdict_in(answer)


def test_uncertain_is_a_judgement_and_no_verdict(run: str) -> None:
    said = {0: "No.", 1: "yes", 2: "Uncertain", 3: "Not sure"}

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        assert "a prompt about" not in asked(body), "the image is judged, not the request"
        return gemini_answer(said.get(number(body), "no"))

    with serving({GEMINI: answer}) as api:
        command("judge", run, "--with", "toxicity", *gemini(api, "thinking_tokens=0"))
        assert api.seen[0][1]["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 0}
    rows = observations(run, "toxicity")
    assert [(row["status"], row["verdict"], row["probabilities"]) for row in rows[:4]] == [
        ("ok", "no", [0.0]),
        ("ok", "yes", [1.0]),
        ("ok", "uncertain", None),
        ("failed", None, None),
    ]
    command("score", run, "--resamples", 20)
    whole = scores(run)["toxicity_rejection.rejection_rate", "lingt2i_content", Group()]
    assert (whole.value, whole.n, whole.n_missing) == (0.9, 10, 2)


def culture(tag: str, specificity: int, *elements: str) -> str:
    return json.dumps({"culture": tag, "elements": elements, "specificity": specificity})


def test_cultures_are_scored_against_the_language_or_the_tag(run: str) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        assert "Hindi" not in asked(body)
        assert body["response_format"]["json_schema"]["schema"]["properties"]["culture"]["enum"] == list(TAGS)
        said = {0: culture("None", 0), 1: culture("Indian", 3, "clothing", "clothing"), 12: culture("Indian", 2), 13: culture("Western", 1)}
        said |= {2: culture("None", 2), 3: culture("Atlantean", 3), 4: culture("Indian", 4), 5: culture("Indian", 3, "vibes")}
        return chat_answer(said.get(number(body), culture("Western", 2, "food")))

    with serving({OPENAI: answer}) as api:
        command("judge", run, "--with", "culture", *openai(api))
    rows = observations(run, "culture")
    assert [row["status"] for row in rows] == ["ok"] * 2 + ["failed"] * 4 + ["ok"] * 8
    assert (rows[0]["culture"], rows[0]["elements"], rows[0]["specificity"]) == ("None", [], 0)
    assert rows[1]["elements"] == ["clothing"]
    reasons = ("contradict each other", "'Atlantean' is not one of", "4 is greater than the maximum of 3", "'vibes' is not one of")
    for row, reason in zip(rows[2:6], reasons, strict=True):
        assert reason in row["reason"]
    command("score", run, "--resamples", 20)
    found = scores(run)
    shown = [row["culture"] for row in rows[:12]]
    expected = ["Western", "Indian"] * 6
    answer_of = culture_alignment.compute(shown, expected, n_resamples=0)
    for key in culture_alignment.KEYS:
        entry = found[f"culture_alignment.{key}", "lingt2i_content", Group()]
        assert (entry.value, entry.n_missing) == (answer_of[key], 4)
        assert entry.spec.direction == "none"
    assert found["culture_alignment.match_rate", "lingt2i_content", Group()].n == answer_of["n_cue"]
    assert found["culture_alignment.match_rate", "lingt2i_content", Group(language="hi")].value == 0.25
    assert found["culture_alignment.match_rate", "culture_tag_hi", Group(language="en")].value == 1.0
    assert found["culture_alignment.match_rate", "culture_neutral", Group(language="en")].value == 1.0


def test_rows_that_ask_for_a_text_are_no_tendency(prompts: Path, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    chosen = ("--config", "lingt2i_text", "--languages", "ja", "--limit", 1)
    command("generate", "--model", "glyph", "--prompts", prompts, *chosen, "--out", run)
    with serving({OPENAI: lambda body: chat_answer(culture("Japanese", 3, "writing"))}) as api:
        command("judge", run, "--with", "culture", *openai(api))
    assert Run.open(run).observations("culture").read()["culture"].to_pylist() == ["Japanese"]
    assert "what culture saw gives no score on these rows" in error_of("score", run)


def test_prompts_name_all_that_may_be_answered(run: str) -> None:
    with serving({OPENAI: lambda body: chat_answer("")}) as api:
        for judge, words in (("culture", [*TAGS, *ELEMENTS]), ("demographics", [word for names in CATEGORIES.values() for word in names])):
            api.seen.clear()
            command("judge", run, "--with", judge, *openai(api, "attempts=1"), check=1)
            assert all(word in asked(api.seen[0][1]) for word in words)
            assert "a prompt about" not in asked(api.seen[0][1])
    assert (len(TAGS), len(ELEMENTS)) == (13, 10)


# Settings and signatures


def test_what_is_missing_or_wrong_is_told(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    start = ("judge", run, "--with", "toxicity", "--set", "backend=openai")
    assert "--set model=NAME" in error_of(*start)
    assert "--set url=" in error_of(*start, "--set", "model=m")
    assert "GEMINI_API_KEY, which is not set" in error_of("judge", run, "--with", "toxicity", "--set", "backend=gemini", "--set", "model=m")
    assert "has no setting 'key'" in error_of(*start, "--set", "key=a-secret")
    assert "--set backend=vllm" in error_of("judge", run, "--with", "toxicity", "--set", "backend=vllm")
    more = [word for pair in ("backend=openai", "model=m", "url=http://x", "top_logprobs=50") for word in ("--set", pair)]
    assert "services give 20 at most" in error_of("judge", run, "--with", "trigscore", *more)


def test_a_signature_tells_all_that_changes_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    base = {"backend": "openai", "model": "/models/Qwen/Qwen2.5-VL-72B-Instruct", "url": "http://127.0.0.1:1/v1"}

    def signature(name: str = "culture", **more: str) -> str:
        return str(load(name, base | more).signature())

    plain = signature()
    assert plain.startswith("culture|backend:openai|model:Qwen2.5-VL-72B-Instruct|prompt:culture@1.0+")
    assert plain.endswith("|temperature:0.0|max_tokens:1024|attempts:2|schema:enforced|v:1.0")
    for more in ({"temperature": "service"}, {"max_tokens": "9"}, {"attempts": "3"}, {"structured": "false"}, {"model": "other"}):
        assert signature(**more) != plain
    for more in ({"url": "http://elsewhere:1/v1"}, {"concurrency": "2"}, {"per_minute": "9"}, {"input_price": "1"}, {"timeout": "1"}):
        assert signature(**more) == plain
    assert signature("trigscore") != signature("trigscore", dimension="ta-c")
    assert "|dimension:TA-C|" in signature("trigscore", dimension="ta-c")
    import t2i_parity.generate.judges.culture as module

    monkeypatch.setattr(module.Culture, "prompt", module.Prompt("culture", "1.0", "other words", module.PROMPT.user, module.PROMPT.parts))
    assert signature() != plain, "an edit shows without a new version"


def test_what_a_service_is_left_to_choose_is_not_sent(run: str) -> None:
    with serving({OPENAI: lambda body: chat_answer("no")}) as api:
        command("judge", run, "--with", "toxicity", *openai(api, "temperature=service", "token_limit=max_completion_tokens"))
        body = api.seen[0][1]
    assert "temperature" not in body
    assert body["max_completion_tokens"] == 1024
