"""Prompt tables as facts: what the card, its plot and ``croissant.json`` say of them, counted from the rows and from nothing else."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from t2i_parity.cards.dataset_data import (
    Checked,
    ColumnFacts,
    ConfigFacts,
    Counts,
    DataFile,
    DatasetCard,
    Group,
    LicenseFacts,
    Made,
    PublishedFacts,
    SourceFacts,
    Spread,
)
from t2i_parity.dataset_builder import geo_published
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.licenses import UNKNOWN, terms
from t2i_parity.dataset_builder.schema import CONFIGS, DEFAULT_CONFIG, Config, NewRow, Row
from t2i_parity.dataset_builder.sources import geo
from t2i_parity.dataset_builder.varieties import VARIETIES

COUNTED = ("subset", "dimension", "label", "category", "country", "noun")
"""The columns whose values are counted, where a config has them."""

# A letter of a script that sets no spaces: any but the Latin ones, which keep their spaces inside such a text.
_LETTER = re.compile(r"[^\W\d_A-Za-zªºÀ-ÖØ-öø-ɏḀ-ỿ]")
_WORD = re.compile(r"\S*\w\S*")


def describe(
    tables: Mapping[str, pa.Table],
    files: Mapping[str, DataFile],
    *,
    edition: str,
    split: str,
    gated: bool,
    published: DataFile | None = None,
) -> DatasetCard:
    """The facts of every config, given its table and the file that holds it; ``published`` is the file of the published values, if any."""
    names = [name for name in CONFIGS if name in tables]
    default = DEFAULT_CONFIG if DEFAULT_CONFIG in names else names[0]
    columns = {name: {column: tables[name][column].to_pylist() for column in _texts(CONFIGS[name])} for name in names}
    return DatasetCard(
        edition=edition,
        configs=[_config(CONFIGS[name], columns[name], files[name], split=split, default=name == default) for name in names],
        columns=_columns(names),
        licenses=_licenses(columns),
        sources=_sources(columns),
        gated=gated,
        published=_published(published) if published else None,
    )


def count_words(text: str, *, spaced: bool) -> int:
    """Words: what spaces set apart; where the script sets none, every letter of it, and what spaces set apart in between.

    >>> count_words("two red boats", spaced=True), count_words("两只 LED 灯。", spaced=False)
    (3, 4)
    """
    return len(text.split()) if spaced else len(_WORD.findall(_LETTER.sub(" x ", text)))


def _texts(declared: Config) -> list[str]:
    """The columns that are read: all but pictures."""
    return [column.name for column in declared.all_columns if column.kind != "image"]


def _config(declared: Config, columns: Mapping[str, Sequence[Any]], file: DataFile, *, split: str, default: bool) -> ConfigFacts:
    classes = {column.name: column.kind for column in declared.all_columns if isinstance(column.kind, tuple)}
    decoded = {name: [classes[name][code] for code in columns[name]] for name in classes}
    values = {**columns, **decoded}
    members: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for row, key in enumerate(zip(values["language"], values["variety"], strict=True)):
        members[key].append(row)
    groups = [members[key] for key in sorted(members, key=_place)]
    checks = Counter((check["check"], check["verdict"]) for row in values["checks"] for check in row)
    return ConfigFacts(
        name=declared.name,
        title=declared.title,
        default=default,
        split=split,
        path=f"{declared.name}/{split}-*.parquet",
        files=[file],
        features=declared.features()._to_yaml_list(),
        rows=len(values["prompt_id"]),
        meanings=len(set(values["pair_id"])),
        languages=_distinct(values["language"]),
        varieties=_distinct(values["variety"]),
        licenses=_distinct(values["license"]),
        sources=_distinct(values["source"]),
        labels=_tally(values["label"]) if "label" in values else {},
        groups=[_group(values, rows) for rows in groups],
        counts=[_counts(name, values[name], groups) for name in COUNTED if name in values],
        made=[
            Made(derivation, producer, rows)
            for (derivation, producer), rows in _ranked(zip(values["derivation"], values["producer"], strict=True))
        ],
        checks=[Checked(str(check), str(verdict), rows) for (check, verdict), rows in sorted(checks.items(), key=str)],
        unchecked=sum(not row for row in values["checks"]),
    )


def _group(values: Mapping[str, Sequence[Any]], rows: Sequence[int]) -> Group:
    language = LANGUAGES[values["language"][rows[0]]]
    variety = values["variety"][rows[0]]
    prompts = [values["prompt"][row] for row in rows]
    return Group(
        language=language.code,
        language_name=language.name,
        variety=variety,
        variety_name=VARIETIES[variety].name if variety is not None else None,
        rows=len(rows),
        words=_spread([count_words(prompt, spaced=language.spaced) for prompt in prompts]),
        characters=_spread([len(prompt) for prompt in prompts]),
        rendered=_spread([len(values["render_text"][row]) for row in rows]) if "render_text" in values else None,
        labels=_tally(values["label"][row] for row in rows) if "label" in values else {},
    )


def _counts(column: str, values: Sequence[str | None], groups: Sequence[Sequence[int]]) -> Counts:
    each = [Counter(values[row] for row in rows) for rows in groups]
    return Counts(column, dict(_ranked(values)), even=all(counter == each[0] for counter in each))


def _place(key: tuple[str, str | None]) -> tuple[int, int]:
    """The order of groups: as languages and varieties are declared."""
    language, variety = key
    return list(LANGUAGES).index(language), list(VARIETIES).index(variety) if variety is not None else -1


def _spread(lengths: Sequence[int]) -> Spread:
    return Spread(sum(lengths) / len(lengths), min(lengths), max(lengths))


def _tally(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _ranked(values: Iterable[Any]) -> list[tuple[Any, int]]:
    """Distinct values with their counts, the most frequent first; equals in the order of their text, null last."""
    return sorted(Counter(values).items(), key=lambda item: (-item[1], item[0] is None, str(item[0])))


def _distinct(values: Iterable[str | None]) -> list[str]:
    return sorted({value for value in values if value is not None})


def _columns(names: Sequence[str]) -> list[ColumnFacts]:
    found: dict[str, ColumnFacts] = {}
    for name in names:
        declared = CONFIGS[name]
        # The order in every file: common columns, the config's own, then provenance.
        last = declared.all_columns.index(declared.columns[-1])
        for place, column in enumerate(declared.all_columns):
            if column.name not in found:
                configs = [other for other in names if column in CONFIGS[other].all_columns]
                found[column.name] = ColumnFacts(column.name, column.doc, configs, provenance=place > last)
    return sorted(found.values(), key=lambda column: column.provenance)


def _published(file: DataFile) -> PublishedFacts:
    source, name = geo.SOURCE, geo_published.NAME
    rows = len(geo_published.published())
    return PublishedFacts(
        name=name,
        title=geo_published.TITLE,
        key=geo_published.COLUMNS[0].name,
        split=geo_published.SPLIT,
        path=geo_published.PATTERN,
        files=[file],
        features=geo_published.features()._to_yaml_list(),
        columns=[(column.name, column.doc) for column in geo_published.COLUMNS],
        rows=rows,
        source=source.title,
        url=source.url,
        license=_license(source.license, rows, [name]),
    )


def _licenses(columns: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[LicenseFacts]:
    return [_license(name, rows, configs) for name, (rows, configs, _) in _gathered(columns, lambda row: row["license"]).items()]


def _license(name: str, rows: int, configs: Sequence[str]) -> LicenseFacts:
    known = terms(name)
    return LicenseFacts(
        id=name,
        url=known.url,
        rows=rows,
        configs=configs,
        stated=name.lower() != UNKNOWN,
        known=known.known,
        attribution=known.attribution,
        share_alike=known.share_alike,
        non_commercial=known.non_commercial,
        no_derivatives=known.no_derivatives,
    )


def _sources(columns: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[SourceFacts]:
    answer = []
    for name, (rows, configs, members) in _gathered(columns, lambda row: row["source"]).items():
        urls = _distinct(row["source_url"] for row in members)
        answer.append(
            SourceFacts(
                name=name,
                url=urls[0] if len(urls) == 1 else None,
                revisions=_distinct(row["source_revision"] for row in members),
                licenses=_distinct(row["license"] for row in members),
                rows=rows,
                configs=configs,
            )
        )
    return answer


_ORIGIN = ("source", "source_url", "source_revision", "license")


def _gathered(
    columns: Mapping[str, Mapping[str, Sequence[Any]]], key: Callable[[Row], str]
) -> dict[str, tuple[int, list[str], list[NewRow]]]:
    """Per value of ``key``, the most frequent first: its rows, the configs that have it, and where its rows come from."""
    rows: Counter[str] = Counter()
    configs: dict[str, dict[str, None]] = defaultdict(dict)
    origins: dict[str, list[NewRow]] = defaultdict(list)
    for name, values in columns.items():
        counted = Counter(zip(*(values[column] for column in _ORIGIN), strict=True))
        for origin, number in counted.items():
            row = dict(zip(_ORIGIN, origin, strict=True))
            rows[key(row)] += number
            configs[key(row)][name] = None
            origins[key(row)].append(row)
    return {value: (rows[value], list(configs[value]), origins[value]) for value, _ in sorted(rows.items(), key=lambda i: (-i[1], i[0]))}
