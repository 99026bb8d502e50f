"""What repeats, and what grows from one pass to the next."""
