"""BERTScore (Zhang et al. 2020) as OpenPI2.0 uses it: each prediction against the gold text it resembles most.

For every prediction the largest F1 over all gold texts of its unit, and the mean of that over predictions: gold that
nothing resembles costs nothing. Units are (entity, attribute) pairs, states or whole sentences. An encoder turns texts
into token vectors; `TransformersEncoder` is one for any model of the transformers library. Texts are encoded in
batches, each once.

compat leaves out predictions whose unit has no gold, as the released script does; strict counts them as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fluents.errors import DataMissingError, InputError, MissingExtraError
from fluents.metrics.complete import gold_units
from fluents.metrics.states import by_question
from fluents.records import Trace
from fluents.scoring import Mode, Scope, check_choice
from fluents.scoring.alignment import ProcedurePairs, steps_of
from fluents.scoring.gold_vocabulary import pair_names
from fluents.scoring.score import Score, ShareOf, Signature, Statistics, StepRow
from fluents.text.embedders import packaged

Matrix: TypeAlias = NDArray[np.float32]

TEXTS_AT_ONCE = 4096
"""Vectors of about so many texts are held together."""

LAYERS = {"microsoft/deberta-xlarge-mnli": 40, "roberta-large": 17, "bert-base-uncased": 9}
"""The layers BERTScore's authors chose; other models give their last."""


class Tokens(NamedTuple):
    """A text in the eyes of an encoder."""

    vectors: Matrix
    """One row of length 1 for every token."""
    weights: Matrix
    """1 for a token that counts; 0 for marks such as [CLS], which may be matched but are not averaged over."""


class TokenEncoder(Protocol):
    @property
    def name(self) -> str:
        """Model and layer: they decide the number."""
        ...

    def __call__(self, texts: Sequence[str]) -> Sequence[Tokens]: ...


class BertscoreUnit(NamedTuple):
    """Predictions and the gold texts any of them may resemble."""

    procedure_id: str
    step: int
    predictions: Sequence[str]
    gold: Sequence[str]


Compared: TypeAlias = Literal["schemata", "states", "complete"]
"""(entity, attribute) pairs; the states of given pairs; whole sentences."""

PAPER_ENCODER = "microsoft/deberta-xlarge-mnli"


def bertscore(
    gold: Iterable[Trace],
    pred: Iterable[Trace],
    *,
    mode: Mode = "compat",
    of: Compared = "schemata",
    scope: Scope | None = None,
    expanded: bool = False,
    encoder: TokenEncoder | str = PAPER_ENCODER,
    layer: int | None = None,
) -> Score:
    """The mean over predictions of the best F1 over the gold texts of their unit.

    `scope` is for schemata: pairs of the whole procedure ("global", the default) or of each step. `expanded` lets the
    added paraphrases count as gold. `encoder` is a model of the transformers library, by name or folder, or an object.
    """
    check_choice("of", of, Compared)
    if scope is not None:
        check_choice("scope", scope, Scope)
    if of != "schemata" and scope is not None:
        raise InputError("`scope` works only with `of` schemata", fix="leave out `scope`")
    if of == "states" and expanded:
        raise InputError("`expanded` works only with `of` schemata or complete", fix="leave out `expanded`")
    if not isinstance(encoder, str) and layer is not None:
        raise InputError("`layer` works only with an encoder given by name", fix="set the layer of the encoder itself")
    pairs = ProcedurePairs(gold, pred, mode)
    if of == "schemata":
        units = schemata_units(pairs, scope=scope or "global", expanded=expanded)
    else:
        units = states_units(pairs) if of == "states" else complete_units(pairs, expanded=expanded)
    loaded = TransformersEncoder(encoder, layer=layer) if isinstance(encoder, str) else encoder
    statistics = Statistics.collect(("f1", "predictions"), unit_rows(units, loaded, mode))
    row = " ".join((of, *([scope or "global"] if of == "schemata" else []), *(["+exp"] if expanded else [])))
    signature = Signature.of("bertscore", mode, of=row, encoder=loaded.name, avg="predictions", data=pairs.data_hash)
    figures = {row: {"f1": ShareOf("f1", "predictions")}}
    return Score("bertscore", statistics, figures, signature, tuple(pairs.warnings))


def unit_rows(units: Iterable[BertscoreUnit], encoder: TokenEncoder, mode: Mode) -> Iterator[StepRow]:
    """For each unit the sum of its predictions' best F1s, and their number."""
    known: dict[str, Tokens] = {}
    for window in _windows(units):
        texts = dict.fromkeys(text for unit in window for text in (*unit.predictions, *unit.gold))
        known = {text: known[text] for text in texts if text in known}
        new = [text for text in texts if text not in known]
        known.update(zip(new, encoder(new), strict=True))
        for unit in window:
            counted = len(unit.predictions) if unit.gold or mode == "strict" else 0
            yield unit.procedure_id, unit.step, (sum(_best_f1s(unit, known)), counted)


def _windows(units: Iterable[BertscoreUnit]) -> Iterator[list[BertscoreUnit]]:
    window: list[BertscoreUnit] = []
    size = 0
    for unit in units:
        window.append(unit)
        size += len(unit.predictions) + len(unit.gold)
        if size >= TEXTS_AT_ONCE:
            yield window
            window, size = [], 0
    if window:
        yield window


