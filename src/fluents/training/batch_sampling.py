"""Sample the embedded model's answers to many prompts in large batches with transformers: on a GPU, for datasets.

The tracker replays the answers, so that everything after sampling is the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fluents.errors import needs_extra
from fluents.neural.network import best_device
from fluents.prompts.local import prompt
from fluents.records import Trace
from fluents.trackers.embedded import Sampling
from fluents.trackers.local import style_for
from fluents.trackers.replay import Replay
from fluents.training.adapter_file import merge_adapter
from fluents.training.base_model import encode, end_token, load_model, load_tokenizer
from fluents.weights import ensure
from fluents.weights.adapters import open_adapter

with needs_extra("train"):
    import torch
    from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

ROWS = 2048
"""Sequences per batch; fewer need less memory."""

GROUPED = "fluents-grouped"


def sample_answers(
    traces: Iterable[Trace],
    adapter: str | Path,
    sampling: Sampling,
    *,
    style: str | None = None,
    seed: int = 1,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> Replay:
    """Answers to every step of the traces, to replay; in `style`, or in the adapter's own for this sampling."""
    opened = open_adapter(adapter)
    chosen = style_for(opened, sampling, style)
    prompts = [prompt(trace.procedure, step, style=chosen) for trace in traces for step, _, _ in trace.by_step()]
    answers = sample(ensure(opened.base), opened.path, prompts, sampling, seed, report)
    return Replay(dict(zip(prompts, answers, strict=True)))


def sample(
    base: Path,
    adapter: Path | None,
    prompts: Sequence[str],
    sampling: Sampling,
    seed: int,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[list[str]]:
    """The answers to every prompt, as many as `sampling` asks for."""
    device = best_device()
    model = load_model(base, device)
    if adapter is not None:
        merge_adapter(model, adapter)
    model = model.to(torch.bfloat16 if device == "cuda" else torch.float32).eval()
    model.set_attn_implementation(GROUPED)
    tokenizer = load_tokenizer(base)
    torch.manual_seed(seed)
    encoded = [ids for prompt in prompts for ids in [encode(tokenizer, prompt)] * sampling.samples]
    written = generate(model, encoded, sampling, end_token(tokenizer), report=report)
    answers = [tokenizer.decode(answer.ids, skip_special_tokens=True) for answer in written]
    return [answers[start : start + sampling.samples] for start in range(0, len(answers), sampling.samples)]


class SampledTokens(NamedTuple):
    """What a model wrote, with the end token if it came to that, and how likely each token was to the model."""

    ids: list[int]
    log_probabilities: list[float]
    ended: bool


def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    end: int,
    *,
    rows: int = ROWS,
    report: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[SampledTokens]:
    """One answer to each prompt, in tokens; so many `rows` are written side by side."""
    order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))  # like lengths together: little padding
    found: dict[int, SampledTokens] = {}
    for start in range(0, len(order), rows):
        part = order[start : start + rows]
        found.update(zip(part, _generate(model, [prompts[i] for i in part], sampling, end), strict=True))
        report(start + len(part), len(order))
    return [found[index] for index in range(len(prompts))]


def _generate(model: Any, prompts: Sequence[Sequence[int]], sampling: Sampling, end: int) -> list[SampledTokens]:
    """The tokens that follow each prompt. Finished sequences are dropped from the batch on the way."""
    device = model.device
    with torch.inference_mode():
        current, mask = _left_padded(prompts, end, device)
        position = (mask.cumsum(-1) - 1).clamp(min=0)
        cache = DynamicCache(config=model.config)
        written = torch.full((len(prompts), sampling.max_tokens), end, device=device)
        likely = torch.zeros((len(prompts), sampling.max_tokens), device=device)
        rows = torch.arange(len(prompts), device=device)  # which prompts the rows of the batch belong to
        ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
        for step in range(sampling.max_tokens):
            logits = (
                model(
                    input_ids=current,
                    attention_mask=mask,
                    position_ids=position,
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
                .logits[:, -1]
                .float()
            )
            token = _pick(logits, sampling)
            token[ended] = end
            written[rows, step] = token
            likely[rows, step] = logits.gather(-1, token[:, None]).squeeze(-1) - logits.logsumexp(-1)
            ended |= token == end
            position = position[:, -1:] + 1
            if step % 8 == 7:  # not every time: dropping copies the cache
                keep = (~ended).nonzero().squeeze(-1)
                if not len(keep):
                    break
                cache.batch_select_indices(keep)
                rows, mask, token = rows[keep], mask[keep], token[keep]
                position, ended = position[keep], ended[keep]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=-1)
            current = token[:, None]
    found = []
    for tokens, values in zip(written.tolist(), likely.tolist(), strict=True):
        length = tokens.index(end) + 1 if end in tokens else len(tokens)
        found.append(SampledTokens(tokens[:length], values[:length], end in tokens))
    return found


def _left_padded(prompts: Sequence[Sequence[int]], padding: int, device: Any) -> tuple[Any, Any]:
    """(ids, mask), padded on the left, so that every sequence goes on at its end."""
    width = max(map(len, prompts))
    ids = torch.full((len(prompts), width), padding)
    mask = torch.zeros((len(prompts), width), dtype=torch.long)
    for row, tokens in enumerate(prompts):
        ids[row, width - len(tokens) :] = torch.tensor(tokens)
        mask[row, width - len(tokens) :] = 1
    return ids.to(device), mask.to(device)


def _pick(logits: Any, sampling: Sampling) -> Any:
    """The next token: the likeliest at temperature 0, else temperature, then top-k, then top-p, as llama.cpp does.

    A top-k of 0 and a top-p of 1 leave out nothing.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1)
    if sampling.top_k == 0 and sampling.top_p == 1:  # without sorting the vocabulary
        return torch.multinomial((logits / sampling.temperature).softmax(-1), 1).squeeze(-1)
    values, tokens = (logits / sampling.temperature).topk(sampling.top_k or logits.shape[-1], dim=-1)
    probabilities = values.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities
    probabilities[before >= sampling.top_p] = 0
    return tokens.gather(-1, torch.multinomial(probabilities, 1)).squeeze(-1)


def _grouped_attention(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any
) -> tuple[Any, None]:
    """Attention for one new token, whose query heads share keys: those of a group go as positions of one head.

    Else the library repeats keys and values for every query head, and at some thousand sequences that copying is what
    takes the time.
    """
    rows, heads, length, size = query.shape
    if length != 1 or attention_mask is None:
        plain: tuple[Any, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return plain
    groups = query.view(rows, key.shape[1], heads // key.shape[1], size)
    mask = attention_mask.expand(rows, 1, groups.shape[2], -1)
    found = torch.nn.functional.scaled_dot_product_attention(
        groups, key, value, attn_mask=mask, scale=options.get("scaling")
    )
    return found.reshape(rows, 1, heads, size), None


AttentionInterface.register(GROUPED, _grouped_attention)
AttentionMaskInterface.register(GROUPED, sdpa_mask)
