// Where everybody starts: give a text.

import { get, post, upload } from "./api.js";
import { bytes, button, counted, day, explain, h, link, put } from "./elements.js";

const EXAMPLES = {
  "Tomato soup": `# Make tomato soup

1. Heat 2 tbsp. of olive oil in a large pot over medium heat.
2. Chop the onion and the garlic, and fry them until they are soft (approx. 5 min.).
3. Add the tomatoes and the stock, and bring everything to the boil.
4. Turn the heat down and simmer for 20 minutes with the lid on.
5. Blend the soup until it is smooth.
6. Season with salt, ladle into bowls and scatter basil on top.`,
  "Flat tyre": `# Mend a flat bicycle tyre

1. Turn the bicycle upside down and take the wheel off.
2. Lever the tyre off the rim and pull out the inner tube.
3. Pump up the tube and hold it under water to find the hole.
4. Dry the spot, roughen it and stick a patch on it.
5. Put the tube and the tyre back on, and pump up the tyre.`,
  "A short story": `The rain began as Mara reached the hut. She pushed the door open and lit the lamp on the table. Her coat was soaked, so she hung it over the stove and put two logs in. By midnight the coat was dry, the lamp had burnt out, and snow lay on the roof.`,
};

export async function showHome(page, app) {
  const recent = await get("/documents", { limit: 5 });
  const isFirst = recent.total === 0;
  const box = h("textarea", {
    id: "text",
    rows: 12,
    placeholder: "Paste a recipe, a how-to, a lab protocol, a story …\n\nOr drop a file or a saved web page here.",
    "aria-describedby": "text-help",
    spellcheck: "false",
  });
  const read = h("button.primary", { type: "submit" }, "Read the steps");
  const form = h("form.give", {}, h("label.unseen", { for: "text" }, "Text"), box);

  async function keepFile(file) {
    const most = app.server.limits.body_bytes;
    if (file.size > most) throw { what: `the size of ${file.name} is ${bytes(file.size)}, but the limit is ${bytes(most)}`, fix: "paste the part with the steps" };
    return upload(`/documents/upload?name=${encodeURIComponent(file.name.slice(-200))}`, file);
  }
  async function keepFiles(files) {
    if (!files.length) return undefined; // a drag may announce files and bring none
    const kept = [];
    for (const file of files) {
      try {
        kept.push(await keepFile(file));
      } catch (error) {
        if (!kept.length) throw error;
        const before = files.slice(0, kept.length).map((one) => one.name).join(", ");
        const { what = error.message, where, fix } = error;
        throw { what, where: where ?? file.name, fix: `${fix ? `${fix}. ` : ""}Already in the library: ${before}` };
      }
    }
    const documents = kept.flatMap((one) => one.documents), traces = kept.flatMap((one) => one.traces);
    if (documents.length > 1) return app.go("/?library");
    return app.go(traces.length ? `/?trace=${traces[0].id}` : `/?document=${documents[0].id}`);
  }
  async function tried(act) {
    form.setAttribute("aria-busy", "true");
    try {
      await act();
    } catch (error) {
      explain(error, form);
    } finally {
      form.removeAttribute("aria-busy");
    }
  }

  const picker = h("input.unseen", { type: "file", id: "file", multiple: true, async onchange() {
    const files = [...picker.files];
    if (files.length) await tried(() => keepFiles(files));
    picker.value = ""; // so that a file that was mended can be chosen again
  } });
  const examples = Object.entries(EXAMPLES).map(([name, text]) =>
    button(name, () => {
      box.select();
      if (!document.execCommand("insertText", false, text)) box.value = text; // unlike `value`, Ctrl-Z takes it back
      box.setSelectionRange(0, 0);
      form.classList.add("filled");
    }, { kind: "chip" }),
  );
  form.append(
    h("div.actions", {}, read, h("label.button", { for: "file" }, "Open a file …"), picker,
      h("span.examples", {}, isFirst ? "No text at hand? Try an example: " : "Examples: ", examples)),
    h("p.hint", { id: "text-help" }, 
      app.server.trackers.some((one) => one.kind === "endpoint")
        ? "The text stays on the machine that runs fluents until you track it with a language model at an endpoint. "
        : "The text stays on the machine that runs fluents. ",
      "You see the steps, and can correct them, before anything is tracked."),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tried(async () => {
      if (!box.value.trim()) {
        box.focus();
        throw { what: "there is no text yet", fix: "paste one, open a file, or choose an example" };
      }
      const kept = await post("/documents", { text: box.value });
      await app.go(`/?document=${kept.id}`);
    });
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  const bringsFiles = (event) => event.dataTransfer.types.includes("Files"); // a text the browser inserts itself
  for (const kind of ["dragenter", "dragover"]) {
    form.addEventListener(kind, (event) => {
      if (!bringsFiles(event)) return;
      event.preventDefault();
      form.classList.add("over");
    });
  }
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    if (!bringsFiles(event)) return;
    event.preventDefault();
    form.classList.remove("over");
    tried(() => keepFiles([...event.dataTransfer.files]));
  });

  put(
    page,
    h("header.lead", {}, h("h1", {}, "What changes, step by step"),
      h("p", {}, "Paste a text that says how something is done. fluents finds its steps, and what each step changes: for example, the pot goes from cold to hot.")),
    isFirst
      ? h("ol.way", { "aria-label": "How it works" }, h("li", {}, h("b", {}, "Text"), " paste or drop it"), h("li", {}, h("b", {}, "Steps"), " check and correct them"),
          h("li", {}, h("b", {}, "Changes"), " watch them appear, then correct them"), h("li", {}, h("b", {}, "Table"), " download it"))
      : null,
    form,
  );
  if (!isFirst) {
    page.append(h("section", {}, h("h2", {}, "Recent"), documentList(recent.items), recent.total > recent.items.length ? h("p", {}, link("/?library", `All ${counted(recent.total, "text")}`)) : null));
  }
  setTimeout(() => box.focus({ preventScroll: true }));
}

const STATES = { queued: "waiting", running: "being tracked", done: "", cancelled: "cancelled", failed: "failed" };

/** Texts of the library, each with what was done with it. */
export function documentList(documents, more = () => null) {
  return h("ul.documents", {}, documents.map((one) =>
    h("li", {}, h("span.main", {}, link(`/?document=${one.id}`, h("bdi", {}, one.goal || one.name || one.first_step))),
      h("span.facts", {}, counted(one.steps, "step"), " · ", one.traces ? `tracked ${one.traces === 1 ? "once" : `${one.traces} times`}` : "not tracked yet",
        STATES[one.state] ? ` · ${STATES[one.state]}` : "", " · ", day(one.created)),
      more(one)),
  ));
}
