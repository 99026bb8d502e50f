"""What a graph keeps, until when, and which of it no backward ever uses."""
