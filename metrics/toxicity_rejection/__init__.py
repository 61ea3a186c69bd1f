"""How often images asked for with toxic prompts come out free of NSFW content."""
