"""The stages a procedure's steps go through: finding pairs, verifying them, asking for their states; or all at once."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from fluents.prompts import llm as prompts
from fluents.prompts.llm import PromptExample, of_others
from fluents.records import Procedure, Reject, StateChange, Trace
from fluents.text.matchers import KnownStates
from fluents.text.names import plain_name
from fluents.trackers.consensus import consensus
from fluents.trackers.llm import answer_parsers
from fluents.trackers.llm.question_batch import AskedQuestion, QuestionBatch
from fluents.trackers.llm.settings import LlmSettings

Found: TypeAlias = dict[int, list[StateChange]]
"""Step → its changes. One without states, both empty, is a pair of entity and attribute."""

NOT_VERIFIED = "verification: this attribute does not change in this step"
NO_ANSWER = "no readable answer for this step"


class Shots:
    """Few-shot examples from a dataset or a file of traces, never from the procedure that is tracked: procedures in an
    order that the seed decides, with a change chosen in each."""

    def __init__(self, traces: Iterable[Trace], count: int, seed: int, source: str = "") -> None:
        self.source = source
        self._count = count
        draw = random.Random(seed)
        shown = ((trace, [c for c in trace.changes if c.before.strip() and c.after.strip()]) for trace in traces)
        usable = [(trace, whole) for trace, whole in shown if whole]
        draw.shuffle(usable)
        self._drawn = [(trace, whole, draw.choice(whole)) for trace, whole in usable]

    def examples(self, procedure: Procedure, prompt: str, *, past: bool) -> list[PromptExample]:
        """So many examples as were asked for, in the form of one prompt, from other procedures than this."""
        drawn = ((one[0].procedure, one) for one in self._drawn)
        others = of_others(drawn, procedure, self._count, self.source)
        return [_example(prompt, trace.procedure, changes, chosen, past) for trace, changes, chosen in others]


def _example(
    prompt: str, procedure: Procedure, changes: list[StateChange], chosen: StateChange, past: bool
) -> PromptExample:
    if prompt == prompts.WHOLE:
        return PromptExample(prompts.whole_scene(procedure), prompts.whole_answer(procedure, changes))
    scene = prompts.scene(procedure, chosen.step, past=past)
    here = [change for change in changes if change.step == chosen.step]
    entity, attribute = prompts.quoted(chosen.entity), prompts.quoted(chosen.attribute)
    if prompt == prompts.SCHEMATA:
        return PromptExample(scene, prompts.schemata_answer(here))
    if prompt == prompts.COMPLETE:
        return PromptExample(scene, prompts.complete_answer(here))
    if prompt == prompts.CHANGES_OF:
        return PromptExample(scene, prompts.changes_of_answer(here, chosen.entity), entity)
    return PromptExample(scene, prompts.states_answer(chosen), entity, attribute)


class Pipeline:
    """One procedure on its way. Steps are run in groups: all at once, or one by one where each knows the last."""

    def __init__(
        self,
        procedure: Procedure,
        settings: LlmSettings,
        questions: QuestionBatch,
        shots: Shots | None = None,
        given: Trace | None = None,
    ) -> None:
        self._procedure, self._settings, self._questions = procedure, settings, questions
        self._shots, self._given = shots, given
        self._states_so_far = KnownStates()
        self._known: dict[tuple[str, str], StateChange] = {}
        self.changes: list[StateChange] = []
        self.answered: set[int] = set()

    def run(self, steps: Sequence[int]) -> None:
        """Ask about these steps, later ones than any before."""
        form = self._settings.form
        if form == "whole":
            found = self._verified(self._whole(steps))
        elif form == "complete":
            found = self._verified(self._complete(steps))
        else:
            pairs = self._pairs_given(steps) if self._given else self._verified(self._pairs(steps))
            found = pairs if form == "schemata" else self._with_states(pairs)
        self.answered |= found.keys()
        for step in sorted(found):
            self.changes += self.recall(found[step])

    def recall(self, changes: Iterable[StateChange]) -> Sequence[StateChange]:
        """Know the changes of a step when asking about the next; returns them with names and states carried over."""
        if self._settings.memory and not self._given:
            changes = self._states_so_far.enter(changes)
        changes = list(changes)
        for change in changes:
            topic = plain_name(change.entity), plain_name(change.attribute)
            self._known.pop(topic, None)  # the newest last
            self._known[topic] = change
        return changes

    # Finding what changes

    def _pairs_given(self, steps: Iterable[int]) -> Found:
        """Entities and attributes as they were given, without anything else that is known of them."""
        return {
            step: [_pair(step, change.entity, change.attribute) for change in self._given.at(step)]
            for step in steps
            if self._given
        }

    def _pairs(self, steps: Sequence[int]) -> Found:
        examples = self._examples(prompts.SCHEMATA)
        asked = [self._asked(prompts.SCHEMATA, step, examples) for step in steps]
        found: Found = {}
        for step, samples in zip(steps, self._questions.ask(asked, answer_parsers.read_pairs), strict=True):
            for sample in samples:
                self._keep(sample.rejects, step)
            if samples:
                found[step] = self._agreed([[_pair(step, *pair) for pair in s.said] for s in samples], whole=False)
        return found

    def _complete(self, steps: Sequence[int]) -> Found:
        examples = self._examples(prompts.COMPLETE)
        asked = [self._asked(prompts.COMPLETE, step, examples) for step in steps]
        found: Found = {}
        for step, samples in zip(steps, self._questions.ask(asked, answer_parsers.read_sentences), strict=True):
            for sample in samples:
                # A line stands among the step's answers only where there is one answer.
                self._keep(sample.rejects, step, placed=self._settings.samples == 1)
            if samples:
                found[step] = self._agreed([[c.replace(step=step) for c in sample.said] for sample in samples])
        return found

    def _whole(self, steps: Sequence[int]) -> Found:
        if not steps:
            return {}
        reader = answer_parsers.WholeReader(len(steps))
        asked = [AskedQuestion(None, prompts.WHOLE, prompts.whole(self._procedure, self._examples(prompts.WHOLE)))]
        [samples] = self._questions.ask(asked, reader.all_steps, reader.those_there, len(steps))
        for sample in samples:
            for step, said in sample.items():
                self._keep(said.rejects, step or None)
        found: Found = {}
        for step in steps:
            if mine := [list(sample[step].said) for sample in samples if step in sample]:
                found[step] = self._agreed(mine)
            else:
                self._keep([Reject(text="", reason=NO_ANSWER)], step)
        return found

    # Looking again

    def _verified(self, found: Found) -> Found:
        """Without the pairs that the model, asked again, says do not change. What it does not answer is kept."""
        if not self._settings.verify:
            return found
        pairs = {(c.step, plain_name(c.entity), plain_name(c.attribute)): c for step in found for c in found[step]}
        asked = [self._asked(prompts.VERIFY, c.step, entity=c.entity, attribute=c.attribute) for c in pairs.values()]
        verdicts = self._questions.ask(asked, answer_parsers.read_verdict)
        wrong = [
            key for key, verdict in zip(pairs, verdicts, strict=True) if verdict and sum(verdict) < len(verdict) / 2
        ]
        for key in wrong:
            change = pairs[key]
            self._keep([Reject(text=f"{change.entity} | {change.attribute}", reason=NOT_VERIFIED)], change.step)
        return {
            step: [c for c in changes if (step, plain_name(c.entity), plain_name(c.attribute)) not in wrong]
            for step, changes in found.items()
        }

    # Asking for states

    def _with_states(self, pairs: Found) -> Found:
        """The pairs' changes; a step is left out if it has pairs and no answer about any of them can be read."""
        changes, unread = self._states_of_entities(pairs) if self._settings.econd else self._states(pairs)
        return {step: changes.get(step, []) for step in pairs if not pairs[step] or step not in unread}

    def _states(self, pairs: Found) -> tuple[Found, set[int]]:
        examples = self._examples(prompts.STATES)
        wanted = [pair for step in pairs for pair in pairs[step]]
        asked = [
            self._asked(prompts.STATES, pair.step, examples, entity=pair.entity, attribute=pair.attribute)
            for pair in wanted
        ]
        found: Found = {}
        unread = set(pairs)
        for pair, samples in zip(wanted, self._questions.ask(asked, answer_parsers.read_states), strict=True):
            if samples:
                unread.discard(pair.step)
                said = [self._if_changed(pair, before, after) for before, after in samples]
                found.setdefault(pair.step, []).extend(self._agreed(said, most=1, prior=pair.support))
        return found, unread

    def _states_of_entities(self, pairs: Found) -> tuple[Found, set[int]]:
        """ECond: one question for each entity, about all of its attributes."""
        examples = self._examples(prompts.CHANGES_OF)
        wanted = list({(pair.step, plain_name(pair.entity)): pair for step in pairs for pair in pairs[step]}.values())
        asked = [self._asked(prompts.CHANGES_OF, pair.step, examples, entity=pair.entity) for pair in wanted]
        found: Found = {}
        unread = set(pairs)
        for pair, samples in zip(wanted, self._questions.ask(asked, answer_parsers.read_changes_of), strict=True):
            for sample in samples:
                self._keep(sample.rejects, pair.step)
            if samples:
                unread.discard(pair.step)
                said = [
                    [
                        change
                        for attribute, before, after in sample.said
                        for change in self._if_changed(_pair(pair.step, pair.entity, attribute), before, after)
                    ]
                    for sample in samples
                ]
                found.setdefault(pair.step, []).extend(self._agreed(said))
        most = self._settings.most
        return {step: changes[:most] for step, changes in found.items()}, unread

    def _if_changed(self, pair: StateChange, before: str, after: str) -> list[StateChange]:
        """The change, or none where both states are one; who gave the pair wants an answer in any case."""
        if plain_name(before) == plain_name(after) and not self._given:
            return []
        return [_pair(pair.step, pair.entity, pair.attribute).replace(before=before, after=after)]

    # What all stages need

    def _agreed(
        self,
        samples: list[list[StateChange]],
        *,
        whole: bool = True,
        most: int | None = None,
        prior: float | None = None,
    ) -> list[StateChange]:
        """What samples agree on; `prior` is the support of the pair that was asked about."""
        if self._settings.samples == 1:
            return samples[0][: most or self._settings.most]
        settings = self._settings.consensus(whole=whole)
        agreed = consensus(samples, replace(settings, most=most) if most else settings)
        if prior is None:
            return agreed
        return [c if c.support is None else c.replace(support=round(c.support * prior, 3)) for c in agreed]

    def _asked(self, prompt: str, step: int, examples: Sequence[PromptExample] = (), **names: str) -> AskedQuestion:
        known = self._known.values() if self._settings.memory else ()
        scene = prompts.scene(self._procedure, step, past=self._settings.past, known=known)
        return AskedQuestion(step, prompt, prompts.about_step(prompt, scene, examples, **names))

    def _examples(self, prompt: str) -> list[PromptExample]:
        if not self._settings.shots or self._shots is None:
            return []
        return self._shots.examples(self._procedure, prompt, past=self._settings.past)

    def _keep(self, rejects: Iterable[Reject], step: int | None, *, placed: bool = False) -> None:
        for reject in rejects:
            self._questions.rejects.append(reject.replace(step=step, position=reject.position if placed else None))


def _pair(step: int, entity: str, attribute: str) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before="", after="")
