"""The published data: what there is, where it is, and reading it."""
