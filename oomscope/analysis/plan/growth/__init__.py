"""How the size of a request grows with a shape, from its sizes at several."""
