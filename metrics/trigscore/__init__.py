"""How well a judge rates an image, read from the log-probabilities of its rating words."""
