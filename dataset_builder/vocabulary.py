"""A user's own languages, scripts and varieties beside ours: from a YAML file, or from other people's packages by ``add``.

The file is named by ``--vocabulary FILE`` or by the environment variable ``T2I_PARITY_VOCABULARY``, which every process of ours reads::

    languages:
      - {code: bn, name: Bengali, native_name: বাংলা, script: Beng, branch: Indo-Aryan}
    varieties:
      - {code: NigE, name: Nigerian English}

An entry's keys are the fields of ``Language``, ``Script`` (seldom needed: Noto's fonts are found by the script's name) and ``Variety``.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.languages import LANGUAGES, SCRIPTS, VARIABLE, Culture, Declared, Language, Script
from t2i_parity.dataset_builder.varieties import VARIETIES, Variety

_TAG = re.compile(r"[a-z]{2,3}(?:-[A-Z][a-z]{3})?(?:-(?:[A-Z]{2}|\d{3}))?(?:-(?:[a-z0-9]{5,8}|\d[a-z0-9]{3}))*")
_KINDS: Mapping[str, type] = {"scripts": Script, "languages": Language, "varieties": Variety}
_OF_METRICS = ("t2i_parity.metrics.cross_lingual_gap.languages", "t2i_parity.metrics.text_rendering_precision.languages")
"""What metrics know of languages: each folder stands alone, so that it is told."""


@dataclass(frozen=True)
class _File:
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - pydantic reads it

    scripts: tuple[Script, ...] = ()
    languages: tuple[Language, ...] = ()
    varieties: tuple[Variety, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """The vocabulary in use: the file's name, its SHA-256 in hex, and the codes that it declares."""

    file: str
    sha256: str
    languages: tuple[str, ...]
    varieties: tuple[str, ...]


_LOCK = threading.RLock()
_digests: dict[tuple[str, str], str] = {}
"""What stands for a declaration of somebody else's in signatures, by ("languages" or "varieties", code)."""
_read: tuple[Path, Origin] | None = None
_scripts: list[str] = []
"""The scripts that came with the file in use."""
_reading = False


def add(entry: Language | Script | Variety) -> None:
    """Declare one more for as long as the process lives, as a package that brings a language of its own does.

    Raises InputError for a code that is no code, is taken, or stands on something that is not declared.
    """
    where = f"{type(entry).__name__} {entry.code!r}"
    _add(entry, where, hashlib.sha256(repr(sorted(asdict(entry).items())).encode()).hexdigest())


def ready() -> None:
    """Read the file that the environment names, unless that is done. Raises InputError when it cannot be read or holds a fault."""
    global _reading
    place = os.environ.get(VARIABLE)
    if not place or _reading or (_read and _read[0] == Path(place)):
        return
    with _LOCK:
        if _read and _read[0] == Path(place):
            return
        _reading = True
        try:
            _forget()
            _take(Path(place))
        finally:
            _reading = False


@contextmanager
def given(place: str | None) -> Iterator[None]:
    """The vocabulary of a file while the context lasts, in this process and in those that it starts; None changes nothing."""
    if place is None:
        ready()
        yield
        return
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(Path(place).absolute())
    try:
        ready()
        yield
    finally:
        with _LOCK:
            _forget()
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def origin() -> Origin | None:
    """The user's file in use, None where there is none."""
    ready()
    return _read[1] if _read else None


def stamp(languages: Iterable[str], varieties: Iterable[str | None] = ()) -> str | None:
    """What a signature holds of rows in these languages and varieties: the first 16 hex of the SHA-256 of the file that declares one of
    them, or of the declaration itself where a package did; None where all are ours.

    >>> stamp(["en", "hi"], ["SAE", None]) is None
    True
    """
    ready()
    keys = {("languages", code) for code in languages} | {("varieties", code) for code in varieties if code}
    found = sorted({_digests[key][:16] for key in keys if key in _digests})
    return "+".join(found) or None


def record(languages: Iterable[str], varieties: Iterable[str | None] = ()) -> dict[str, Any] | None:
    """What run.json and a prompts repository hold of the vocabulary that these rows stand on, None where they stand on ours alone."""
    ready()
    named = {"languages": sorted(set(languages)), "varieties": sorted({code for code in varieties if code})}
    used = {kind: [code for code in codes if (kind, code) in _digests] for kind, codes in named.items()}
    if not any(used.values()):
        return None
    file = {"file": _read[1].file, "sha256": _read[1].sha256} if _read else {}
    return {**file, "stamp": stamp(used["languages"], used["varieties"]), **used}


