// A change, written as a sentence: "ATTRIBUTE of ENTITY was BEFORE before and AFTER afterwards". Names and values that
// were used before are offered while one types; Enter takes what is typed, so that a new name is as easy as an old one.

import { get } from "../api.js";
import { button, h } from "../elements.js";
import { before, contradictions, plainly } from "./states.js";

const FIELDS = ["attribute", "entity", "before", "after"];
const MOST = 8;
const WAIT = 150;
/** The files of OpenPI2.0 put this sign between wordings. */
export const NO_BAR = "[^\\|]*";

/** The editor of one step. `known` has what was written so far: `{changes(), offered, procedure, item}`; `typed` is
 * told of every keystroke; `save` gets a whole change; `skip` is called for Enter in an empty editor. */
export function changeEditor({ step, known, words, own = null, label, typed, save, skip, cancel, types = null }) {
  const boxes = {};
  let isFilledIn = false; // whether the state before is ours and may be changed with the names
  const notes = h("p.notes", { role: "status" });
  const type = types ? h("select", { "aria-label": "Type of the missing change", onchange: told }, types.map(([value, text]) => h("option", { value, selected: value === words.type }, text))) : null;

  function now() {
    const values = Object.fromEntries(FIELDS.map((name) => [name, boxes[name].value.trim()]));
    return type ? { step, ...values, type: type.value } : { step, ...values };
  }
  function told() {
    const change = now();
    const last = change.entity && change.attribute ? before(known.changes(), change) : null;
    if (last && (isFilledIn || !change.before)) {
      boxes.before.value = change.before = last.after;
      isFilledIn = true;
    } else if (isFilledIn && !last) {
      boxes.before.value = change.before = "";
      isFilledIn = false;
    }
    boxes.before.classList.toggle("filled-in", isFilledIn);
    const found = contradictions(known.changes(), change, own);
    notes.replaceChildren(...(found.length ? [h("span.conflict", {}, "≠ ", found.join("; "))] : isFilledIn ? [`The state before this step is filled in: it is the state after step ${last.step}.`] : []));
    typed(change);
  }
  function submit() {
    const change = now();
    if (FIELDS.every((name) => !change[name])) return skip();
    const open = FIELDS.find((name) => !change[name]);
    if (!form.reportValidity()) return undefined;
    if (open || plainly(change.before) === plainly(change.after)) return boxes[open ?? "after"].focus(); // the notes say so
    return save(change);
  }
  function box(name, title) {
    const input = h("input", { name, "aria-label": title, placeholder: name, maxlength: 300, pattern: NO_BAR, title: "Any text without the character |", value: words[name] ?? "", autocomplete: "off", spellcheck: "true" });
    boxes[name] = input;
    input.addEventListener("input", () => {
      if (name === "before") isFilledIn = false;
      told();
    });
    const onward = () => {
      const next = FIELDS[FIELDS.indexOf(name) + 1];
      if (next && FIELDS.some((one) => boxes[one].value.trim())) boxes[next].focus();
      else submit();
    };
    return typeAhead(input, { offers: (text) => offers(name, text, known, now()), asked: (text) => ask(name, text, known), taken: told, onward });
  }
  const form = h("form.sentence", { "aria-label": `Change at step ${step}` },
    box("attribute", "Attribute"), h("span", {}, "of"), box("entity", "Entity"), h("span", {}, "was"), box("before", "State before"), h("span", {}, "before and"), box("after", "State after"), h("span", {}, "afterwards"),
    type, h("button", { type: "submit" }, label), cancel ? button("Cancel", cancel, { kind: "plain" }) : null, notes);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  for (const input of Object.values(boxes)) input.addEventListener("focus", () => input.select());
  const last = words.entity && words.attribute ? before(known.changes(), { ...words, step }) : null;
  isFilledIn = !own && last !== null && words.before === last.after;
  told();
  return {
    element: form,
    focus: () => (boxes[FIELDS.find((name) => !boxes[name].value)] ?? boxes.after).focus(),
    now,
    isWhole: () => form.checkValidity() && FIELDS.every((name) => now()[name]) && plainly(now().before) !== plainly(now().after),
  };
}

