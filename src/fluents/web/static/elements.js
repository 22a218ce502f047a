// Elements out of plain values. Strings only ever become text: nothing here reads HTML.

/** An element: `h("p.facts", {title: "…", onclick: f}, "text", child)`. Properties that are null or false are left out. */
export function h(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag || "div");
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "disabled" || key === "hidden") made[key] = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  put(made, ...children);
  return made;
}

/** Append children; those that are null or false are left out. */
export function put(parent, ...children) {
  parent.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
}

/** A button that does something; while it does, it cannot be pressed again. */
export function button(label, act, properties = {}) {
  const { kind = "", ...rest } = properties;
  const made = h(`button${kind ? "." + kind : ""}`, { type: "button", ...rest }, label);
  made.addEventListener("click", async (event) => {
    event.preventDefault();
    if (made.getAttribute("aria-busy") === "true") return;
    made.setAttribute("aria-busy", "true");
    try {
      await act(event);
    } catch (error) {
      explain(error, made);
    } finally {
      made.removeAttribute("aria-busy");
    }
  });
  return made;
}

/** A button that copies a text. Browsers offer the clipboard only to pages that came encrypted or from this machine. */
export function copyButton(text) {
  const made = button("Copy", async () => {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copySelected(text, made);
    made.textContent = "Copied ✓";
    setTimeout(() => (made.textContent = "Copy"), 3000);
  });
  return made;
}

function copySelected(text, near) {
  const box = h("textarea", { value: text, readonly: true, class: "unseen" });
  near.after(box);
  box.select();
  document.execCommand("copy");
  box.remove();
  near.focus();
}

/** A link within the page. */
export const link = (href, ...children) => h("a", { href }, ...children);

/** What went wrong, and what to do, beside what was tried; returns the box. */
export function explain(error, near) {
  const box = h("p.problem", { role: "alert" }, h("b", {}, capital(error.what ?? error.message)), ". ");
  if (error.where) box.append(`(${error.where}) `);
  if (error.fix) box.append(capital(error.fix), ".");
  box.append(" ", button("Dismiss", () => box.remove(), { kind: "plain" }));
  const place = near?.closest("form, .panel, section, .actions, li.step, .page") ?? document.getElementById("content");
  place.querySelectorAll(":scope > .problem").forEach((old) => old.remove());
  place.append(box);
  box.scrollIntoView({ block: "nearest" });
  return box;
}

/** What the library says, with its parameters as the options of the command. */
const withOptions = (message) => message.replaceAll(/`(\w+)`/g, (_, name) => `--${name.replaceAll("_", "-")}`);

/** Warnings of a model, beneath each other. `add` leaves out what is there already. */
export function warningBox(messages = []) {
  const box = h("div.warnings", { role: "status" });
  const said = new Set();
  const add = (message) => {
    if (!said.has(message)) box.append(h("p.warning", {}, capital(withOptions(message)), "."));
    said.add(message);
  };
  messages.forEach(add);
  return { box, add };
}

/** A question with two answers; true for the first. */
export function confirmed(question, yes, detail = "", no = "Keep it") {
  return new Promise((answer) => {
    const dialog = h("dialog.panel", { "aria-label": question }, h("h2", {}, question), detail ? h("p", {}, detail) : null);
    const close = (value) => () => {
      dialog.close();
      answer(value);
    };
    dialog.append(h("p.actions", {}, button(yes, close(true), { kind: "danger" }), button(no, close(false), { autofocus: true })));
    dialog.addEventListener("close", () => {
      answer(false);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Something that was done, in a few words, for a few seconds. */
export function tell(words) {
  const note = h("p.note", { role: "status" }, words);
  document.body.append(note);
  setTimeout(() => note.remove(), 5000);
}

/** The words of a change: "location: in bottle → in pot". */
export function changeWords({ attribute, before, after }) {
  const words = [h("span.attribute", {}, h("bdi", {}, attribute), before || after ? ":" : "")];
  if (before || after) {
    words.push(" ", h("span.states", {}, h("bdi.before", {}, before || "—"), " → ", h("bdi.after", {}, after || "—")));
  }
  return words;
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const counted = (number, noun) =>
  `${number.toLocaleString("en")} ${number === 1 ? noun : noun.endsWith("y") ? noun.slice(0, -1) + "ies" : noun + "s"}`;

/** 95 → "1 min 35 s". */
export function duration(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

export const bytes = (size) => (size < 1e9 ? `${Math.max(1, Math.round(size / 1e6))} MB` : `${(size / 1e9).toFixed(1)} GB`);

export function day(time) {
  return h("time", { datetime: time }, new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }));
}
