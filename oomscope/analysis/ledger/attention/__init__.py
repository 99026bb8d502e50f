"""Which requests are scores of attention, by name, by size, by what makes them and by what they go into."""
