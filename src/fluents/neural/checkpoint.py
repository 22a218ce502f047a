"""Checkpoints: a transformers folder with a card of ours, `fluents.json`. Nothing in it is unpickled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fluents.errors import FluentsError, InputError, needs_extra
from fluents.jsonl import WrongShape, atomic_output, parse_json, wrong_shape_is_input_error
from fluents.neural.encoding import Codec
from fluents.neural.inputs import CARD, STYLES, SYSTEMS, NeuralSystem, Style, system_named
from fluents.neural.network import Network, OutOfMemory
from fluents.version import __version__

with needs_extra("train"):
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

WEIGHTS = "model.safetensors"


class ModelFilesError(FluentsError):
    """A model that cannot be loaded, or does not fit where it was put."""


@dataclass(frozen=True)
class Card:
    """What a checkpoint is of."""

    system: str
    style: Style
    arch: str
    """The library's name of the architecture, such as bart."""
    version: str = __version__
    """Of the fluents package."""
    longest_answer: int | None = None
    """Tokens of the longest answer it was taught; None where that is not known."""


@dataclass(frozen=True)
class Trained:
    """A network with what is needed to talk to it."""

    network: Network
    codec: Codec
    card: Card

    @property
    def system(self) -> NeuralSystem:
        return system_named(self.card.system)

    @property
    def most_answered(self) -> int:
        """Tokens an answer may have: half as many again as the longest it was taught.

        A model that says one sentence over and over would else go on to the end of its room, beam by beam.
        """
        room = self.codec.most_answered - 1  # the token an answer begins with takes a place too
        longest = self.card.longest_answer
        return room if longest is None else min(room, longest * 3 // 2)


def begin(
    source: str, system: str, style: Style, *, arch: str | None, from_scratch: bool, seed: int, download: bool
) -> Trained:
    """A model to train: from a folder or, with `download`, from the hub; its weights, or new ones of its shape."""
    offline = not download
    if offline and not Path(source).is_dir():
        raise InputError(
            f"there is no folder {source!r}",
            fix="give the folder of a transformers model, or add `download` to get the model from the Hugging Face hub",
        )
    fix = _FILES_FIX if Path(source).is_dir() else "check the name of the model and the network connection"
    with _clear_errors(source, fix):
        config = AutoConfig.from_pretrained(source, local_files_only=offline)
        if arch is not None and config.model_type != arch:
            raise ModelFilesError(
                f"this model has the architecture {config.model_type}, not {arch}", where=source, fix="leave out `arch`"
            )
        codec = _codec(source, config, offline)
        torch.manual_seed(seed)
        if from_scratch:
            model = _auto(config).from_config(config, dtype=torch.float32)
        else:
            model = _auto(config).from_pretrained(
                source, config=config, local_files_only=offline, dtype=torch.float32, use_safetensors=True
            )
        return Trained(
            Network(model, memory=system_named(system).memory), codec, Card(system, style, config.model_type)
        )


def save_shape(trained: Trained, folder: Path) -> None:
    """Everything but the weights: configuration, tokenizer, card."""
    trained.network.model.config.save_pretrained(folder)
    trained.codec.tokenizer.save_pretrained(folder)
    with atomic_output(folder / CARD) as stream:
        stream.write(json.dumps(asdict(trained.card), indent=1).encode() + b"\n")


def weights(network: Network) -> dict[str, Any]:
    """The weights under the names the library gives them, tied ones once; what compresses memory stands beside."""
    model = network.model
    own = {name for name, _ in (*model.named_parameters(), *model.named_buffers())}
    found = {name: value for name, value in model.state_dict().items() if name in own}
    if network.compress is not None:
        found |= {f"compress.{name}": value for name, value in network.compress.state_dict().items()}
    return found


def save_weights(found: Mapping[str, Any], file: Path) -> None:
    """Weights, written whole or not at all."""
    kept = {name: value.detach().contiguous().cpu() for name, value in found.items()}
    with atomic_output(file) as stream:
        stream.write(save(kept, {"format": "pt"}))


def load(folder: Path, device: str) -> Trained:
    """A checkpoint, ready to answer."""
    card = read_card(folder)
    if not (folder / WEIGHTS).exists():
        raise ModelFilesError(
            f"the folder contains no {WEIGHTS}",
            where=folder,
            fix="train the model for at least one epoch, or copy the folder again",
        )
    with _clear_errors(str(folder)):
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        if config.model_type != card.arch:
            raise ModelFilesError(
                f"config.json describes the architecture {config.model_type}, but the checkpoint was trained with "
                f"{card.arch}",
                where=folder,
                fix="restore the config.json that `fluents train neural` wrote",
            )
        codec = _codec(str(folder), config, True)
        network = Network(
            _auto(config).from_config(config, dtype=torch.float32), memory=system_named(card.system).memory
        )
        with _clear_errors(str(folder / WEIGHTS)):
            put_weights(network, load_file(str(folder / WEIGHTS)))
        return Trained(network.to(device).eval(), codec, card)


def put_weights(network: Network, found: dict[str, Any]) -> None:
    """Copy weights into a network; a name or a shape that does not fit is a ValueError."""
    own = weights(network)
    if own.keys() != found.keys():
        name = sorted(own.keys() ^ found.keys())[0]
        lacking = "the file" if name in own else "the model"
        raise ValueError(f"the weights do not fit the model: {lacking} has no {name}")
    with torch.no_grad():
        for name, value in own.items():
            if value.shape != found[name].shape:
                shapes = f"{list(found[name].shape)} in the file, but {list(value.shape)} in the model"
                raise ValueError(f"the weights do not fit the model: {name} has the shape {shapes}")
            value.copy_(found[name])


def read_card(folder: Path) -> Card:
    """What a folder says of itself."""
    file = folder / CARD
    if not file.is_file():
        raise ModelFilesError(
            f"this folder was not written by `fluents train neural`: it contains no {CARD}",
            where=folder,
            fix="give a folder that `fluents train neural` wrote",
        )
    what = "this file does not describe a checkpoint of `fluents train neural`"
    with wrong_shape_is_input_error(what, str(file), fix="restore the file that `fluents train neural` wrote"):
        card = Card(**parse_json(file.read_bytes(), str(file)))
        for name, value, known in (("system", card.system, list(SYSTEMS)), ("style", card.style, list(STYLES))):
            if value not in known:
                raise WrongShape(f"{name} is {value!r:.80}, but must be one of {', '.join(known)}")
        longest = card.longest_answer
        if longest is not None and (type(longest) is not int or longest < 1):
            raise WrongShape(f"longest_answer is {longest!r:.80}, but must be a positive number of tokens")
        return card


def _auto(config: Any) -> Any:
    return AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM


def _codec(source: str, config: Any, offline: bool) -> Codec:
    """The tokenizer, and a configuration that agrees with it on where a text ends."""
    tokenizer = _tokenizer(source, offline)
    if len(tokenizer) > config.vocab_size:
        raise ModelFilesError(
            f"the tokenizer does not fit the model: the tokenizer has {len(tokenizer)} tokens, but the model has only "
            f"{config.vocab_size}",
            where=source,
            fix="put the tokenizer of this model into the folder",
        )
    config.eos_token_id = tokenizer.eos_token_id
    if config.pad_token_id is None:
        pad = tokenizer.pad_token_id  # which may be 0
        config.pad_token_id = tokenizer.eos_token_id if pad is None else pad
    return Codec(tokenizer, config)


def _tokenizer(source: str, offline: bool) -> Any:
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=offline)
    except (OSError, ValueError, TypeError, AttributeError, ImportError) as error:
        raise ModelFilesError(
            f"no usable tokenizer: {_first_line(error)}", where=source, fix="put tokenizer.json next to config.json"
        ) from None
    has_end = tokenizer.eos_token_id is not None
    if not has_end or not tokenizer("a", add_special_tokens=False)["input_ids"]:
        what = f"the tokenizer has no {'vocabulary' if has_end else 'end token'}"
        raise ModelFilesError(what, where=source, fix="put the tokenizer of this model into the folder")
    return tokenizer


_FILES_FIX = "check the files of the model, or copy them again"


@contextmanager
def _clear_errors(where: str, fix: str = _FILES_FIX) -> Iterator[None]:
    """What goes wrong in reading a model's files, in one line."""
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        raise OutOfMemory(
            "the model does not fit into the memory of the GPU",
            where=where,
            fix="use a smaller model, or a GPU with more free memory",
        ) from None
    except SafetensorError as error:
        what = f"the weights are damaged: {_first_line(error)}"
        raise ModelFilesError(what, where=where, fix="copy or train the model again") from None
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        what = f"the model cannot be loaded: {_first_line(error)}"
        raise ModelFilesError(what, where=where, fix=fix) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
