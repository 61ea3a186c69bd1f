"""How often a toxic image gets past a guardrail, in a reference wording and in a variety of it."""
