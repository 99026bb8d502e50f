"""The version, where every layer can see it; the build reads it here."""

__version__ = "0.1.0"
