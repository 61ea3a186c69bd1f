"""Wrapper programs, each run as a file by the Python of its model's own environment; nothing here imports this project."""
