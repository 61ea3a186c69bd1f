"""A language: Swahili, one entry."""

from t2i_parity.dataset_builder import vocabulary
from t2i_parity.dataset_builder.languages import Language

vocabulary.add(Language("sw", "Swahili", "Kiswahili", "Latn", "Bantu", "swa"))
