"""What would help, and what would not."""
