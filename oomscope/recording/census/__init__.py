"""The census: which tensor is each block, and who keeps it alive, asked of Python while everything still lives."""
