// A trace: its three views, people's judgements in place, and what can be done with it.

import { address, drawn, get, post, remove, upload, warningsOf } from "./api.js";
import { button, changeWords, confirmed, counted, day, duration, explain, h, link, tell, warningBox } from "./elements.js";
import { planPanel, questionPanel } from "./questions.js";
import { follow } from "./trace.js";

/** Steps that can be corrected when the page appears; the others follow while the browser is idle. */
const AT_ONCE = 15;

export async function showTrace(page, id, app) {
  const [trace, { toolbar, article }] = await Promise.all([get(`/traces/${id}`), drawn(`/traces/${id}`)]);
  const [job, warnings] = trace.job ? await Promise.all([get(`/jobs/${trace.job}`), warningsOf(trace.job)]) : [null, []];
  app.title(trace.procedure.goal || trace.procedure.id);
  const judged = h("span.judged", { role: "status" });
  const lead = h("p.coach", {}, "Are the changes right? Mark each change as right (", h("b", {}, "✓"), ") or wrong (", h("b", {}, "✗"), "), or correct its words (", h("b", {}, "✎"),
    "). Add the changes that are missing. Then download the changes as a table.");
  const place = h("div.trace", {}, toolbar, article);
  const changes = new Map(trace.shown.map((one) => [one.position, one]));
  const given = (body) => post(`/traces/${id}/corrections`, body);

  function count() {
    const all = [...changes.values()];
    const number = all.filter((one) => one.verdict).length;
    judged.textContent = number ? `${number} of ${counted(all.length, "change")} judged` : "";
    lead.hidden = number > 0;
  }
  async function judge(item, change, verdict, words = null) {
    const same = change.verdict === verdict && !words;
    await given({ verdict: same ? "withdrawn" : verdict, position: change.position, ...(words ? { words } : {}) });
    change.verdict = same ? null : verdict;
    change.corrected = verdict === "edited" ? words : null;
    mark(item, change);
    count();
  }
  /** Show what was said of a change; the model's words stay where they are. */
  function mark(item, change) {
    const { verdict, corrected } = change;
    item.classList.remove("judged-right", "judged-wrong", "judged-edited");
    if (verdict && verdict !== "added") item.classList.add(`judged-${verdict}`);
    for (const [kind, tool] of Object.entries(item.tools)) tool.setAttribute("aria-pressed", String(verdict === kind));
    item.querySelector(".yours")?.remove();
    if (corrected) {
      const entity = corrected.entity === change.entity ? [] : [h("bdi.name", {}, corrected.entity), " "];
      item.append(h("span.yours", {}, h("span.unseen", {}, "corrected: "), ...entity, ...changeWords(corrected)));
    }
  }
  function equip(item, change) {
    const named = `${change.entity}, ${change.attribute}: ${change.before || "—"} → ${change.after || "—"}`;
    const tool = (sign, what, act) => button(sign, act, { kind: "tool", title: what, "aria-label": `${what}: ${named}`, "aria-pressed": "false" });
    item.tools = {
      right: tool("✓", "Right", () => judge(item, change, "right")),
      wrong: tool("✗", "Wrong", () => judge(item, change, "wrong")),
      edited: tool("✎", "Edit", () => edit(item, change)),
    };
    item.append(h("span.tools", {}, Object.values(item.tools)));
    mark(item, change);
  }
  function edit(item, change) {
    if (item.querySelector("form")) return;
    const form = wordsForm(change.corrected ?? change, "Save", async (words) => {
      await judge(item, change, "edited", words);
      form.remove();
      item.tools.edited.focus();
    }, () => {
      form.remove();
      item.tools.edited.focus();
    });
    item.append(form);
    form.querySelector("[name=after]").select();
  }
  function showAdded(step, change) {
    const list = step.querySelector(".changes > ul");
    list.querySelector("li.nothing")?.remove();
    const item = h("li.change", { "data-place": change.position }, changeWords(change), " ", h("span.side", {}, "added"));
    const group = h("li.group.added", {}, h("span.who", {}, h("bdi.name", {}, change.entity)), h("ul", {}, item));
    item.append(h("span.tools", {}, button("×", async () => {
      await given({ verdict: "withdrawn", position: change.position });
      changes.delete(change.position);
      group.remove();
      count();
      filter();
    }, { kind: "tool", title: "Take back", "aria-label": `Take back: ${change.entity}, ${change.attribute}` })));
    list.append(group);
  }
  function offerToAdd(step, number) {
    const more = button("+ add a change", () => {
      if (step.querySelector(".changes > form")) return;
      const form = wordsForm({ entity: "", attribute: "", before: "", after: "" }, "Add", async (words) => {
        const added = await given({ verdict: "added", step: number, words });
        const change = { ...words, position: added.position, step: number, verdict: "added", corrected: null };
        changes.set(change.position, change);
        form.remove();
        showAdded(step, change);
        count();
        filter();
        more.focus();
      }, () => {
        form.remove();
        more.focus();
      });
      step.querySelector(".changes").insertBefore(form, more);
      form.querySelector("input").focus();
    }, { kind: "plain", class: "plain add", "aria-label": `Add a change to step ${number}` });
    step.querySelector(".changes").append(more);
  }

  const steps = [...article.querySelectorAll(".step")];
  const added = trace.shown.filter((one) => one.position >= trace.changes);
  const prepared = (step, at) => {
    for (const item of step.querySelectorAll("li.change[data-place]")) {
      const change = changes.get(Number(item.dataset.place));
      if (change) equip(item, change);
    }
    for (const change of added) if (change.step === at + 1) showAdded(step, change);
    offerToAdd(step, at + 1);
  };
  steps.slice(0, AT_ONCE).forEach(prepared);
  const rest = async () => {
    for (let at = AT_ONCE; at < steps.length; at += 1) {
      await new Promise((free) => (window.requestIdleCallback ?? setTimeout)(free));
      prepared(steps[at], at);
    }
    if (article.classList.contains("filtered")) filter();
  };

  const took = job?.started && job.ended ? ` in ${duration((new Date(job.ended) - new Date(job.started)) / 1000)}` : "";
  page.append(
    h("header.lead.trace-head", {}, h("h1", {}, h("bdi", {}, trace.procedure.goal || trace.procedure.id)),
      h("p.facts", {}, h("bdi", {}, trace.name), took, ", ", day(trace.created), " ", judged),
      h("div.actions", {}, downloads(id, toolbar), compareMenu(id, trace, app), questionMenu(id, trace),
        link(`/?document=${trace.document}`, "Edit the steps"),
        button("Delete", async () => {
          if (!(await confirmed("Delete this trace?", "Delete it", "This also deletes your judgements on it. The text and its other traces are kept."))) return;
          await remove(`/traces/${id}`);
          tell("The trace is deleted.");
          await app.go(`/?document=${trace.document}`);
        }, { kind: "plain" }))),
    warningBox(warnings).box,
    lead,
    place,
  );
  const filter = follow(place);
  count();
  rest();
  return undefined;
}

