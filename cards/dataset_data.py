"""What a dataset card is handed: plain frozen objects, filled by whoever has the tables, shown by ``cards.dataset``, ``cards.croissant``
and ``cards.plots``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Spread:
    """How long texts are: the mean, the shortest and the longest."""

    mean: float
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one language, and of one variety where the config has varieties. ``rendered`` is the length of ``render_text``."""

    language: str
    language_name: str
    variety: str | None
    variety_name: str | None
    rows: int
    words: Spread
    characters: Spread
    rendered: Spread | None
    labels: Mapping[str, int]

    @property
    def name(self) -> str:
        """What people call it."""
        return self.variety_name or self.variety or self.language_name

    @property
    def code(self) -> str:
        """The code that stands in the data."""
        return self.variety or self.language


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows have each value of a column (None where it is null); ``even`` when every group of the config has the same counts."""

    column: str
    values: Mapping[str | None, int]
    even: bool


@dataclass(frozen=True, slots=True)
class Made:
    """Rows that one producer made in one way."""

    derivation: str
    producer: str
    rows: int


@dataclass(frozen=True, slots=True)
class Checked:
    """Rows on which a check came to a verdict."""

    check: str
    verdict: str
    rows: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of the repository: its path there, its SHA-256 in hex and its bytes."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """One config: where it stands, what is in it, and how it was made. ``features`` is the form that ``dataset_info`` takes."""

    name: str
    title: str
    default: bool
    split: str
    path: str
    files: Sequence[DataFile]
    features: Sequence[Mapping[str, Any]]
    rows: int
    meanings: int
    languages: Sequence[str]
    varieties: Sequence[str]
    licenses: Sequence[str]
    sources: Sequence[str]
    labels: Mapping[str, int]
    groups: Sequence[Group]
    counts: Sequence[Counts]
    made: Sequence[Made]
    checks: Sequence[Checked]
    unchecked: int


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column and the configs that have it; ``provenance`` when it says where a row comes from."""

    name: str
    doc: str
    configs: Sequence[str]
    provenance: bool


@dataclass(frozen=True, slots=True)
class LicenseFacts:
    """A licence that rows carry. ``stated`` is False when the source states none; the other flags are what it asks of those who share."""

    id: str
    url: str | None
    rows: int
    configs: Sequence[str]
    stated: bool
    known: bool
    attribution: bool
    share_alike: bool
    non_commercial: bool
    no_derivatives: bool


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A dataset or work that rows come from."""

    name: str
    url: str | None
    revisions: Sequence[str]
    licenses: Sequence[str]
    rows: int
    configs: Sequence[str]


@dataclass(frozen=True, slots=True)
class PublishedFacts:
    """The config of published values that stands beside the prompts: facts to compare with, no prompts. ``columns`` are (name, meaning)."""

    name: str
    title: str
    key: str
    split: str
    path: str
    files: Sequence[DataFile]
    features: Sequence[Mapping[str, Any]]
    columns: Sequence[tuple[str, str]]
    rows: int
    source: str
    url: str
    license: LicenseFacts


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """Everything that the card, its plot and ``croissant.json`` show. ``gated`` when readers are to agree to terms first.

    ``published`` is the config of published values, where the repository has it; nothing else here counts its rows.
    """

    edition: str
    configs: Sequence[ConfigFacts]
    columns: Sequence[ColumnFacts]
    licenses: Sequence[LicenseFacts]
    sources: Sequence[SourceFacts]
    gated: bool = False
    published: PublishedFacts | None = None

    @property
    def every_license(self) -> list[LicenseFacts]:
        """The licences of the prompts, then that of the published values where it is another."""
        more = [self.published.license] if self.published else []
        return [*self.licenses, *(entry for entry in more if entry.id not in {known.id for known in self.licenses})]

    @property
    def rows(self) -> int:
        """All prompts."""
        return sum(config.rows for config in self.configs)

    @property
    def toxic(self) -> int:
        """The rows that are harmful on purpose."""
        return sum(config.labels.get("toxic", 0) for config in self.configs)

    @property
    def languages(self) -> list[str]:
        """Every language, sorted by code."""
        return sorted({language for config in self.configs for language in config.languages})

    @property
    def default(self) -> ConfigFacts:
        """The config that ``load_dataset`` opens when none is named."""
        return next(config for config in self.configs if config.default)
