"""A language model on this machine that knows the starter edition by heart: it answers what the construction's templates ask, and, on
order, wrongly in every way that is caught. It understands nothing; what is tested is the pipeline around it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from loopback_api import chat_answer

from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES

PATH = "/v1/chat/completions"
ROLES = {
    "extract": "take out of them what one aspect", "compress": "You shorten descriptions", "translate": "You translate prompts for",
    "back_translate": "into English, closely", "cross_check": "You review translations", "benign": "You turn short captions",
    "standard": "in its standard written form", "convert": "as its speakers write it", "round_trip": "You rewrite texts in",
    "expand": "Aspect to be tested", "rewrite": "Use these details",
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """One question as the model sees it: which template, for which language or variety, about which text, and the how-manieth try."""

    template: str
    target: str
    text: str
    attempt: int


@cache
def _lines(name: str) -> list[dict[str, Any]]:
    text = (resources.files("t2i_parity.dataset_builder.starter") / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@cache
def plain_meanings() -> list[dict[str, str]]:
    """Meanings of the starter edition without a word about people, in ten languages."""
    about_people = re.compile(
        r"\b(?:wo)?m[ae]n\b|\bboys?\b|\bgirls?\b|\bold\b|\byoung\b|\b(?:his|her|he|she)\b|\bblack\b|\bwhite\b", re.IGNORECASE
    )
    return [
        line["prompts"]
        for line in _lines("lingt2i_content")
        if line["dimension"] not in ("R-T", "R-B")
        and not about_people.search(line["prompts"]["en"])
        and len(line["prompts"]["en"].split()) <= 34
    ]  # fmt: skip


def captions_file(path: Path, n: int = 40) -> Path:
    """So many captions of our own as a CSV file: what a meaning says, and something that a prompt can do without."""
    rows = [f'cap-{number:02d},"{meaning["en"].rstrip(".")}. It is a calm day, and the picture was taken from nearby."'
            for number, meaning in enumerate(plain_meanings()[:n])]  # fmt: skip
    assert len(rows) == n
    path.write_text("\n".join(["id,caption", *rows]) + "\n", encoding="utf-8")
    return path


def _start(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold())[:5])


@cache
def _by_start() -> dict[str, dict[str, str]]:
    return {_start(line["prompts"]["en"]): line["prompts"] for line in _lines("lingt2i_content")}


@cache
def _dialects() -> dict[str, dict[str, str]]:
    return {line["prompts"]["SAE"]: line["prompts"] for line in _lines("dialect")}


@cache
def _crosslingual() -> list[dict[str, str]]:
    return [line["prompts"] for line in _lines("dialect_crosslingual")]


@dataclass
class Llm:
    """The model; ``wrong`` says how a question is answered wrongly (None: rightly). ``asked`` counts every question that came."""

    wrong: Callable[[Asked], str | None] = lambda asked: None
    asked: list[Asked] = field(default_factory=list)
    bodies: Counter[str] = field(default_factory=Counter)

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        """One chat completion."""
        self.bodies[json.dumps(body, sort_keys=True)] += 1
        messages = body["messages"]
        system, user = messages[0]["content"], messages[1]["content"]
        attempt = sum(message["role"] == "assistant" for message in messages) + 1
        template = next(name for name, words in ROLES.items() if words in system or words in user)
        if template == "rewrite" and "Aspect to be tested" in user:
            template = "expand"
        strings = _strings(user)
        target = next(
            (code for code, language in LANGUAGES.items() if code != "en" and re.search(rf"(?:into|from|in) {language.name}", system)), "en"
        )
        if template in ("convert", "round_trip"):
            target = next((code for code, variety in VARIETIES.items() if f"in {variety.name} as" in system), target)
        if template == "standard":
            target = "ar" if "Arabic" in system else "de"
        asked = Asked(template, target, str(strings[1 if template == "benign" else 0]), attempt)
        self.asked.append(asked)
        right = self._right(asked, user, strings)
        fault = self.wrong(asked)
        return _wrongly(fault, right, asked) if fault else chat_answer(right)

    def _right(self, asked: Asked, user: str, strings: list[Any]) -> str:
        text = asked.text
        match asked.template:
            case "extract":
                return json.dumps({"holds": True, "details": [text.split(". It is")[0]]})
            case "rewrite":
                return str(strings[0][0])
            case "compress":
                return " ".join(text.split(". It is")[0].split()[:20])
            case "expand":
                return f"{text}, {strings[1]}"
            case "translate":
                return self._known(text)[asked.target]
            case "back_translate":
                return next((m["en"] for m in _by_start().values() if text in m.values()), "A picture of a quiet street in the evening sun")
            case "cross_check":
                return json.dumps({"problems": [], "reason": "", "correction": None})
            case "benign":
                return next(prompt for prompt in _dialects() if prompt.startswith(text[:40]))
            case "convert" if asked.target in VARIETIES:
                return _dialects()[text][asked.target]
            case "convert":
                standard = LANGUAGES[asked.target].standard or ""
                return next(m[asked.target] for m in _crosslingual() if m[standard] == text)
            case "standard":
                place = list(_dialects()).index(text)
                return _crosslingual()[place % len(_crosslingual())][asked.target]
            case _:
                return next((m["SAE"] for m in _dialects().values() if text in m.values()), text)

    @staticmethod
    def _known(text: str) -> dict[str, str]:
        return _by_start()[_start(text)]


def _strings(user: str) -> list[Any]:
    """The JSON strings and lists that material is given as, in their order; those of the material come before the words of the form."""
    decoder = json.JSONDecoder()
    found: list[Any] = []
    lines = [line for line in user.splitlines() if "→" not in line]
    for line in lines:
        for opening in re.finditer(r'(?:^|: )(?=["\[])', line):
            try:
                found.append(decoder.raw_decode(line, opening.end())[0])
            except ValueError:
                continue
    return found


def _wrongly(fault: str, right: str, asked: Asked) -> dict[str, Any]:
    if fault == "declined":
        answer = chat_answer("")
        answer["choices"][0]["message"]["refusal"] = "I will not do that."
        return answer
    if fault == "cut_off":
        return chat_answer(right[: len(right) // 2], "length")
    texts = {
        "refused": "I'm sorry, but I can't help with that request.",
        "REFUSED": "REFUSED",
        "empty": "",
        "instruction_leak": f"Sure! Here is the translation: {right}",
        "wrong_language": "Ein ruhiger Tag am See, das Boot liegt still und die Berge spiegeln sich im klaren Wasser des Morgens",
        "wrong_script": "Odin spokoynyy den na ozere",
        "english_left": f"{right} {asked.text}",
        "quoted": f'"{right}"',
        "unreadable": "The answer is yes, more or less.",
        "unconverted": asked.text,
        "problem": json.dumps({"problems": ["meaning"], "reason": "a colour is missing", "correction": None}),
        "nothing": json.dumps({"holds": False, "details": []}),
    }
    return chat_answer(texts[fault])
