"""What things are called: every sentence a reader sees."""
