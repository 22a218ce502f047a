// The form of each kind of item, and the question it asks.

import { choiceForm } from "./choice_forms.js";
import { changeForm } from "./change_forms.js";
import { clusterForm } from "./cluster_form.js";
import { rowForm } from "./row_forms.js";

/** Kind → form, its name in lists, the question, and what helps to answer it. */
const KINDS = {
  select: [choiceForm, "Selection", () => "Is this text worth annotating?", "Keep a text if things change visibly from step to step."],
  author: [changeForm, "Authoring", () => "What changes at each step?", "Write each change of a thing (an entity), for example: temperature of water was cold before and boiling afterwards."],
  audit: [changeForm, "Missing changes", () => "Which changes are missing?", "Add each change that is not listed yet, and choose its type."],
  vet: [choiceForm, "Vetting", () => "Is this change right?", "A change is right if it happens at this step, and a person who does the step would describe it this way."],
  "clean-procedures": [choiceForm, "Cleaning: procedures", () => "Is this a procedure?", "In a procedure, the steps are done one after another and lead to the goal. Advice or a list of ideas is not a procedure."],
  "clean-steps": [rowForm, "Cleaning: steps", () => "Which of these are steps?", "A step says what to do, and fits its place in the procedure. Titles, reasons and remarks are not steps."],
  "clean-changes": [choiceForm, "Cleaning: changes", ({ change }) => `Does this change happen at step ${change.step}?`, "Certain: it must happen. Uncertain: it may or may not happen. Impossible: it cannot happen."],
  entities: [clusterForm, "Names of entities", () => "Which names mean the same thing?", "Put names that mean the same thing into one group."],
  attributes: [clusterForm, "Names of attributes", ({ entity }) => `Which names mean the same attribute of ${entity}?`, "Put names that mean the same attribute into one group."],
  expansions: [rowForm, "Paraphrases", ({ cluster }) => `Which of these are other names for ${cluster[0]}?`, "Accept a name if the text would mean the same with it."],
  salience: [rowForm, "Salience", ({ scope, step }) => (scope === "local" ? `How much does each thing matter at step ${step}?` : "How much does each thing matter for the goal?"), "Give each thing a score from 0 to 5."],
  judge: [rowForm, "Judging systems", ({ step }) => `Which of these change at step ${step}?`, "Each row names an attribute and an entity. People wrote some of the rows, and programs wrote others. You are not told which."],
  hallucinations: [choiceForm, "Hallucinations", () => "Is this change made up?", "It is made up if neither the text nor common sense supports it."],
  correct: [changeForm, "Correction", () => "What changes at each step?", "A draft is a list of changes that may be wrong or incomplete. Keep, edit or remove each change of the draft, and add the changes that are missing."],
};

/** Kinds in which people write changes. The others take seconds: the next item is fetched ahead. */
export const WRITTEN = ["author", "audit", "correct"];

export const kindName = (kind) => KINDS[kind]?.[1] ?? kind;
export const question = ({ kind, payload }) => KINDS[kind][2](payload);
export const advice = ({ kind }) => KINDS[kind][3];
export const isQuick = ({ kind }) => !WRITTEN.includes(kind);
export const formOf = (desk) => KINDS[desk.item.kind][0](desk);