def _best_f1s(unit: BertscoreUnit, known: Mapping[str, Tokens]) -> Iterator[float]:
    """For each prediction the best F1, against all gold texts in one product of matrices."""
    if not unit.gold:
        return
    gold = [_with_a_row(known[text]) for text in dict.fromkeys(unit.gold)]
    vectors = np.concatenate([tokens.vectors for tokens in gold])
    weights = np.concatenate([tokens.weights for tokens in gold])
    starts = np.cumsum([0, *(len(tokens.weights) for tokens in gold[:-1])])
    weight_sums = np.add.reduceat(weights, starts)
    for text in unit.predictions:
        said = _with_a_row(known[text])
        alike = said.vectors @ vectors.T
        precision = _share(said.weights @ np.maximum.reduceat(alike, starts, axis=1), said.weights.sum())
        recall = _share(np.add.reduceat(alike.max(axis=0) * weights, starts), weight_sums)
        yield float(_share(2 * precision * recall, precision + recall).max())


def _with_a_row(tokens: Tokens) -> Tokens:
    """A text without tokens resembles nothing."""
    if len(tokens.weights):
        return tokens
    return Tokens(np.zeros((1, tokens.vectors.shape[1]), dtype=np.float32), np.zeros(1, dtype=np.float32))


def _share(part: Matrix, whole: Any) -> Matrix:
    whole = np.broadcast_to(whole, part.shape)
    share: Matrix = np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
    return share


class TransformersEncoder:
    """The hidden states of a model of the transformers library, by name or from a folder."""

    def __init__(
        self, model: str, *, layer: int | None = None, batch_size: int = 64, device: str | None = None
    ) -> None:
        try:
            transformers, self._torch = import_module("transformers"), import_module("torch")
        except ImportError:
            raise MissingExtraError("transformers", "embed") from None
        self._layer = LAYERS.get(model, -1) if layer is None else layer
        self._batch_size = batch_size
        self._device = device or ("cuda" if self._torch.cuda.is_available() else "cpu")
        folder = str(packaged(model) or model)
        try:
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
            loaded: Any = transformers.AutoModel.from_pretrained(folder)
        except (OSError, ValueError) as error:
            raise DataMissingError(
                f"the encoder {model!r} cannot be loaded; transformers reports: {error}".splitlines()[0],
                fix="give the folder of a model, connect to the internet to download this encoder, or use "
                "all-MiniLM-L6-v2, which comes with the extra `embed`",
            ) from None
        depth = loaded.config.num_hidden_layers
        if not -1 <= self._layer <= depth:
            raise InputError(
                f"the encoder {model!r} has no layer {self._layer}", fix=f"choose a layer from 0 to {depth}"
            )
        self._model = loaded.eval().to(self._device)
        self._max_length = min(self._tokenizer.model_max_length, loaded.config.max_position_embeddings)
        told = "/".join(Path(model).absolute().parts[-2:]) if Path(model).is_dir() else model
        self.name = f"{told} layer {depth if self._layer == -1 else self._layer}"

    def __call__(self, texts: Sequence[str]) -> list[Tokens]:
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        found: dict[int, Tokens] = {}
        for start in range(0, len(texts), self._batch_size):
            batch = by_length[start : start + self._batch_size]
            found.update(zip(batch, self._encode([texts[index] for index in batch]), strict=True))
        return [found[index] for index in range(len(texts))]

    def _encode(self, texts: list[str]) -> Iterator[Tokens]:
        inputs = self._tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self._max_length,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        marks = inputs.pop("special_tokens_mask").numpy()
        real = inputs["attention_mask"].numpy().astype(bool)
        with self._torch.inference_mode():
            states = self._model(**inputs.to(self._device), output_hidden_states=True).hidden_states[self._layer]
            states = self._torch.nn.functional.normalize(states.float(), dim=-1).cpu().numpy()
        for vectors, mark, keep in zip(states, marks, real, strict=True):
            yield Tokens(vectors[keep], 1 - mark[keep].astype(np.float32))


# What OpenPI2.0 compares

TracePairs: TypeAlias = Iterable[tuple[Trace, Trace]]
"""Gold and prediction of each procedure."""


def schemata_units(pairs: TracePairs, *, scope: Scope, expanded: bool = False) -> Iterator[BertscoreUnit]:
    """ "attribute of entity" of every predicted pair, against all names of all gold pairs: of the procedure's clusters,
    or of the changes of the same step."""
    for meant, said in pairs:
        all_names = pair_names(meant, expanded=expanded).items()
        names = {pair: [f"{attribute} of {entity}" for entity, attribute in named] for pair, named in all_names}
        if scope == "global":
            distinct = dict.fromkeys(f"{change.attribute} of {change.entity}" for change in said.changes)
            yield BertscoreUnit(meant.id, 0, list(distinct), [text for texts in names.values() for text in texts])
            continue
        for step, _, changes in meant.by_step():
            texts = [text for change in changes for text in names[change.entity, change.attribute]]
            yield BertscoreUnit(
                meant.id, step, [f"{change.attribute} of {change.entity}" for change in said.at(step)], texts
            )


def states_units(pairs: TracePairs) -> Iterator[BertscoreUnit]:
    """Every state before, and every state after, against the gold's first wording of the same entity and attribute.

    They are found by name, as in `states`: an answer that is missing moves no other.
    """
    for meant, said in pairs:
        asked = by_question(meant, str)
        for question, answers in by_question(said, str).items():
            for theirs, ours in zip_longest(answers, asked.get(question, [])[: len(answers)]):
                yield BertscoreUnit(meant.id, theirs.step, [theirs.before], [ours.before] if ours else [])
                yield BertscoreUnit(meant.id, theirs.step, [theirs.after], [ours.after] if ours else [])


def complete_units(pairs: TracePairs, *, expanded: bool = False) -> Iterator[BertscoreUnit]:
    """Every predicted sentence against all sentences of the gold units of its step."""
    for meant, said in pairs:
        answers = {step.step: step.sentences for step in steps_of([said])}
        for step, units in gold_units(meant, expanded=expanded).items():
            yield BertscoreUnit(
                meant.id, step, answers.get(step, ()), [sentence for unit in units for sentence in unit]
            )
