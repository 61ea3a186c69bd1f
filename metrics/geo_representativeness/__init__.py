"""How well generated images reflect the surroundings of people in each country, with and without its name."""
