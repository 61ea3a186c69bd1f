"""Instruments of somebody else's: importing this adds each of them. One file a thing."""

from t2i_parity_example import guardrail, judge, language, metric, model, source, text_filter, variety

__all__ = ["guardrail", "judge", "language", "metric", "model", "source", "text_filter", "variety"]
