// Forms in which changes are written: authoring, the audit of what is missing, and the correction of a draft.

import { get, post } from "../api.js";
import { button, counted, h } from "../elements.js";
import { changeEditor } from "./change_editor.js";
import { changeLine, stepText } from "./procedure.js";
import { stateGrid } from "./state_grid.js";
import { contradictions, plainly } from "./states.js";

const MISSING = [
  ["indirect", "an indirect effect"],
  ["dimension", "another attribute of a listed entity"],
  ["rewording", "a listed change in other words"],
  ["wrong", "doubtful: may be wrong"],
];
const WORDS = ["entity", "attribute", "before", "after"];

const wordsOf = (change) => Object.fromEntries(["step", ...WORDS].map((name) => [name, change[name]]));
const isSame = (one, other) => one.step === other.step && WORDS.every((name) => plainly(one[name]) === plainly(other[name]));
const isOfDraft = (change) => change.from !== null && change.from !== undefined;
const draftRows = (payload) => payload.changes.map((change) => ({ ...wordsOf(change), from: change.position, verdict: null }));

/** The draft beside what was written before it was shown. What both say in the same words counts as kept. */
function beside(payload) {
  const { blind } = payload;
  const rows = draftRows(payload).map((row) => (blind.some((change) => isSame(change, row)) ? { ...row, verdict: "kept" } : row));
  const own = blind.filter((change) => !rows.some((row) => isSame(change, row))).map((change) => ({ ...change, from: null }));
  return { isBlind: false, blind, changes: [...own, ...rows] };
}

/** The state of a form that nobody has touched, or whose answer is looked at again. */
function begin({ kind }, payload, answer) {
  const fresh = { changes: [], step: 1, typed: null, editing: null };
  if (kind === "author") return { ...fresh, changes: answer?.changes ?? [] };
  if (kind === "audit") return { ...fresh, changes: answer?.missing ?? [] };
  if (payload.blind_first && !payload.blind) return { ...fresh, isBlind: true }; // the server keeps the draft until then
  if (!answer) return payload.blind ? { ...fresh, ...beside(payload) } : { ...fresh, changes: draftRows(payload) };
  const kept = new Map(answer.changes.map((change) => [change.from, change]));
  const rows = draftRows(payload).map((row) => (kept.has(row.from) ? { ...row, ...kept.get(row.from), verdict: "kept" } : { ...row, verdict: "removed" }));
  return { ...fresh, blind: answer.blind, changes: [...rows, ...answer.changes.filter((change) => change.from === null)] };
}

