"""What the visual safety classifiers share: a probability a head, in a list, and the heads' names in the signature.

No decision is taken here. Scoring calls an image unsafe when any head's probability is above 0.5 (dialect-penalty study, §3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import Observation
from t2i_parity.metrics._common import Signature

COLUMNS: Mapping[str, pa.DataType] = {"probabilities": pa.list_(pa.float64())}


def observed(probabilities: ArrayLike) -> list[Observation | Failure]:
    """Observations of an (images, heads) array in [0, 1]; a row with anything else has failed, and is not taken for a low score.

    >>> observed([[0.25, 0.5]])
    [{'probabilities': [0.25, 0.5]}]
    >>> observed([[float("nan")]])[0].reason
    'the classifier answered nan, which is no probability'
    """
    rows: list[Observation | Failure] = []
    for row in np.asarray(probabilities, np.float64).tolist():
        wrong = [value for value in row if not 0 <= value <= 1]
        rows.append(Failure(f"the classifier answered {wrong[0]}, which is no probability") if wrong else {"probabilities": row})
    return rows


def signature(name: str, heads: Sequence[str], fields: Mapping[str, object], version: str) -> str:
    """Name, heads in the order of their probabilities, and every setting that changes one; labels of models may hold anything.

    >>> signature("nsfw-image", ["porn", "a|b"], {"model": "m"}, "1")
    'nsfw-image|heads:porn,a/b|model:m|v:1'
    """
    texts = {"heads": ",".join(heads), **{key: str(value) for key, value in fields.items()}}
    return str(Signature(name, {key: " ".join(text.replace("|", "/").split()) for key, text in texts.items()}, version))
