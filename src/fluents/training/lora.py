"""LoRA for the neural systems: a few matrices learn beside frozen weights, and are added to them in the checkpoint."""

from __future__ import annotations

from typing import Any

from fluents.errors import MissingExtraError
from fluents.neural.checkpoint import weights
from fluents.neural.emem import WithMemory
from fluents.neural.network import Network

try:
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.lora import LoraLayer
    from torch import nn
    from transformers.pytorch_utils import Conv1D
except ImportError as error:
    raise MissingExtraError(error.name or "peft", "train") from None

_ADAPTER = "default"
"""The library's name for the only one."""


def add_lora(network: Network, rank: int) -> None:
    """Freeze a network but for LoRA on its linear layers. What belongs to entity memory is new, and learns whole."""
    model = network.model
    config = LoraConfig(
        r=rank, lora_alpha=rank, target_modules=_targets(model), fan_in_fan_out=model.config.model_type == "gpt2"
    )
    inject_adapter_in_model(config, model, adapter_name=_ADAPTER)
    for name, parameter in network.named_parameters():
        parameter.requires_grad = "lora_" in name or ".memory." in name or name.startswith("compress.")


def _targets(model: Any) -> list[str]:
    """The linear layers, without the one that gives the words, and without cross-attention's that read memory too."""
    memory = {part for layer in model.modules() if isinstance(layer, WithMemory) for part in layer.modules()}
    left_out = {model.get_output_embeddings(), *memory}
    return [
        name
        for name, layer in model.named_modules()
        if isinstance(layer, (nn.Linear, Conv1D)) and layer not in left_out
    ]


def merged_weights(network: Network) -> dict[str, Any]:
    """A network's weights under their plain names, with LoRA added. The network is left as it is, to the last bit."""
    found = weights(network)
    for name, layer in network.model.named_modules():
        if isinstance(layer, LoraLayer):
            for own in [key for key in found if key.startswith(f"{name}.lora_")]:
                del found[own]
            for own in [key for key in found if key.startswith(f"{name}.base_layer.")]:
                found[own.replace(".base_layer.", ".")] = found.pop(own)
            weight = found[f"{name}.weight"]
            found[f"{name}.weight"] = weight + layer.get_delta_weight(_ADAPTER).to(weight.dtype)
    return found
