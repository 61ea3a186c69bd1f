"""CLIP similarity to the prompts that name a country: how much does an image look like that noun in that country?

For the proxy of the geographical study (§4.1): an image is compared with "high definition image of a typical [noun] in [country]". An
image whose prompt names a country is compared with that country's prompt; one whose prompt names none, with that of every country asked
for, since people of all of them rate it. The prompts are English, as in the study, whatever the image's own prompt was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.countries import SETS, countries
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.sources.geo import prompt
from t2i_parity.generate.backends.clip_features import Dtype, clip_features
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.clip_score.core import DEFAULT_MODEL, DEFAULT_PRETRAINED

VERSION = "1"


@dataclass(frozen=True, slots=True)
class ClipCountriesSettings:
    """What ``--set`` takes: the model as for ``clip``, and ``countries``: studied, contacted, all, or codes as in ``IND+USA``."""

    model: str = DEFAULT_MODEL
    pretrained: str = DEFAULT_PRETRAINED
    countries: str = "studied"
    device: str = "auto"
    dtype: Dtype = "float32"


class ClipCountries:
    """The judge: ``countries`` (alpha-3 codes) and, in the same order, ``similarities``, cosines in [−1, 1]."""

    name = "clip-countries"
    columns: Mapping[str, pa.DataType] = {"countries": pa.list_(pa.string()), "similarities": pa.list_(pa.float64())}

    def __init__(self, settings: ClipCountriesSettings) -> None:
        self.settings = settings
        everywhere = countries("all")
        if settings.countries in SETS:
            codes = list(countries(settings.countries))
        else:
            codes = settings.countries.split("+")
            unknown = [code for code in codes if code not in everywhere]
            if unknown:
                raise InputError(
                    f"clip-countries: countries={settings.countries}: unknown {', '.join(map(repr, unknown))}; expected "
                    f"{', '.join(SETS)}, or ISO 3166-1 alpha-3 codes joined by +, such as IND+USA"
                )
        self._countries = {code: everywhere[code] for code in codes}
        self._all = everywhere
        self._features = clip_features(settings)

    def signature(self) -> str:
        """Checkpoint, precision and the countries asked for."""
        return str(Signature(self.name, {**self._features.fields(), "countries": self.settings.countries}, VERSION))

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Raises InputError for a row without a noun, or with a country that ISO 3166-1 does not have."""
        for number, row in enumerate(rows):
            if not row["noun"]:
                raise InputError(f"clip-countries: row {number} ({row['prompt_id']}) has no noun; expected images of the config geo")
            if row["country"] is not None and row["country"] not in self._all:
                raise InputError(f"clip-countries: row {number} ({row['prompt_id']}): unknown country {row['country']!r}")

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """The cosines of each image with its country's prompt, or with those of all countries."""
        images = self._features.images([row["image"] for row in rows]).astype(np.float64)
        found: list[Observation | Failure] = []
        for row, image in zip(rows, images, strict=True):
            codes = [row["country"]] if row["country"] else list(self._countries)
            texts = self._features.texts([prompt(str(row["noun"]), self._all[code]) for code in codes])[0].astype(np.float64)
            lengths = np.linalg.norm(image) * np.linalg.norm(texts, axis=1)
            if not np.all(np.isfinite(lengths) & (lengths > 0)):
                found.append(Failure("the encoder gave an embedding that is zero or not finite"))
                continue
            cosines = np.clip(texts @ image / lengths, -1, 1)
            found.append({"countries": codes, "similarities": cosines.tolist()})
        return found
