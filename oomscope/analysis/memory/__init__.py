"""How memory lies: in use, free, and what keeps the free part in place."""
