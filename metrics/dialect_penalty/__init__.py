"""Whether a text filter flags a dialect more, or less, than the standard wording of the same prompt."""