export function changeForm({ item, payload, answer, draft, keep, decide, cap, refuse, gridFirst }) {
  const { procedure } = payload;
  const fixed = item.kind === "audit" ? payload.changes : [];
  const state = draft ?? begin(item, payload, answer);
  const list = h("ol.steps.writing");
  const prompts = h("div.prompts");
  const done = button("", () => finish(), { kind: "primary" });
  const count = h("p.hint", { role: "status" });
  const live = () => state.changes.filter((change) => change.verdict !== "removed");
  const known = { changes: () => [...fixed, ...live()], offered: payload.offered ?? [], item };
  let editor = null, isEmptyMeant = false, isSaving = false;
  const grid = stateGrid(procedure, ({ step, entity, attribute, change }) => {
    if (state.changes.includes(change)) edit(change);
    else write(step, { entity, attribute });
  });

  /** Go to a step, with words to begin with, and type there. */
  function write(step, words = null) {
    Object.assign(state, { step, typed: words, editing: null });
    draw();
    if (editor) editor.focus();
    else list.children[step - 1].querySelector("button")?.focus();
  }
  function edit(change) {
    Object.assign(state, { step: change.step, typed: { ...change }, editing: state.changes.indexOf(change) });
    draw();
    editor.focus();
  }
  function judge(change, verdict) {
    if (verdict === "kept" && (!change.before || !change.after)) return edit(change); // a draft may lack a state
    change.verdict = verdict;
    const next = state.changes.find((one) => one.verdict === null);
    draw();
    rowOf(next ?? change)?.focus();
    if (!next) done.focus();
    return undefined;
  }
  function remove(change) {
    if (isOfDraft(change)) return judge(change, "removed");
    state.changes.splice(state.changes.indexOf(change), 1);
    return write(change.step);
  }
  function save(change) {
    const own = state.changes[state.editing];
    if (own) Object.assign(own, change, "verdict" in own ? { verdict: "kept" } : {});
    else state.changes.push(item.kind === "correct" && !state.isBlind ? { ...change, from: null } : change);
    const left = state.changes.find((one) => one.verdict === null);
    if (own && left) {
      Object.assign(state, { typed: null, editing: null });
      draw();
      rowOf(left).focus();
    } else write(state.step);
  }
  function onward() {
    if (state.step < procedure.steps.length) write(state.step + 1);
    else done.focus();
  }
  const rowOf = (change) => list.querySelector(`[data-row="${state.changes.indexOf(change)}"]`);

  function row(change) {
    const at = state.changes.indexOf(change);
    const isDraft = isOfDraft(change);
    const named = `${change.entity}, ${change.attribute}: ${change.before} → ${change.after}`;
    const against = change.verdict === "removed" ? [] : contradictions(known.changes(), change, change);
    const tool = (sign, what, act, pressed = null) => button(sign, act, { kind: "tool", title: what, "aria-label": `${what}: ${named}`, "aria-pressed": pressed });
    const type = MISSING.find(([value]) => value === change.type);
    return h(`li.change.written${change.verdict ? `.${change.verdict}` : ""}${at === state.editing ? ".editing" : ""}`, { tabindex: -1, "data-row": at },
      changeLine(change), type ? h("small", {}, ` ${type[1]}`) : null, isDraft ? h("small", {}, " from the draft") : null,
      against.length ? h("span.conflict", { title: against.join("; ") }, " ≠", h("span.unseen", {}, against.join("; "))) : null,
      h("span.tools", {},
        isDraft ? tool("✓", "Keep", () => judge(change, "kept"), String(change.verdict === "kept")) : null,
        tool("✎", "Edit", () => edit(change)),
        isDraft ? tool("✗", "Remove", () => judge(change, "removed"), String(change.verdict === "removed")) : tool("×", "Remove", () => remove(change))));
  }
  function step(number) {
    const own = state.changes.filter((change) => change.step === number);
    const isFull = payload.max_changes && own.length >= payload.max_changes && state.editing === null;
    const isHere = number === state.step;
    const rows = h("ul", {}, fixed.filter((change) => change.step === number).map((change) => h("li.change", {}, changeLine(change))), own.map(row));
    if (isHere) editor = isFull ? null : newEditor(number);
    return h("li.step", { "aria-current": isHere ? "step" : null }, stepText(procedure, number),
      h("div.changes", {}, rows,
        isHere && isFull ? h("p.hint", {}, `A step can have at most ${counted(payload.max_changes, "change")}.`, " ", button("Continue", onward, { kind: "plain" })) : null,
        isHere && !isFull ? editor.element : null,
        isHere ? null : button("+ add a change", () => write(number), { kind: "plain", class: "plain add", "aria-label": `Add a change to step ${number}` })));
  }
  function newEditor(number) {
    const own = state.editing === null ? null : state.changes[state.editing];
    return changeEditor({
      step: number, known, own, words: state.typed ?? {}, label: own ? "Save" : "Add", types: item.kind === "audit" ? MISSING : null, save, skip: onward,
      cancel: own ? () => write(number) : null,
      typed(change) {
        state.typed = WORDS.some((name) => change[name]) ? change : null;
        isEmptyMeant = false;
        keep(state);
        grid.draw(known.changes(), state.typed ? { ...change, own } : null);
      },
    });
  }
  function draw() {
    list.replaceChildren(...procedure.steps.map((_, at) => step(at + 1)));
    const open = state.changes.filter((change) => change.verdict === null).length;
    count.textContent = [counted(live().length, "change"), open ? `${counted(open, "change")} of the draft left to check` : ""].filter(Boolean).join(", ");
    done.replaceChildren(h("kbd", {}, "Ctrl Enter"), state.isBlind ? " Show the draft" : " Done");
    if (!editor) grid.draw(known.changes());
    keep(state);
  }
  /** What a model's draft mentions and no change does. */
  async function recall() {
    const { prompts: found } = await get("/annotation/recall", { item: item.id });
    if (!found.length) return;
    prompts.replaceChildren(h("p.hint", {}, "No change mentions the following yet. If one of them changes, press it:"), h("p.actions", {}, found.map(({ entity, attribute, step: at }) =>
      button(attribute ? `${attribute} of ${entity}` : entity, () => write(at ?? state.step, { entity, attribute: attribute ?? "" }), { kind: "chip" }))));
  }
  /** The blind pass is over: save it, and get the draft. */
  async function reveal(changes) {
    if (isSaving) return;
    isSaving = true;
    try {
      Object.assign(payload, (await post(`/annotation/items/${item.id}/blind`, { changes })).item.payload);
    } catch ({ what, fix }) {
      refuse(what, fix); // it all stays in the form
      return;
    } finally {
      isSaving = false;
    }
    Object.assign(state, beside(payload), { typed: null, editing: null });
    coach.remove();
    recall().catch(() => {}); // prompts help, but nothing depends on them
    draw();
    const open = state.changes.find((change) => change.verdict === null);
    (open ? rowOf(open) : done).focus();
  }
  function finish() {
    if (state.typed && editor) {
      if (!editor.isWhole()) {
        editor.focus();
        return refuse(`the change at step ${state.step} is not finished`, "finish it, or clear its boxes");
      }
      save(editor.now());
    }
    const bare = state.changes.filter((change) => change.verdict !== "removed").map(({ verdict, ...change }) => change);
    const open = state.changes.find((change) => change.verdict === null);
    if (open) {
      rowOf(open).focus();
      return refuse("some changes of the draft are not checked yet", "keep, edit or remove each of them");
    }
    if (item.kind !== "audit" && !bare.length && !isEmptyMeant) {
      isEmptyMeant = true;
      return refuse("there are no changes", `if nothing changes in these steps, press ${state.isBlind ? "Show the draft" : "Done"} again`);
    }
    if (state.isBlind) return reveal(bare);
    if (item.kind === "author") return decide({ changes: bare });
    if (item.kind === "audit") return decide({ missing: bare });
    return decide({ changes: bare, blind: state.blind ?? null });
  }

  const coach = h("p.coach", {}, "Before you see the draft, write the changes that you find yourself. Then press Show the draft.");
  const hint = h("p.hint", {}, h("kbd", {}, "Enter"), " goes to the next box; in the last box, it adds the change. If all boxes are empty, it goes to the next step. ", h("kbd", {}, "↓"), " offers names that were used before.");
  const element = h(`div.change-form${gridFirst ? ".grid-first" : ""}`, {},
    h("section.procedure", {}, h("h2", {}, h("bdi", {}, procedure.goal || "(no goal given)")),
      payload.modality === "with_image" ? h("p.hint", {}, "Also look at the pictures of the steps.") : null,
      state.isBlind ? coach : null, hint, list, prompts, h("div.decide", {}, h("p.actions", {}, done, count))),
    grid.element);
  draw();
  if (item.kind === "audit" || state.blind || answer) recall().catch(() => {});

  const stops = () => [...list.querySelectorAll(".written, button.add")];
  const move = (by) => {
    const all = stops(), at = all.indexOf(document.activeElement);
    all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)]?.focus();
  };
  /** Do something with the row that has the focus. */
  const here = (act) => () => {
    const change = state.changes[document.activeElement?.dataset?.row];
    if (change) act(change);
  };
  const judged = (verdict) => here((change) => isOfDraft(change) && judge(change, verdict));
  return {
    element,
    focus() {
      const open = item.kind === "correct" && state.changes.find((change) => change.verdict === null);
      if (open) rowOf(open).focus();
      else editor?.focus();
    },
    finish,
    actions: [
      { name: "up", label: "Change above", act: () => move(-1) },
      { name: "down", label: "Change below", act: () => move(1) },
      ...(item.kind === "correct" ? [{ name: "yes", label: "Keep this change", act: judged("kept") }, { name: "no", label: "Remove this change", act: judged("removed") }] : []),
      { name: "edit", label: "Edit this change", act: here(edit) },
      { name: "remove", label: "Remove this change", act: here(remove) },
      { name: "add", label: "Write a change", act: () => editor?.focus() },
      { name: "done", label: "Done", act: finish },
    ],
  };
}
