"""How often a guardrail spoils the image of a harmless prompt, in a reference wording and in a variety of it."""
