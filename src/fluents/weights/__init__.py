"""The weights of the embedded model: base weights, fetched once and verified, and adapters, shipped or trained."""

from fluents.weights.adapters import ADAPTERS, Adapter, open_adapter
from fluents.weights.base_weights import BASES, DEFAULT, BaseWeights, weights_path
from fluents.weights.fetch import ensure

__all__ = ["ADAPTERS", "BASES", "DEFAULT", "Adapter", "BaseWeights", "ensure", "open_adapter", "weights_path"]
