"""Builds the engine's library when the package is built: ``python -m tapegrad.library_build FOLDER``."""