def require(recorded: Mapping[str, Any] | None, where: str) -> None:
    """Raise InputError when a record's languages or varieties are not declared here."""
    missing = [
        code
        for kind, known in (("languages", LANGUAGES), ("varieties", VARIETIES))
        for code in (recorded or {}).get(kind, [])
        if code not in known
    ]
    if recorded and missing:
        file, sha256 = recorded.get("file", "vocabulary"), recorded.get("sha256", "?")
        raise InputError(
            f"{where} has rows in {', '.join(missing)}, declared in a vocabulary that is not in use here ({file}, SHA-256 {sha256}). "
            f"Give it with the command: --vocabulary {file}"
        )


# Inside


def _forget() -> None:
    global _read
    if _read is None:
        return
    for kind, known in (("languages", LANGUAGES), ("varieties", VARIETIES)):
        for code in getattr(_read[1], kind):
            del known._entries[code], _digests[kind, code]
    for place in _OF_METRICS:
        for code in _read[1].languages:
            import_module(place).LANGUAGES.pop(code)
    for code in _scripts:
        del SCRIPTS._entries[code]
    _scripts.clear()
    _read = None


def _take(path: Path) -> None:
    """Read a file and declare what it holds: all of it or, when anything in it is wrong, nothing."""
    global _read
    import yaml
    from pydantic import TypeAdapter, ValidationError

    try:
        content = path.read_bytes()
        root = yaml.compose(content.decode("utf-8"), Loader=yaml.SafeLoader)
        _no_doubled_keys(root, path)
        raw = yaml.safe_load(content) or {}
    except OSError as error:
        raise InputError(
            f"the vocabulary {path} cannot be read ({error.strerror or error}). Give --vocabulary or {VARIABLE} the path of a YAML file"
        ) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"the vocabulary {path} is not valid YAML ({first_line(error)}); see dataset_builder/vocabulary.py") from error
    entries = raw.get("languages") if isinstance(raw, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and "iso639_3" not in entry:
            entry["iso639_3"] = _iso639_3(str(entry.get("code")))
    try:
        file = TypeAdapter(_File).validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{path}, {_place(root, raw, first['loc'])}: {_wanted(first)}") from error
    sha256 = hashlib.sha256(content).hexdigest()
    origin = Origin(path.name, sha256, tuple(each.code for each in file.languages), tuple(each.code for each in file.varieties))
    done: list[tuple[str, str]] = []
    scripts = set(SCRIPTS._entries)
    try:
        # A language may name another of the file as its standard, and a variety as its reference, in any order.
        for kind in _KINDS:
            group: Sequence[Any] = getattr(file, kind)
            of_file = {each.code for each in group}
            for number, entry in enumerate(group):
                _add(entry, f"{path}, {_place(root, raw, (kind, number))}", sha256, beside=of_file)
                done.append((kind, entry.code))
    except InputError:
        kept = {kind: tuple(code for each, code in done if each == kind) for kind in _KINDS}
        _scripts.extend(set(SCRIPTS._entries) - scripts)
        _read = (path, Origin(path.name, sha256, kept["languages"], kept["varieties"]))
        _forget()
        raise
    _scripts.extend(set(SCRIPTS._entries) - scripts)
    _read = (path, origin)


def _add(entry: Language | Script | Variety, where: str, digest: str, beside: Iterable[str] = ()) -> None:
    views: Mapping[type, Declared[Any]] = {Script: SCRIPTS, Language: LANGUAGES, Variety: VARIETIES}
    known = views[type(entry)]
    if isinstance(entry, Script) and SCRIPTS._entries.get(entry.code) == entry:
        return
    if entry.code in known._entries:
        raise InputError(f"{where}, code: expected one that is not taken, got {entry.code!r}, {known._entries[entry.code].name}")
    if isinstance(entry, Script):
        _script_name(entry.code, where)
    elif isinstance(entry, Language):
        _check_language(entry, where, {*LANGUAGES._entries, *beside})
        if entry.script not in SCRIPTS._entries:
            SCRIPTS._entries[entry.script] = Script(entry.script, _script_name(entry.script, where))
        for place in _OF_METRICS:
            module = import_module(place)
            module.LANGUAGES[entry.code] = module.Language(branch=entry.branch, script=entry.script)
        _digests["languages", entry.code] = digest
    else:
        _check_variety(entry, where, {*VARIETIES._entries, *beside})
        _digests["varieties", entry.code] = digest
    known._entries[entry.code] = entry


def _check_language(entry: Language, where: str, codes: set[str]) -> None:
    from t2i_parity.metrics.culture_alignment.core import KNOWN

    if not _TAG.fullmatch(entry.code) or not (_iso639_3(entry.code) or "qaa" <= entry.code[:3] <= "qtz"):
        raise InputError(f"{where}, code: expected a BCP-47 code, such as bn, sw or zh-Hant, got {entry.code!r}")
    if not re.fullmatch("[a-z]{3}", entry.iso639_3):
        raise InputError(f"{where}, iso639_3: expected three letters, such as ben, got {entry.iso639_3!r}")
    _script_name(entry.script, where)
    if entry.standard is not None and (entry.standard not in codes or entry.standard == entry.code):
        raise InputError(f"{where}, standard: expected the code of another language, got {entry.standard!r}. Declare that one too")
    if entry.culture is not None and entry.culture.expected not in KNOWN:
        raise InputError(
            f"{where}, culture.expected: expected one of {', '.join(KNOWN)}, which images are judged by, got {entry.culture.expected!r}. "
            "Leave the culture out where none of them fits"
        )
    for name in ("answers", "assents", "declines"):
        for pattern in getattr(entry, name):
            try:
                re.compile(pattern)
            except re.error as error:
                raise InputError(f"{where}, {name}: expected regular expressions, got {pattern!r} ({error})") from error
    for noun, (_, in_country) in entry.phrases.items():
        if "{country}" not in in_country:
            raise InputError(f"{where}, phrases.{noun}: expected {{country}} in the second phrase, got {in_country!r}")


def _check_variety(entry: Variety, where: str, codes: set[str]) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", entry.code):
        raise InputError(f"{where}, code: expected letters, digits, - and _, beginning with a letter, got {entry.code!r}")
    if entry.code in LANGUAGES._entries:
        raise InputError(f"{where}, code: expected one that is not taken, got {entry.code!r}, which is a language. Rename it")
    if entry.language not in LANGUAGES._entries:
        raise InputError(f"{where}, language: expected one of {', '.join(LANGUAGES._entries)}, got {entry.language!r}. Declare it too")
    reference = entry.reference
    if reference is not None and (reference not in codes or reference == entry.code):
        raise InputError(f"{where}, reference: expected the code of another variety, or null, got {reference!r}. Declare that one too")
    if reference in VARIETIES._entries and VARIETIES._entries[reference].language != entry.language:
        raise InputError(
            f"{where}, reference: expected a variety of {entry.language}, got {reference!r} of {VARIETIES._entries[reference].language}"
        )


def _script_name(code: str, where: str) -> str:
    import pycountry

    found = pycountry.scripts.get(alpha_4=code)
    if found is None:
        raise InputError(f"{where}, script: expected an ISO 15924 code, such as Beng or Latn, got {code!r}")
    return str(found.name).split(" (")[0]


def _iso639_3(code: str) -> str:
    """The ISO 639-3 code of a BCP-47 code's language, "" where there is none."""
    import pycountry

    primary = code.split("-")[0]
    found = pycountry.languages.get(**{"alpha_2" if len(primary) == 2 else "alpha_3": primary})
    return str(found.alpha_3) if found else ""


def _no_doubled_keys(node: Any, path: Path) -> None:
    import yaml

    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise InputError(f"{path}, line {key.start_mark.line + 1}: the key {key.value!r} stands there twice; keep one of them")
            seen.add(key.value)
            _no_doubled_keys(value, path)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _no_doubled_keys(value, path)


def _place(root: Any, raw: Any, loc: Sequence[int | str]) -> str:
    """Where in the file something stands, as line, entry and key: ``line 3, languages[0] (bn), script``."""
    import yaml

    node, code, named = root, "", ""
    for part in loc:
        raw = raw.get(part) if isinstance(raw, dict) else raw[part] if isinstance(raw, list) and isinstance(part, int) else None
        named += f"[{part}]" if isinstance(part, int) else f", {part}" if named else str(part)
        if isinstance(part, int) and isinstance(raw, dict) and "code" in raw and not code:
            code = f" ({raw['code']})"
            named += code
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == part), node)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
    line = f"line {node.start_mark.line + 1}" if node is not None else "line 1"
    return f"{line}, {named}" if named else line


def _wanted(error: Mapping[str, Any]) -> str:
    """What was expected, what stands there, and the fix."""
    loc = error["loc"]
    kind: type = _KINDS.get(str(loc[0]), _File) if len(loc) > 2 else _File
    known = [each.name for each in fields(Culture if "culture" in loc[2:-1] else kind)]
    if error["type"] == "unexpected_keyword_argument":
        near = difflib.get_close_matches(str(loc[-1]), known, 1)
        return f"unknown key: expected one of {', '.join(known)}, got {loc[-1]!r}{f'. Did you mean {near[0]}?' if near else ''}"
    if error["type"] == "missing":
        return f"the key {loc[-1]!r} is not there. Write one: an entry needs code, name, and for a language native_name, script and branch"
    if not loc or error["type"] in ("dataclass_type", "tuple_type"):
        return f"expected a mapping of {', '.join(known)} and lists in it, got {type(error['input']).__name__}. {error['msg']}"
    return f"{error['msg'].removeprefix('Input should be ').join(('expected ', ''))}, got {error['input']!r}. Correct the value"
