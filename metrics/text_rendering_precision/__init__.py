"""How much of a requested text an image shows: character and token NED, sentence accuracy, and their mean."""
