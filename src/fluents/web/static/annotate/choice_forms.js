// Forms with one answer: pressing its key decides the item.

import { counted, h } from "../elements.js";
import { changeSentence, procedureView } from "./procedure.js";

const REASONS = [
  ["one", "obscure", "Obscure: nobody would put it that way"],
  ["two", "other-step", "Belongs to another step"],
  ["three", "mismatch", "The attribute does not fit the states"],
  ["four", "reader", "About the reader of the text, not about the person who does the step"],
  ["five", "factual", "Not true, or it only repeats the action"],
];

const yes = (label, answer) => ({ name: "yes", label, answer, tone: "good" });
const no = (label, answer) => ({ name: "no", label, answer, tone: "bad" });

const CHOICES = {
  select: [yes("Keep it", { keep: true }), no("Leave it out", { keep: false })],
  vet: [
    yes("Right", { valid: true, reason: null }),
    no("Wrong", { valid: false, reason: null }),
    ...REASONS.map(([name, reason, label]) => ({ name, label, answer: { valid: false, reason }, tone: "reason" })),
  ],
  "clean-procedures": [yes("A procedure", { procedure: true }), no("Not a procedure", { procedure: false })],
  "clean-changes": [
    { name: "one", label: "Certain", answer: { verdict: "certain" }, tone: "good" },
    { name: "two", label: "Uncertain", answer: { verdict: "uncertain" }, tone: "bad" },
    { name: "three", label: "Impossible", answer: { verdict: "impossible" }, tone: "bad" },
  ],
  hallucinations: [yes("Made up", { hallucinated: true }), no("The text supports it", { hallucinated: false })],
};

const same = (one, other) => JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other ?? {}).sort());

function facts({ steps, stative, passes }) {
  const verbs = stative?.length ? `, and verbs that express a state, not an action: ${stative.join(", ")}.` : ", and no verbs that express a state (such as “know”).";
  return h(`p.${passes ? "hint" : "warning"}`, {}, `This text has ${counted(steps, "step")}`, verbs, passes ? "" : " The automatic filter would leave it out.");
}

export function choiceForm({ item, payload, answer, decide, cap }) {
  const choices = CHOICES[item.kind];
  const chosen = (choice) => same(choice.answer, answer);
  const key = (choice) => h(`button.choice-key.${choice.tone}`, { type: "button", "aria-pressed": chosen(choice) ? "true" : null, onclick: () => decide(choice.answer) }, cap(choice.name), " ", choice.label);
  const reasons = choices.filter(({ tone }) => tone === "reason");
  const element = h("div.choice-form", {},
    procedureView(payload.procedure, { step: payload.change?.step }),
    h("div.decide", {},
      payload.change ? h("div.in-question", {}, h("p.hint", {}, `Step ${payload.change.step}`), changeSentence(payload.change)) : null,
      payload.facts ? facts(payload.facts) : null,
      h("p.actions", {}, choices.filter(({ tone }) => tone !== "reason").map(key)),
      reasons.length ? [h("p.hint", {}, "Wrong for this reason:"), h("p.actions.reasons", {}, reasons.map(key))] : null));
  return { element, actions: choices.map(({ name, label, answer: given }) => ({ name, label, act: () => decide(given) })) };
}
