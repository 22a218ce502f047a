"""The weights of the embedded model: base weights are fetched once, checked and cached; adapters ship with fluents."""

from fluents.weights.base_weights import BASES, DEFAULT, BaseWeights, weights_path
from fluents.weights.fetch import ensure

__all__ = ["BASES", "DEFAULT", "BaseWeights", "ensure", "weights_path"]