/** What was written before and begins so, then what contains it: the names of this item, then those offered. */
function offers(name, text, known, change) {
  const changes = known.changes().toReversed();
  const used = name === "before" || name === "after"
    ? changes.filter((one) => plainly(one.attribute) === plainly(change.attribute)).flatMap((one) => [one.after, one.before])
    : [...(name === "attribute" && change.entity ? changes.filter((one) => plainly(one.entity) === plainly(change.entity)) : []), ...changes].map((one) => one[name]);
  const all = [...used, ...(name === "attribute" ? known.offered : [])].filter(Boolean);
  return matching(all, text).map((found) => ({ text: found }));
}

function matching(all, text) {
  const wanted = plainly(text), seen = new Map(all.map((one) => [plainly(one), one]).reverse());
  const found = [...new Set(all.map(plainly))].filter((one) => one.includes(wanted) && one !== wanted);
  return found.sort((a, b) => Number(b.startsWith(wanted)) - Number(a.startsWith(wanted))).map((one) => seen.get(one));
}

/** What the server knows: names of this project that one may see, and whether one is the same as another. */
async function ask(name, text, known) {
  const kind = name === "entity" || name === "attribute" ? name : "value";
  const query = new URLSearchParams({ kind, q: text, item: known.item.id });
  const unsent = kind === "value" ? [] : new Set(known.changes().map((change) => change[name]));
  [...unsent].slice(0, 100).forEach((one) => query.append("known", one));
  const found = await get(`/annotation/suggest?${query}`);
  return found.map((one) => ({ text: one.same_as ?? one.text, same: one.same_as ? one.text : null }));
}

let lists = 0;

/** Offers under a text box. Arrows choose one and Enter takes it; Enter alone takes what is typed. */
function typeAhead(input, { offers: near, asked, taken, onward }) {
  const id = `offers-${(lists += 1)}`;
  const list = h("ul.offers", { id, role: "listbox", "aria-label": `${input.getAttribute("aria-label")}: suggestions`, hidden: true });
  let found = [], chosen = -1, timer, turn = 0;
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": id, "aria-expanded": "false" })) input.setAttribute(name, value);

  function show(all) {
    const seen = new Set();
    found = all.filter(({ text }) => !seen.has(plainly(text)) && seen.add(plainly(text))).slice(0, MOST);
    chosen = -1;
    list.replaceChildren(...found.map(({ text, same }, at) => h("li", { role: "option", id: `${id}-${at}`, "aria-selected": "false", onmousedown: (event) => {
      event.preventDefault();
      take(at);
    } }, same ? [h("span.same", {}, "the same as "), h("b", {}, h("bdi", {}, text)), "?"] : h("bdi", {}, text))));
    open(found.length > 0 && document.activeElement === input);
  }
  function open(is) {
    list.hidden = !is;
    input.setAttribute("aria-expanded", String(is));
    if (!is) input.removeAttribute("aria-activedescendant");
  }
  function look() {
    const mine = ++turn, text = input.value.trim();
    const local = near(text);
    show(local);
    clearTimeout(timer);
    if (!text) return;
    timer = setTimeout(async () => {
      try {
        const more = await asked(text);
        if (mine !== turn) return;
        const same = more.filter((one) => one.same), rest = more.filter((one) => !one.same && plainly(one.text) !== plainly(text));
        show([...same, ...local, ...rest]);
      } catch {
        // no connection: what this page knows is offered
      }
    }, WAIT);
  }
  function choose(at) {
    if (list.hidden) return;
    chosen = (at + found.length + 1) % (found.length + 1);
    [...list.children].forEach((one, index) => one.setAttribute("aria-selected", String(index === chosen)));
    if (chosen < found.length) input.setAttribute("aria-activedescendant", `${id}-${chosen}`);
    else input.removeAttribute("aria-activedescendant");
  }
  function take(at) {
    turn += 1;
    input.value = found[at].text;
    open(false);
    taken();
    onward();
  }
  input.addEventListener("input", look);
  input.addEventListener("blur", () => {
    turn += 1;
    clearTimeout(timer);
    open(false);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") list.hidden ? look() : choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen < 0 ? found.length - 1 : chosen - 1);
    else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      if (!list.hidden && chosen >= 0 && chosen < found.length) take(chosen);
      else onward();
    } else if (event.key === "Escape" && !list.hidden) {
      open(false);
      event.stopPropagation();
    } else return;
    event.preventDefault();
  });
  return h("span.type-ahead", {}, input, list);
}
