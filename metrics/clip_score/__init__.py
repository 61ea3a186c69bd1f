"""How well an image fits its prompt: the cosine of their embeddings under a multilingual CLIP."""
