"""Checks of a prompts repository: one file a kind, put together in ``registry``, run by ``runner``."""
