"""``croissant.json``: the repository for machines, in the Croissant 1.1 vocabulary (JSON-LD), from the same facts as the card."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from t2i_parity.cards.citations import ARXIV, PROJECT
from t2i_parity.cards.dataset import SUMMARY, TITLE, limits
from t2i_parity.cards.dataset_data import ConfigFacts, DatasetCard, PublishedFacts
from t2i_parity.cards.documents import Json, JsonObject

PARQUET = "application/x-parquet"

_VERSIONS = ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]
_CONTEXT: JsonObject = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES = {"string": "sc:Text", "float64": "cr:Float64", "int64": "cr:Int64", "bool": "sc:Boolean", "image": "sc:ImageObject"}


def croissant_json(card: DatasetCard) -> str:
    """The file's text."""
    return json.dumps(croissant(card), ensure_ascii=False, indent=2) + "\n"


def croissant(card: DatasetCard) -> JsonObject:
    """The repository as JSON-LD: its files with their hashes, a record set a config with every column, and one a list of class names.

    The address and the day of publication are not known before it is published; ``published`` adds them.
    """
    docs = {column.name: column.doc for column in card.columns}
    beside = [card.published] if card.published else []
    every: list[ConfigFacts | PublishedFacts] = [*card.configs, *beside]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _VERSIONS,
        "name": f"{TITLE}, {card.edition} edition" if card.edition else TITLE,
        "description": f"{SUMMARY} {card.rows:,} prompts with the provenance of every row.",
        "license": [entry.url or entry.id for entry in card.every_license],
        "creator": {"@type": "sc:Organization", "name": "The T2I Parity team"},
        "citeAs": PROJECT,
        "citation": [f"https://arxiv.org/abs/{number}" for number in ARXIV],
        "inLanguage": card.languages,
        "keywords": ["text-to-image", "fairness", "multilingual", "dialect", "benchmark"],
        "rai:dataLimitations": limits(card),
        "distribution": [_file(config) for config in every],
        "recordSet": [
            *_enumerations(card),
            *(_record_set(config, f"{config.rows:,} rows, {config.meanings:,} meanings.", "prompt_id", docs) for config in card.configs),
            *(_record_set(values, f"{values.rows:,} values.", values.key, dict(values.columns)) for values in beside),
        ],
    }


def published(metadata: Json, *, url: str, date: str, version: str) -> JsonObject:
    """The same with what is known once it stands somewhere: its page, the day (ISO 8601) and the version of this release."""
    return {**metadata, "url": url, "datePublished": date, "version": version}


def _file(config: ConfigFacts | PublishedFacts) -> JsonObject:
    (file,) = config.files
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "description": f"{config.title}: the split {config.split} of the config {config.name}.",
        "contentUrl": file.path,
        "contentSize": f"{file.size} B",
        "encodingFormat": PARQUET,
        "sha256": file.sha256,
    }


def _record_set(config: ConfigFacts | PublishedFacts, holds: str, key: str, docs: Mapping[str, str]) -> JsonObject:
    return {
        "@type": "cr:RecordSet",
        "@id": config.name,
        "name": config.name,
        "description": f"{config.title}: {holds}",
        "key": {"@id": f"{config.name}/{key}"},
        "field": [_field(config, feature, docs) for feature in config.features],
    }


def _field(config: ConfigFacts | PublishedFacts, feature: Any, docs: Mapping[str, str]) -> JsonObject:
    column, kind = feature["name"], feature.get("dtype")
    field: JsonObject = {
        "@type": "cr:Field",
        "@id": f"{config.name}/{column}",
        "name": f"{config.name}/{column}",
        "description": docs[column],
    }
    source = {"fileObject": {"@id": config.files[0].path}, "extract": {"column": column}}
    if "list" in feature:
        parts: list[JsonObject] = [
            {
                "@type": "cr:Field",
                "@id": f"{field['@id']}/{part['name']}",
                "name": f"{field['@id']}/{part['name']}",
                "dataType": _TYPES[part["dtype"]],
                "source": {**source, "transform": {"jsonPath": part["name"]}},
            }
            for part in feature["list"]
        ]
        return {**field, "isArray": True, "arrayShape": "-1", "subField": parts}
    if isinstance(kind, Mapping):
        return {**field, "dataType": "cr:Int64", "source": source, "references": {"field": {"@id": f"{column}/index"}}}
    if kind == "image":
        source["transform"] = {"jsonPath": "bytes"}
    return {**field, "dataType": _TYPES[str(kind)], "source": source}


def _enumerations(card: DatasetCard) -> Iterator[JsonObject]:
    """The names behind the numbers of a class column."""
    seen = set()
    for feature in (feature for config in card.configs for feature in config.features):
        column, kind = feature["name"], feature.get("dtype")
        if isinstance(kind, Mapping) and column not in seen:
            seen.add(column)
            yield {
                "@type": "cr:RecordSet",
                "@id": column,
                "name": column,
                "dataType": "sc:Enumeration",
                "description": f"The names of the numbers in {column}.",
                "key": {"@id": f"{column}/index"},
                "field": [
                    {"@type": "cr:Field", "@id": f"{column}/index", "name": f"{column}/index", "dataType": "cr:Int64"},
                    {"@type": "cr:Field", "@id": f"{column}/name", "name": f"{column}/name", "dataType": "sc:Text"},
                ],
                "data": [{f"{column}/index": int(index), f"{column}/name": name} for index, name in kind["class_label"]["names"].items()],
            }
