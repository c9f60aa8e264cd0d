"""The read-only mirror of the index."""
