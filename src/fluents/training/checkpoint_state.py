"""The state of a training run on disk, to resume it exactly: its log, weights and optimiser as plain tensors."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fluents.errors import InputError, needs_extra
from fluents.jsonl import parse_json, wrong_shape_is_input_error

with needs_extra("train"):
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

_ADAM = ("step", "exp_avg", "exp_avg_sq")


def save_state(file: Path, parameters: Mapping[str, Any], optimizer: Any) -> None:
    """Write parameters and their AdamW state; the file is complete or not there."""
    kept = {f"weight:{name}": parameter.detach() for name, parameter in parameters.items()}
    for name, parameter in parameters.items():
        for key, value in optimizer.state[parameter].items():
            kept[f"{key}:{name}"] = torch.as_tensor(value)
    part = file.with_name(f".{file.name}.part")
    save_file({key: value.contiguous().cpu() for key, value in kept.items()}, str(part))
    os.replace(part, file)


def load_state(file: Path, parameters: Mapping[str, Any], optimizer: Any) -> None:
    """Load what `save_state` wrote, bit for bit."""
    try:
        kept = load_file(str(file))
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(kept[f"weight:{name}"])
                if f"step:{name}" not in kept:  # a parameter no batch has needed yet
                    continue
                state = {key: kept[f"{key}:{name}"].to(parameter.device) for key in _ADAM}
                optimizer.state[parameter] = state | {"step": kept[f"step:{name}"]}
    except (SafetensorError, OSError, KeyError, RuntimeError) as error:
        raise InputError(
            f"cannot read the checkpoint: {str(error).splitlines()[0][:200]}",
            where=file,
            fix="start the training again, with an empty folder as `out`",
        ) from None


def load_mean(files: Sequence[Path], parameters: Mapping[str, Any], optimizer: Any) -> None:
    """Load the mean of the parameters in several such files; the optimiser is of no use afterwards."""
    total = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    for file in files:
        load_state(file, parameters, optimizer)
        for name, parameter in parameters.items():
            total[name] += parameter.detach() / len(files)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(total[name])


def finite(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of an epoch; None for NaN and infinity, which JSON does not have."""
    return {name: value if value is None or math.isfinite(value) else None for name, value in entry.items()}


def log_so_far(file: Path, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The log of the run in `file`, empty if there is none; an error if that run was not about the same."""
    if not file.exists():
        return []
    fix = "choose another folder as `out`, or delete this file"
    with wrong_shape_is_input_error("this file is not the log of a training run", str(file), fix=fix):
        kept = parse_json(file.read_bytes(), str(file))
        other = [name for name in about if kept.get(name) != about[name]]
        log: list[dict[str, Any]] = [dict(entry) for entry in kept["log"]]
    if other:
        raise InputError(
            f"this folder contains a training run that differs from this one in: {', '.join(other)}",
            where=file.parent,
            fix="choose another folder as `out`, or delete the files in this folder",
        )
    return log
