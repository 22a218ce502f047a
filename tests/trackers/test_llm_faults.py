"""The llm tracker against a real server that misbehaves: every step ends as changes or as a reject, and as its own."""

from __future__ import annotations

import re

import pytest

from faulty_server import FAULTS, Body, FaultyServer, prompt_of, randomly
from fluents.llm import LanguageModel
from fluents.llm.endpoint import Endpoint
from fluents.llm.wire_format import EndpointOptions, RetryPolicy
from fluents.records import Procedure, Trace
from fluents.trackers.llm.settings import FORMS, Form, LlmSettings
from fluents.trackers.llm.tracker import LlmTracker
from scripted import water_heats

QUICK = EndpointOptions(timeout=0.5, retry=RetryPolicy(first_wait=0.005, longest_wait=0.02))
PROCEDURES, STEPS = 20, 10
IN_JSON = tuple(fault for fault in FAULTS if fault not in ("extra", "reversed"))
"""Of what is no JSON, parts cannot be added or turned round."""


def own_pot(body: Body) -> str:
    """Each step heats a pot of its own, by its text: what reaches another step is seen."""
    prompt = prompt_of(body)
    answer = water_heats(prompt)
    if '"1": [{' in prompt:
        pots = iter(re.findall(r'"Heat (pot \d+ \d+)\."', prompt))
        return re.sub('"water"', lambda _: f'"{next(pots)}"', answer)
    [*_, pot] = re.findall(r'number \d+: "Heat (pot \d+ \d+)\."', prompt)
    return answer.replace("water", pot)


@pytest.mark.parametrize("form", FORMS)
def test_two_hundred_steps_at_a_tenth_of_faults(form: Form) -> None:
    """None lost, none doubled, none in another's place; as every procedure of `whole` is one question, at a third."""
    procedures = [
        Procedure(id=f"p{n}", goal="Heat pots", steps=tuple(f"Heat pot {n} {k}." for k in range(1, STEPS + 1)))
        for n in range(PROCEDURES)
    ]
    fault = randomly(0.3 if form == "whole" else 0.1, 7, IN_JSON if form == "complete" else FAULTS)
    with (
        FaultyServer(own_pot, fault, hang=0.6) as server,
        Endpoint(server.base_url, "any", options=QUICK) as endpoint,
    ):
        tracker = LlmTracker(LanguageModel(endpoint, "any"), LlmSettings(form=form))
        traces = [tracker.track(procedure) for procedure in procedures]
        assert len(set(server.faults)) >= 5, "it did misbehave"
    for trace in traces:
        _check(trace)
    answered = sum(len(trace.covered_steps) for trace in traces)
    assert answered >= 0.9 * PROCEDURES * STEPS, "most faults are got over"


def _check(trace: Trace) -> None:
    every = set(range(1, STEPS + 1))
    rejected = {reject.step for reject in trace.rejects}
    assert set(trace.covered_steps) | rejected == every | (rejected & {None})
    own = [(step, f"pot {trace.id[1:]} {step}", "heat") for step in trace.covered_steps]
    assert [(change.step, change.entity, change.attribute) for change in trace.changes] == own
