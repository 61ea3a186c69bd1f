"""A variety of English: Scottish English, one entry."""

from t2i_parity.dataset_builder import vocabulary
from t2i_parity.dataset_builder.varieties import Variety

vocabulary.add(Variety("ScoE", "Scottish English"))
