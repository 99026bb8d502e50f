"""Measurements. ``python -m tests.benchmarks`` prints them as a table."""
