"""Snapshots for other tools."""