function wordsForm(words, label, keep, cancel) {
  const field = (name, required) => h("label", {}, name, h("input", { name, value: words[name], required, maxlength: 1000, autocomplete: "off" }));
  const form = h("form.words-form", {}, field("entity", true), field("attribute", true), field("before", false), field("after", false),
    h("span.actions", {}, h("button.primary", { type: "submit" }, label), button("Cancel", cancel, { kind: "plain" })));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]));
    const send = button("", () => keep(given), { hidden: true });
    form.append(send);
    send.click(); // an error is told beside the form
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    cancel();
  });
  return form;
}

const FORMATS = { csv: ["Table (CSV)", "for a spreadsheet"], html: ["Web page (HTML)", "the three views in one file"], jsonl: ["Trace (JSONL)", "for fluents and other programs"], pddl: ["Planning domain (PDDL)", "for a planner"] };

function downloads(id, toolbar) {
  const corrected = h("input", { type: "checkbox", checked: true });
  const filtered = h("input", { type: "checkbox" });
  const anchors = Object.entries(FORMATS).map(([format, [name, what]]) => h("a", { download: "", "data-format": format, href: "#" }, h("b", {}, name), " ", h("small", {}, what)));
  const menu = menuOf("Download", "primary", h("ul", {}, anchors.map((one) => h("li", {}, one))),
    h("label", {}, corrected, " with your corrections"), h("label", {}, filtered, " only changes selected with the sliders"));
  const aim = () => {
    const least = {};
    if (filtered.checked) {
      for (const slider of toolbar.querySelectorAll("input[type=range]")) {
        if (Number(slider.value) > 0) least[`min_${slider.id.replace("least-", "")}`] = slider.value;
      }
    }
    for (const one of anchors) one.href = address(`/traces/${id}/download`, { format: one.dataset.format, corrected: corrected.checked, ...least });
  };
  menu.addEventListener("toggle", aim);
  menu.addEventListener("change", aim);
  aim();
  return menu;
}

