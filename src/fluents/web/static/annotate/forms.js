// The form of each kind of item, and the question it asks.

import { choiceForm } from "./choice_forms.js";
import { changeForm } from "./change_forms.js";
import { clusterForm } from "./cluster_form.js";
import { rowForm } from "./row_forms.js";

/** Kind → form, its name in lists, the question, and what helps to answer it. */
const KINDS = {
  select: [choiceForm, "Selection", () => "Is this text worth annotating?", "Things should change in it, step by step, in a way that others can see."],
  author: [changeForm, "Authoring", () => "What changes at each step?", ""],
  audit: [changeForm, "Audit of coverage", () => "What is missing?", "Add each change that nobody wrote, and say what kind it is of."],
  vet: [choiceForm, "Vetting", () => "Is this change right?", "It is right if it happens at this step, and somebody who does the step would say so."],
  "clean-procedures": [choiceForm, "Cleaning: procedures", () => "Is this a procedure?", "In a procedure, the steps are done one after another and lead to the goal. Advice or a list of ideas is none."],
  "clean-steps": [rowForm, "Cleaning: steps", () => "Which of these are steps?", "A step says what to do, and fits where it stands. Titles, reasons and remarks are not steps."],
  "clean-changes": [choiceForm, "Cleaning: changes", ({ change }) => `Does this change happen at step ${change.step}?`, "It is certain if the text leaves no other way, uncertain if it may happen or not, impossible if it cannot."],
  entities: [clusterForm, "Names of entities", () => "Which names mean the same thing?", ""],
  attributes: [clusterForm, "Names of attributes", ({ entity }) => `Which attributes of ${entity} are the same?`, ""],
  expansions: [rowForm, "Expansions", ({ cluster }) => `Which of these are other names for ${cluster[0]}?`, "Accept a name if the text would say the same with it."],
  salience: [rowForm, "Salience", ({ scope, step }) => (scope === "local" ? `How much does each thing matter at step ${step}?` : "How much does each thing matter for the goal?"), ""],
  judge: [rowForm, "Judging systems", ({ step }) => `Do these change at step ${step}?`, "Some of the pairs come from people, some from systems; nothing here says which."],
  hallucinations: [choiceForm, "Hallucinations", () => "Is this change made up?", "It is made up if neither the text nor common sense supports it."],
  correct: [changeForm, "Correction", () => "What changes at each step?", ""],
};

/** Kinds in which people write changes. The others take seconds: the next item is fetched ahead. */
export const WRITTEN = ["author", "audit", "correct"];

export const kindName = (kind) => KINDS[kind]?.[1] ?? kind;
export const question = ({ kind, payload }) => KINDS[kind][2](payload);
export const advice = ({ kind }) => KINDS[kind][3];
export const isQuick = ({ kind }) => !WRITTEN.includes(kind);
export const formOf = (desk) => KINDS[desk.item.kind][0](desk);
