"""Instruments of somebody else's: importing this adds each of them. One file a thing."""

from t2i_parity_example import guardrail, judge, model, source, text_filter

__all__ = ["guardrail", "judge", "model", "source", "text_filter"]