/** A button with a sheet under it. Escape and a click elsewhere close it. */
export function menuOf(label, kind, ...children) {
  const menu = h("details.menu", {}, h(`summary.button${kind ? "." + kind : ""}`, {}, label), h("div.sheet-below", {}, children));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("toggle", () => {
    if (!menu.open) return;
    const close = (event) => {
      if (event.target instanceof Node && menu.contains(event.target)) return;
      menu.open = false;
      document.removeEventListener("click", close);
    };
    document.addEventListener("click", close);
  });
  return menu;
}

/** What a trace can be compared with: other traces of the same steps, of this text or another, or of a file. */
function compareMenu(id, trace, app) {
  const list = h("ul", {});
  const none = h("p.hint", { hidden: true }, "There is nothing to compare with yet. Track ", link(`/?document=${trace.document}`, "the same steps"), " with another model, or open a file with the correct changes.");
  const picker = h("input.unseen", { type: "file", id: "gold-file", async onchange() {
    try {
      const [file] = picker.files;
      const kept = await upload(`/documents/upload?name=${encodeURIComponent(file.name.slice(-200))}`, file);
      const gold = kept.traces.find((one) => one.steps === trace.procedure.steps.length);
      if (!gold) {
        for (const one of kept.documents) await remove(`/documents/${one.id}`); // it was only kept for this
        throw { what: `the file ${file.name} has no changes for these steps`, fix: "open a file of traces, such as the JSONL that fluents writes" };
      }
      await app.go(`/?compare=${gold.id},${id}`);
    } catch (error) {
      explain(error, menu);
    }
    picker.value = "";
  } });
  const menu = menuOf("Compare", "", h("section", {}, h("p.hint", {}, "Compare this trace with:"), list, none,
    h("p.actions", {}, h("label.button", { for: "gold-file" }, "A file with the correct changes …"), picker)));
  menu.addEventListener("toggle", async () => {
    if (!menu.open || list.children.length) return;
    const { procedure, document: own } = trace;
    const alike = await get("/documents", { q: procedure.goal.slice(0, 200), limit: 50 });
    const ids = new Set([own, ...alike.items.filter((one) => one.traces && one.steps === procedure.steps.length).map((one) => one.id)]);
    const texts = await Promise.all([...ids].slice(0, 12).map((one) => get(`/documents/${one}`)));
    const others = texts.filter((one) => one.id === own || JSON.stringify(one.steps) === JSON.stringify(procedure.steps)).flatMap((one) => one.traces).filter((one) => one.id !== id);
    list.replaceChildren(...others.map((one) => h("li", {}, link(`/?compare=${one.id},${id}`, h("bdi", {}, one.name), " ", h("small", {}, counted(one.changes, "change"), ", ", day(one.created))))));
    none.hidden = others.length > 0;
  });
  return menu;
}

function questionMenu(id, trace) {
  return [menuOf("Ask", "", questionPanel(id, trace)), menuOf("Plan", "", planPanel(id, trace))];
}
