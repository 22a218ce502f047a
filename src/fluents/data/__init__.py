"""The published data: what there is, where it is, and reading it."""

from fluents.data.datasets import DATASETS, load, load_traces

__all__ = ["DATASETS", "load", "load_traces"]
