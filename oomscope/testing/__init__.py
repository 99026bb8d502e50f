"""Budgets of GPU memory in tests: a plugin of pytest."""

MARKER = "gpu_memory"
SAVE = "--save-gpu-memory-baselines"
