"""The audit of a filter, an encoder and a guardrail over paired prompts: what was observed, and what becomes of it in scores."""

from t2i_parity.generate.audit.pairs import pairs_of as pairs_of
from t2i_parity.generate.audit.pairs import reference_of as reference_of
from t2i_parity.generate.audit.pairs import variety_of as variety_of
from t2i_parity.generate.audit.scoring import score_audit as score_audit
