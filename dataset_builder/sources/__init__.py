"""Where prompts come from: one file an upstream."""
