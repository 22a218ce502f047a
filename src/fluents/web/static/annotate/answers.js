// An answer in words, for those who compare answers or look back at them.

import { counted, h } from "../elements.js";
import { changeLine } from "./procedure.js";

const REASONS = { obscure: "obscure", "other-step": "belongs to another step", mismatch: "the attribute does not fit the states", reader: "about the reader", factual: "not true" };
const TYPES = { indirect: "an indirect effect", dimension: "another attribute of a listed entity", rewording: "a listed change in other words", wrong: "doubtful" };
const said = (is, yes, no) => h("b", {}, is ? yes : no);
const changes = (all) => (all.length ? h("ul", {}, all.map((change) => h("li", {}, h("small", {}, `step ${change.step}: `), changeLine(change), change.type ? h("small", {}, ` (${TYPES[change.type] ?? change.type})`) : null))) : h("span.nothing", {}, "no changes"));
const groups = (all) => h("ul", {}, all.map((group) => h("li", {}, group.join(" = "))));

const WORDS = {
  select: ({ keep }) => said(keep, "keep", "leave out"),
  author: ({ changes: all }) => changes(all),
  audit: ({ missing }) => changes(missing),
  vet: ({ valid, reason }) => [said(valid, "right", "wrong"), reason ? `, ${REASONS[reason] ?? reason}` : ""],
  "clean-procedures": ({ procedure }) => said(procedure, "a procedure", "not a procedure"),
  "clean-steps": ({ valid }) => h("span", {}, valid.every(Boolean) ? "all are steps" : `not steps: ${valid.flatMap((is, at) => (is ? [] : [at + 1])).join(", ")}`),
  "clean-changes": ({ verdict }) => h("b", {}, verdict),
  entities: ({ clusters }) => groups(clusters),
  attributes: ({ clusters }) => groups(clusters),
  expansions: ({ accepted }) => h("span", {}, accepted.length ? accepted.join(", ") : "none"),
  salience: ({ scores }) => h("ul", {}, Object.entries(scores).map(([name, score]) => h("li", {}, h("bdi", {}, name), ": ", h("b", {}, String(score))))),
  judge: ({ verdicts, missing }, payload) => h("ul", {}, verdicts.map((verdict, at) => h("li", {}, h("b", {}, verdict), payload ? ` ${payload.pairs[at].attribute} of ${payload.pairs[at].entity}` : "")),
    missing.map(({ entity, attribute }) => h("li", {}, h("b", {}, "missing"), ` ${attribute} of ${entity}`))),
  hallucinations: ({ hallucinated }) => said(hallucinated, "made up", "supported"),
  correct: ({ changes: all, blind }) => [changes(all), blind ? h("small", {}, `${counted(blind.length, "change")} written before seeing the draft`) : null],
};

export const answerView = (kind, answer, payload = null) => h("div.answer-view", {}, WORDS[kind](answer, payload));
