"""How evenly the people in images are spread over races, genders and ages."""
