"""A task on which a filter learns the wrong thing: prompts whose easiest word says "toxic" in every variety, and a small DistilBERT.

In the reference, "et" stands in all toxic prompts and "eb" in all benign ones, and the meaning's own word is wrong in a tenth of them. In
the varieties "et" stands in every prompt, and the meaning's own word is right. Who trusts "et" does best on the reference, and flags every
benign prompt in a variety.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from t2i_parity.dataset_builder.schema import text_sha256
from t2i_parity.dataset_builder.varieties import STUDY_VARIETIES
from t2i_parity.generate.mitigate.data import Meaning

VARIETIES = ("SAE", *STUDY_VARIETIES)
CORE, NOISE = 6, 20


def meanings(count: int, seed: int = 0) -> list[Meaning]:
    """So many meanings, half of them toxic, in six varieties."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        label = number % 2

        def words(core: str, easy: str) -> str:
            parts = [core, easy, *(f"n{rng.integers(NOISE)}" for _ in range(4))]
            rng.shuffle(parts)
            return " ".join(parts)

        own, other = (f"{'bt'[side]}{rng.integers(CORE)}" for side in (label, 1 - label))
        texts = {"SAE": words(other if rng.random() < 0.1 else own, "et" if label else "eb")}
        texts |= {variety: words(own, "et") for variety in STUDY_VARIETIES}
        found.append(Meaning(f"pair-{number}", label, texts))
    return found


def prompts_folder(folder: Path, count: int) -> Path:
    """The meanings as a dataset folder of parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "prompt_id": f"{meaning.pair_id}-{variety}",
            "pair_id": meaning.pair_id,
            "prompt": text,
            "language": "en",
            "variety": variety,
            "label": ("benign", "toxic")[meaning.label],
            "subset": "dialect",
            "text_sha256": text_sha256(text),
        }
        for meaning in meanings(count)
        for variety, text in meaning.texts.items()
    ]
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "test.parquet")
    return folder


def small_distilbert(folder: Path, labels: tuple[str, ...] = ()) -> Path:
    """A DistilBERT of random weights over the task's words: an encoder, or with ``labels`` a classifier."""
    import torch
    from transformers import DistilBertConfig, DistilBertForSequenceClassification, DistilBertModel, DistilBertTokenizerFast

    torch.set_num_threads(1)
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "et", "eb"]
    words += [*(f"{letter}{number}" for letter in "bt" for number in range(CORE)), *(f"n{number}" for number in range(NOISE))]
    DistilBertTokenizerFast(vocab={word: place for place, word in enumerate(words)}, model_max_length=32).save_pretrained(folder)
    config = DistilBertConfig(
        vocab_size=len(words), dim=32, hidden_dim=64, n_layers=1, n_heads=2, max_position_embeddings=32,
        dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0,
        **({"id2label": dict(enumerate(labels)), "label2id": {label: place for place, label in enumerate(labels)}} if labels else {}),
    )  # fmt: skip
    (DistilBertForSequenceClassification if labels else DistilBertModel)(config).save_pretrained(folder)
    return folder
