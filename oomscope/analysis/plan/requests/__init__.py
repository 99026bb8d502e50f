"""What one recording tells of each request: scores, windows, patches, channels, and how it may grow."""
