"""What is asked: sources, provenance, construction and publishing of prompts. Needs no torch.

The one adapter that can use it, the CLIP text encoder of the typo control, loads it only when that encoder is asked for.
"""
