// Forms with one answer a row: steps, expansions, saliences, pairs. A key answers a row and goes on to the next.

import { button, counted, h } from "../elements.js";
import { NO_BAR } from "./change_editor.js";
import { DIGITS } from "./keyboard.js";
import { procedureView, stepText } from "./procedure.js";

/** What the scores mean, from 0. */
const CRITERIA = (done) => [
  `It does not matter at all`,
  `It is mentioned, but nothing would be different without it`,
  `Without it, ${done}, and hardly anybody would notice the difference`,
  `Without it, ${done}, with a little more effort or a slightly worse result`,
  `Something of this kind is needed, but another one would do, perhaps not as well`,
  `Without exactly this thing, it is impossible`,
];

const YES_NO = (yes, no) => [{ name: "yes", value: true, label: yes }, { name: "no", value: false, label: no }];

/** How the rows of each kind look: what they are, the values a row can take, and the answer made of them. */
const ROWS = {
  "clean-steps": ({ procedure }) => ({
    rows: procedure.steps.map((_, at) => ({ label: `Step ${at + 1}`, element: () => stepText(procedure, at + 1) })),
    values: YES_NO("A step", "Not a step"),
    answer: (values) => ({ valid: values }),
    values_of: (answer) => answer.valid,
    isProcedure: true,
  }),
  expansions: ({ expansions }) => ({
    rows: expansions.map((name) => ({ label: name, element: () => h("bdi.name", {}, name) })),
    values: YES_NO("Accept", "Refuse"),
    answer: (values) => ({ accepted: expansions.filter((_, at) => values[at]) }),
    values_of: ({ accepted }) => expansions.map((name) => accepted.includes(name)),
  }),
  salience: ({ entities, scope }) => {
    const criteria = CRITERIA(scope === "local" ? "the step would work" : "the goal would be reached");
    return {
      rows: entities.map((name) => ({ label: name, element: () => h("bdi.name", {}, name) })),
      values: criteria.map((about, value) => ({ name: DIGITS[value], value, label: String(value), about })),
      answer: (values) => ({ scores: Object.fromEntries(entities.map((name, at) => [name, values[at]])) }),
      values_of: ({ scores }) => entities.map((name) => (Object.hasOwn(scores, name) ? scores[name] : null)),
      criteria,
    };
  },
  judge: ({ pairs }) => ({
    rows: pairs.map(({ entity, attribute }) => ({ label: `${attribute} of ${entity}`, element: () => h("span", {}, h("b", {}, attribute), " of ", h("b", {}, entity)) })),
    values: [
      { name: "one", value: "right", label: "Right" },
      { name: "two", value: "no change", label: "No change", about: "it could change, but does not at this step" },
      { name: "three", value: "nonsense", label: "Nonsense" },
    ],
    answer: (values, missing) => ({ verdicts: values, missing }),
    values_of: ({ verdicts }) => verdicts,
    missing: true,
  }),
};

