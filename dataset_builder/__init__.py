"""What is asked: sources, provenance, construction and publishing of prompts. Never imports torch."""
