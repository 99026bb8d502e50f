"""What differs between recordings: two against each other, and one against a budget."""
