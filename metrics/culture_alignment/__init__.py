"""How often an image shows an identifiable culture, and whether it is the one of the prompt's language."""
