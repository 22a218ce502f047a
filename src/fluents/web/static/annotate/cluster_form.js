// Names that mean the same, in groups: by dragging, or by keys.

import { button, h } from "../elements.js";
import { DIGITS } from "./keyboard.js";
import { procedureView } from "./procedure.js";

export function clusterForm({ item, payload, answer, draft, keep, decide, cap }) {
  const steps = new Map(payload.names.map(({ name, steps: at }) => [name, at]));
  const valid = (groups) => groups?.flat().length === steps.size && groups.flat().every((name) => steps.has(name));
  const first = [draft?.groups, answer?.clusters, payload.suggestion].find(valid) ?? [...steps.keys()].map((name) => [name]);
  const state = { groups: first.map((group) => [...group]), focused: draft?.focused ?? first[0]?.[0] };
  const board = h("ol.groups", { "aria-label": "Groups of names" });
  const told = h("p.hint", { role: "status" });

  const placeOf = (name) => state.groups.findIndex((group) => group.includes(name));
  const names = () => state.groups.flat();

  /** Put a name into a group; `to` is its number from 0, or null for a group of its own. */
  function put(name, to) {
    const from = placeOf(name);
    if (from < 0) return; // something else was dropped here
    if (to === from || (to === null && state.groups[from].length === 1)) return;
    state.groups[from] = state.groups[from].filter((one) => one !== name);
    if (to === null) state.groups.splice(from + 1, 0, [name]);
    else state.groups[to].push(name);
    state.groups = state.groups.filter((group) => group.length);
    const now = state.groups[placeOf(name)];
    told.textContent = now.length > 1 ? `${name} is now grouped with ${now.filter((one) => one !== name).join(", ")}` : `${name} now has a group of its own`;
    focus(name);
  }
  function focus(name) {
    state.focused = name;
    draw();
    board.querySelector("[tabindex='0']")?.focus();
  }
  const step = (by) => focus(names()[Math.min(Math.max(names().indexOf(state.focused) + by, 0), names().length - 1)]);
  /** Up and down take the name along, into the next group. */
  const carry = (by) => {
    const to = placeOf(state.focused) + by;
    if (to >= 0 && to < state.groups.length) put(state.focused, to);
  };

  function draw() {
    board.replaceChildren(...state.groups.map((group, at) => {
      const place = h("li.group-of-names", { "aria-label": `Group ${at + 1}` },
        h("span.number", {}, at < 9 ? cap(DIGITS[at + 1]) : String(at + 1)),
        h("ul", {}, group.map((name) => h("li", {}, chip(name)))));
      place.addEventListener("dragover", (event) => {
        event.preventDefault();
        place.classList.add("over");
      });
      place.addEventListener("dragleave", () => place.classList.remove("over"));
      place.addEventListener("drop", (event) => {
        event.preventDefault();
        event.stopPropagation();
        put(event.dataTransfer.getData("text/plain"), at);
      });
      return place;
    }));
    keep(state);
  }
  function chip(name) {
    const where = steps.get(name);
    const made = h("button.chip", { type: "button", draggable: "true", "data-keys": "page", tabindex: name === state.focused ? 0 : -1, "aria-label": `${name}, group ${placeOf(name) + 1}`, onclick: () => focus(name) },
      h("bdi", {}, name), where?.length ? h("small", {}, ` ${where.join(", ")}`) : null);
    made.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", name));
    return made;
  }

  const alone = h("div.alone", {}, cap("zero"), " Drop a name here to give it a group of its own");
  alone.addEventListener("dragover", (event) => event.preventDefault());
  alone.addEventListener("drop", (event) => {
    event.preventDefault();
    put(event.dataTransfer.getData("text/plain"), null);
  });
  const finish = () => decide({ clusters: state.groups });
  const done = button("Done", finish, { kind: "primary" });
  done.prepend(cap("done"), " ");
  const element = h("div.cluster-form", {},
    procedureView(payload.procedure),
    h("div.decide", {},
      h("p.hint", {}, item.kind === "attributes" ? ["Attributes of ", h("b", {}, payload.entity), ". "] : "", cap("left"), cap("right"), " choose a name. ", cap("up"), cap("down"), " move it to the group above or below. A digit moves it to the group with that number, and ", cap("zero"), " to a group of its own. The small numbers are the steps in which a name occurs."),
      board, alone, h("p.actions", {}, done, told)));
  draw();
  return {
    element,
    focus: () => board.querySelector("[tabindex='0']")?.focus(),
    finish,
    actions: [
      { name: "left", label: "Previous name", act: () => step(-1) },
      { name: "right", label: "Next name", act: () => step(1) },
      { name: "up", label: "Move the name to the group above", act: () => carry(-1) },
      { name: "down", label: "Move the name to the group below", act: () => carry(1) },
      ...DIGITS.slice(1).map((name, at) => ({ name, label: `Move the name to group ${at + 1}`, act: () => at < state.groups.length && put(state.focused, at) })),
      { name: "zero", label: "Move the name to a group of its own", act: () => put(state.focused, null) },
      { name: "done", label: "Done", act: finish },
    ],
  };
}
