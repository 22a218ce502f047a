// One decision, one key. What a key does has a name; a member can give the name another key.

import { button, h } from "../elements.js";

/** Name → usual key, and what it is for. */
const USUAL = {
  yes: ["y", "yes"],
  no: ["n", "no"],
  zero: ["0", "score 0, or a group of its own"],
  one: ["1", "first answer, score 1 or group 1"],
  two: ["2", "second answer, score 2 or group 2"],
  three: ["3", "third answer, score 3 or group 3"],
  four: ["4", "fourth answer, score 4 or group 4"],
  five: ["5", "fifth answer, score 5 or group 5"],
  six: ["6", "sixth answer, or group 6"],
  seven: ["7", "seventh answer, or group 7"],
  eight: ["8", "eighth answer, or group 8"],
  nine: ["9", "ninth answer, or group 9"],
  up: ["ArrowUp", "up"],
  down: ["ArrowDown", "down"],
  left: ["ArrowLeft", "left"],
  right: ["ArrowRight", "right"],
  done: ["Enter", "finish the answer"],
  add: ["a", "add something"],
  edit: ["e", "edit a change, or give another answer"],
  remove: ["Delete", "remove a change"],
  undo: ["z", "undo the last answer"],
  skip: ["s", "skip the question"],
  help: ["?", "show the keys"],
};
export const DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
const SIGNS = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", " ": "Space", Delete: "Del" };
/** Keys that the browser and the page need for themselves. */
const TAKEN = ["Tab", "Escape", "Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock"];

const plain = (key) => (key.length === 1 ? key.toLowerCase() : key);
const sign = (key) => SIGNS[key] ?? key;

export class Keyboard {
  #keys;

  constructor(own = {}) {
    this.use(own);
  }

  use(own) {
    this.#keys = Object.fromEntries(Object.entries(USUAL).map(([name, [key]]) => [name, own[name] ?? key]));
  }

  /** The name of what a pressed key does, or undefined. */
  action(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
    return Object.keys(this.#keys).find((name) => this.#keys[name] === plain(event.key));
  }

  cap(name) {
    return h("kbd", { "data-action": name }, sign(this.#keys[name]));
  }

  /** What was changed from the usual. */
  own() {
    return Object.fromEntries(Object.entries(this.#keys).filter(([name, key]) => key !== USUAL[name][0]));
  }

  /** The keys, what they do here, and a way to change them. `save` gets what was changed. */
  showHelp(actions, save) {
    const here = new Map(actions.map(({ name, label }) => [name, label]));
    const said = h("p.hint", { role: "status" }, "To change a key, select it here and then press the new key.");
    const list = h("ul.key-list"), others = h("ul.key-list");
    const changed = async (words) => {
      said.textContent = words;
      draw();
      try {
        await save(this.own());
      } catch (error) {
        said.textContent = `${words} This could not be saved, so it is lost when you leave this page: ${error.message}.`;
      }
    };
    const draw = (focused = null) => {
      list.replaceChildren(...[...here].map(([name, label]) => row(name, label)));
      others.replaceChildren(...Object.keys(USUAL).filter((name) => !here.has(name)).map((name) => row(name, USUAL[name][1])));
      dialog.querySelector(`button[data-action="${focused}"]`)?.focus();
    };
    const row = (name, label) => {
      const choose = button(sign(this.#keys[name]), () => take(name, label, choose), { kind: "key", "data-action": name, "aria-label": `${label}: ${sign(this.#keys[name])}, change` });
      return h("li", {}, choose, h("span", {}, label));
    };
    const take = (name, label, choose) => {
      said.textContent = `Press the new key for “${label}”. Escape cancels.`;
      choose.textContent = "…";
      choose.addEventListener("keydown", async (event) => {
        if (event.key === "Tab") return;
        event.preventDefault();
        event.stopPropagation();
        const key = plain(event.key);
        if (["Shift", "Control", "Alt", "AltGraph", "Meta"].includes(key)) return;
        const other = Object.keys(this.#keys).find((one) => this.#keys[one] === key && one !== name);
        if (key === "Escape") said.textContent = "Nothing was changed.";
        else if (TAKEN.includes(key)) said.textContent = `${key} cannot be used. Choose another key.`;
        else if (other) said.textContent = `${sign(key)} is already used for “${here.get(other) ?? USUAL[other][1]}”. Choose another key.`;
        else {
          this.#keys[name] = key;
          await changed(`The key for “${label}” is now ${sign(key)}.`);
        }
        draw(name);
      });
    };
    const dialog = h("dialog.panel.keys-dialog", { "aria-label": "Keys" }, h("h2", {}, "Keys"), said, list, h("details", {}, h("summary", {}, "Keys for other kinds of questions"), others),
      h("p.hint", {}, "In a text box, ", h("kbd", {}, "Enter"), " goes to the next box, ", h("kbd", {}, "Ctrl Enter"), " finishes the answer, and ", h("kbd", {}, "Escape"), " leaves the box."),
      h("p.actions", {}, button("Close", () => dialog.close(), { kind: "primary", autofocus: true }), button("Restore the default keys", async () => {
        this.use({});
        await changed("The default keys are restored.");
      }, { kind: "plain" })));
    draw();
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
}

/** Whether a key belongs to what has the focus: text boxes take all keys, buttons and links Enter and Space, unless they
 * leave them to the page. */
export function isTakenByFocus(event) {
  const focused = event.target instanceof Element ? event.target : document.body;
  if (document.querySelector("dialog[open]")) return true;
  if (focused.closest("input, textarea, select")) return true;
  return (event.key === "Enter" || event.key === " ") && focused.closest("button:not([data-keys]), a, summary") !== null;
}
