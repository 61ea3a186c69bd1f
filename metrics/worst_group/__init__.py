"""How good the worst-served group's answers are, beside the average that hides it."""
