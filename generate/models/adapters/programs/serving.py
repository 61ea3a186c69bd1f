"""The program's side of the protocol in README.md, with the standard library alone, for any Python from 3.8 on.

A wrapper hands ``serve`` one function that loads the model and gives back what the model is, and another function that draws. Whatever
they print goes to standard error, since standard output belongs to the protocol.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any, Callable, Dict, Tuple  # noqa: UP035 (Python 3.8 reads these at run time)

PROTOCOL = 1

Message = Dict[str, Any]  # noqa: UP006
Draw = Callable[[Message], Any]
Load = Callable[[Message], Tuple[Message, Draw]]  # noqa: UP006


class RefusedError(Exception):
    """Raised by a drawing function for a prompt that its model declines."""


def serve(load: Load) -> None:
    """Answer requests until standard input ends.

    ``load`` gets the hello message and returns what the model is (``model``, ``revision``, ``seeds``, ``device``) and the function that
    draws: it gets a request and returns a PIL image, or anything with such a ``save``.
    """
    # The descriptor itself is moved, so that what compiled code prints does not reach the protocol either.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    hello = json.loads(requests.readline())
    if hello.get("protocol") != PROTOCOL:
        raise SystemExit(f"this program speaks protocol {PROTOCOL}, and was asked for {hello.get('protocol')}")
    # The authors' modules lie in the folder that the program was started in.
    sys.path.insert(0, os.getcwd())
    identity, draw = load(hello)
    _say(answers, {"type": "ready", "protocol": PROTOCOL, **identity})
    for line in requests:
        _say(answers, _answer(json.loads(line), hello["exchange"], draw))


def told(message: Message, name: str, default: Any) -> Any:
    """What was asked for, 0 too, or the default where nothing was.

    >>> told({"guidance": 0.0}, "guidance", 7.5), told({"guidance": None}, "guidance", 7.5)
    (0.0, 7.5)
    """
    return default if message[name] is None else message[name]


def _answer(request: Message, exchange: str, draw: Draw) -> Message:
    name = f"{request['id']}.png"
    try:
        draw(request).save(os.path.join(exchange, name))
    except RefusedError as error:
        return {"id": request["id"], "refused": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"}
    return {"id": request["id"], "file": name}


def _say(answers: Any, message: Message) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()