export function rowForm({ item, payload, answer, draft, keep, decide, cap, refuse }) {
  const { rows, values, criteria, ...kind } = ROWS[item.kind](payload);
  const given = answer ? kind.values_of(answer) : rows.map(() => null);
  const state = draft?.values?.length === rows.length ? draft : { values: given, missing: answer?.missing ?? [], at: 0, typed: {} };
  const list = h("ol.rows", { "aria-label": "Rows to answer" });
  const count = h("p.hint", { role: "status" });

  function draw() {
    list.replaceChildren(...rows.map((row, at) => {
      const choices = values.map(({ name, value, label, about }) =>
        h("button.value-key", { type: "button", title: about ?? null, tabindex: at === state.at ? null : -1, "aria-pressed": String(state.values[at] === value), "aria-label": `${row.label}: ${about ? `${label}, ${about}` : label}`, onclick: () => set(at, value) },
          at === state.at && name !== DIGITS[label] ? [cap(name), " "] : null, label));
      return h("li.row", { tabindex: at === state.at ? 0 : -1, "aria-current": at === state.at ? "true" : null, "aria-label": row.label, onclick: (event) => event.target.closest("button") || move(at) },
        h("div.row-text", {}, row.element()), h("span.values", { role: "group", "aria-label": row.label }, choices));
    }));
    const left = state.values.filter((value) => value === null).length;
    count.textContent = left ? `${left} of ${rows.length} rows left` : "All rows have an answer.";
    keep(state);
  }
  function move(at) {
    state.at = Math.min(Math.max(at, 0), rows.length - 1);
    draw();
    list.children[state.at]?.focus();
    list.children[state.at]?.scrollIntoView({ block: "nearest" });
  }
  function set(at, value) {
    state.values[at] = value;
    move(at + 1);
  }
  function finish() {
    const open = state.values.findIndex((value) => value === null);
    if (open >= 0) {
      move(open);
      refuse(`${counted(state.values.filter((value) => value === null).length, "row")} without an answer`, "answer every row");
      return;
    }
    decide(kind.answer(state.values, state.missing));
  }

  const done = button("Done", finish, { kind: "primary" });
  done.prepend(cap("done"), " ");
  const missing = kind.missing ? missingPairs(state, keep) : null;
  const { goal } = payload.procedure;
  const element = h("div.row-form", {},
    kind.isProcedure ? h("div.procedure", {}, h("h2", {}, h("bdi", {}, goal))) : procedureView(payload.procedure, { step: payload.step }),
    h("div.decide", {},
      payload.cluster ? h("p.in-question", {}, "Names so far: ", h("b", {}, payload.cluster.join(", ")), payload.level === "attributes" ? ` of ${payload.entity}` : "") : null,
      criteria ? h("dl.criteria", { "aria-label": "What the scores mean" }, criteria.map((about, score) => [h("dt", {}, String(score)), h("dd", {}, about)]).reverse()) : null,
      list, missing?.element, h("p.actions", {}, done, count)));
  draw();
  return {
    element,
    focus: () => list.children[state.at]?.focus(),
    finish,
    actions: [
      ...values.map(({ name, value, label, about }) => ({ name, label: about ? `${label}: ${about}` : label, act: () => set(state.at, value) })),
      { name: "up", label: "Row above", act: () => move(state.at - 1) },
      { name: "down", label: "Row below", act: () => move(state.at + 1) },
      ...(missing ? [{ name: "add", label: "Add a missing row", act: missing.focus }] : []),
      { name: "done", label: "Done", act: finish },
    ],
  };
}

/** Pairs that nobody listed although they change. */
function missingPairs(state, keep) {
  const list = h("ul.missing");
  const box = (name, label) => h("input", { name, "aria-label": label, placeholder: label.toLowerCase(), maxlength: 300, pattern: NO_BAR, title: "Any text without the character |", value: state.typed[name] ?? "", autocomplete: "off", oninput: (event) => {
    state.typed[name] = event.target.value;
    keep(state);
  } });
  const attribute = box("attribute", "Attribute"), entity = box("entity", "Entity");
  const draw = () => {
    list.replaceChildren(...state.missing.map((pair, at) => h("li", {}, h("b", {}, pair.attribute), " of ", h("b", {}, pair.entity), " ",
      button("×", () => {
        state.missing.splice(at, 1);
        draw();
      }, { kind: "tool", "aria-label": `Remove: ${pair.attribute} of ${pair.entity}` }))));
    keep(state);
  };
  const form = h("form.pair-form", { onsubmit: (event) => {
    event.preventDefault();
    const [ofWhat, what] = [entity.value.trim(), attribute.value.trim()];
    if (!what || !ofWhat) return (what ? entity : attribute).focus();
    state.missing.push({ entity: ofWhat, attribute: what });
    state.typed = {};
    attribute.value = entity.value = "";
    draw();
    attribute.focus();
    return undefined;
  } }, attribute, " of ", entity, " ", h("button", { type: "submit" }, "Add"));
  draw();
  return { element: h("section.missing-pairs", {}, h("h3", {}, "Missing"), h("p.hint", {}, "Does anything else change at this step? Add its attribute and entity."), list, form), focus: () => attribute.focus() };
}
