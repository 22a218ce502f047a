// What was tracked before: find it, delete it, keep it safe, learn from it.

import { address, get, remove, upload } from "./api.js";
import { button, changeWords, confirmed, counted, explain, h, link, tell } from "./elements.js";
import { documentList } from "./home.js";

/** "everything that becomes hot" asks for states after a change; "was cold" for states before it. */
export function meaning(words) {
  const after = words.match(/\b(?:becomes?|became|gets?|got|turns?|turned|ends? up)\s+(.+)$/i);
  if (after) return { after: after[1].trim() };
  const before = words.match(/\b(?:was|were|no longer|stops? being)\s+(.+)$/i);
  return before ? { before: before[1].trim() } : { q: words };
}

export async function showLibrary(page, app) {
  app.title("Library");
  const wanted = new URLSearchParams(location.search).get("q") ?? "";
  const box = h("input", { type: "search", id: "search", value: wanted, placeholder: "soup, or: becomes hot", maxlength: 300, autocomplete: "off" });
  const results = h("div.results", { "aria-live": "polite" });
  let turn = 0, timer;

  async function find() {
    const mine = ++turn;
    const words = box.value.trim();
    history.replaceState({}, "", words ? `/?library&q=${encodeURIComponent(words)}` : "/?library");
    const [texts, changes] = await Promise.all([get("/documents", { q: words }), words ? get("/search", meaning(words)) : null]);
    if (mine !== turn) return;
    results.replaceChildren();
    if (changes && !changes.total && !texts.total) results.append(h("h2", {}, "Nothing found"));
    else if (changes) results.append(h("h2", {}, changes.total ? counted(changes.total, "change") : "No changes"), foundList(changes, words));
    if (words && texts.total) results.append(h("h2", {}, counted(texts.total, "text")));
    if (texts.items.length) results.append(textList(texts, words, find));
    else if (!words) results.append(h("div.empty", {}, h("p", {}, "Nothing here yet. Your texts are stored on the machine that runs fluents. You can search them here for words, or for a change, such as ", h("i", {}, "becomes hot"), "."), h("p", {}, link("/", "Add your first text"))));
  }
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => find().catch((error) => explain(error, page)), 250);
  });

  const restore = h("input.unseen", { type: "file", id: "restore", async onchange() {
    try {
      const got = await upload("/restore", restore.files[0]);
      tell(`Restored ${counted(got.documents, "text")} and ${counted(got.traces, "trace")}${got.skipped ? "; the library already had the rest" : ""}.`);
      await find();
    } catch (error) {
      explain(error, page);
    }
    restore.value = "";
  } });
  page.append(
    h("header.lead", {}, h("h1", {}, "Library")),
    h("form.search", { role: "search", onsubmit: (event) => event.preventDefault() }, h("label", { for: "search" }, "Find "), box,
      h("span.hint", {}, "Words in a text, or a change: ", h("i", {}, "becomes hot"), ", ", h("i", {}, "was closed"), ".")),
    results,
    h("section.keep", {}, h("h2", {}, "Backup and training data"), h("p.actions", {},
      h("a.button", { href: address("/backup"), download: "" }, "Download a backup"),
      h("label.button", { for: "restore" }, "Restore a backup …"), restore,
      h("a.button", { href: address("/corrections/export"), download: "" }, "Download corrections as training data")),
    h("p.hint", {}, "Restoring a backup adds the texts, traces and corrections that are missing here, and changes nothing else. The training data are the traces in which somebody judged or added changes, with all corrections. Changes that nobody judged are included as the model wrote them. To train a model on the file: ", h("code", {}, "fluents train adapter --data corrections.jsonl --out runs/mine"))),
  );
  await find();
  setTimeout(() => box.focus({ preventScroll: true }));
}

function textList(first, words, find) {
  const more = (one) => button("Delete", async () => {
    if (!(await confirmed(`Delete “${one.goal || one.name || one.first_step}”?`, "Delete it", "This also deletes its traces and your judgements on them. Backups that you have downloaded are not changed."))) return;
    await remove(`/documents/${one.id}`);
    tell("Deleted.");
    await find();
  }, { kind: "plain", "aria-label": `Delete ${one.goal || one.name || one.first_step}` });
  return paged(first, (offset) => get("/documents", { q: words, offset }), (items) => documentList(items, more));
}

function foundList(first, words) {
  const list = (items) => h("ul.found-changes", {}, items.map((one) =>
    h("li", {}, link(`/?trace=${one.trace}#p1s${one.step}`, h("bdi.name", {}, one.entity)), " ", ...changeWords(one),
      h("small", {}, h("bdi", {}, one.goal), `, step ${one.step}: `, h("bdi", {}, one.text.length > 120 ? one.text.slice(0, 119) + "…" : one.text)))));
  return paged(first, (offset) => get("/search", { ...meaning(words), offset }), list);
}

function paged(first, next, list) {
  const place = h("div", {}, list(first.items));
  const append = (at) => {
    if (at === null) return;
    const more = button("More", async () => {
      const page = await next(at);
      more.remove();
      place.append(list(page.items));
      append(page.next);
    }, { kind: "plain" });
    place.append(more);
  };
  append(first.next);
  return place;
}
