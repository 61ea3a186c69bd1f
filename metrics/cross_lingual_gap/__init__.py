"""How unequally one score comes out over languages."""
