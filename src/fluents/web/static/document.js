// A text as steps: check and correct them, then track.

import { get, patch, post } from "./api.js";
import { bytes, button, counted, day, duration, h, link, tell } from "./elements.js";

export async function showDocument(page, id, app) {
  const kept = await get(`/documents/${id}`);
  app.title(kept.goal);
  let saved = { goal: kept.goal, steps: kept.steps }, timer, saving = Promise.resolve();
  let past = [];
  const status = h("span.saved", { role: "status" });
  const goal = h("input.goal-box", { id: "goal", value: kept.goal, placeholder: "What is it for? e.g. Make tomato soup", maxlength: app.server.limits.step_length, oninput: later });
  const list = h("ol.editor", { "aria-label": "Steps" });
  const undo = button("Undo", takeBack, { kind: "plain", disabled: true });

  const texts = () => [...list.querySelectorAll("textarea")].map((box) => box.value);
  const given = () => ({ goal: goal.value.trim(), steps: texts().map((text) => text.trim()).filter(Boolean) });

  function later() {
    clearTimeout(timer);
    status.textContent = "";
    timer = setTimeout(() => save().catch((error) => (status.textContent = `Not saved: ${error.message}`)), 700);
  }
  function save() {
    clearTimeout(timer);
    return (saving = saving.catch(() => {}).then(async () => {
      const now = given();
      if (JSON.stringify(now) === JSON.stringify(saved)) return;
      if (!now.steps.length) throw { what: "a text needs at least one step", message: "a text needs at least one step", fix: "write one" };
      await patch(`/documents/${id}`, now);
      saved = now;
      status.textContent = "Saved";
    }));
  }
  function draw(steps, at = null, caret = 0) {
    list.replaceChildren(...steps.map((text, place) => row(text, place, steps.length)));
    for (const box of list.querySelectorAll("textarea")) fit(box);
    if (at === null) return;
    const box = list.querySelectorAll("textarea")[at];
    box?.focus();
    box?.setSelectionRange(caret, caret);
  }
  /** Change the list of steps as a whole; what was there can be had back. */
  function edit(change, at, caret = 0) {
    const steps = texts();
    past.push([...steps]);
    undo.disabled = false;
    change(steps);
    draw(steps.length ? steps : [""], Math.min(at, Math.max(steps.length - 1, 0)), caret);
    later();
  }
  function takeBack() {
    const steps = past.pop();
    undo.disabled = past.length === 0;
    if (steps) draw(steps, 0);
    later();
  }
  const split = (place, box) => {
    const [first, second] = [box.value.slice(0, box.selectionStart), box.value.slice(box.selectionEnd)];
    edit((steps) => steps.splice(place, 1, first.trimEnd(), second.trimStart()), place + 1);
  };
  const merge = (place) => {
    const steps = texts(), caret = steps[place - 1].trimEnd().length;
    edit((all) => all.splice(place - 1, 2, `${all[place - 1].trimEnd()} ${all[place].trimStart()}`.trim()), place - 1, caret);
  };
  const move = (place, by) => edit((steps) => steps.splice(place + by, 0, ...steps.splice(place, 1)), place + by);

  function row(text, place, count) {
    const number = place + 1;
    const box = h("textarea", { rows: 1, value: text, "aria-label": `Step ${number}`, maxlength: app.server.limits.step_length, oninput: () => { fit(box); later(); } });
    box.addEventListener("keydown", (event) => {
      const atStart = box.selectionStart === 0 && box.selectionEnd === 0;
      if (event.key === "Enter" && !event.shiftKey) split(place, box);
      else if (event.key === "Backspace" && atStart && place > 0) merge(place);
      else if (event.altKey && event.key === "ArrowUp" && place > 0) move(place, -1);
      else if (event.altKey && event.key === "ArrowDown" && place < count - 1) move(place, 1);
      else return;
      event.preventDefault();
    });
    const tool = (label, sign, act, disabled = false) => button(sign, act, { kind: "tool", title: label, "aria-label": `${label}: step ${number}`, disabled });
    let caret = null; // where it was when the button took the focus away
    box.addEventListener("blur", () => (caret = [box.selectionStart, box.selectionEnd]));
    return h("li", {}, box, h("span.tools", {},
      tool("Move up", "↑", () => move(place, -1), place === 0),
      tool("Move down", "↓", () => move(place, 1), place === count - 1),
      tool("Split at the cursor", "÷", () => {
        const middle = caret && caret[0] > 0 && caret[0] < box.value.length ? caret : halves(box.value);
        box.setSelectionRange(...middle);
        split(place, box);
      }),
      tool("Join with the step before", "⤒", () => merge(place), place === 0),
      tool("Delete", "×", () => edit((steps) => steps.splice(place, 1), place)),
    ));
  }

  draw(kept.steps);
  const back = button("Restore the original steps", async () => {
    past.push(texts());
    undo.disabled = false;
    goal.value = kept.read_goal;
    draw(kept.read_steps);
    await save();
  }, { kind: "plain" });

  page.append(
    h("header.lead", {}, h("h1", {}, "Are these the steps?"),
      h("p", {}, `fluents found ${counted(kept.read_steps.length, "step")}`, kept.name ? [" in ", h("bdi", {}, kept.name)] : "", ". Correct the steps if necessary, then track their changes.")),
    ...kept.warnings.map((words) => h("p.warning", {}, words)),
    foreign(kept, app),
    h("div.columns", {},
      h("section.steps-box", {}, h("label.field", { for: "goal" }, "Goal ", goal), list,
        h("p.actions", {}, button("Add a step", () => edit((steps) => steps.push(""), texts().length), { kind: "plain" }), undo, back, status),
        h("p.hint.keys", {}, h("kbd", {}, "Enter"), " splits a step, ", h("kbd", {}, "Backspace"), " at its beginning joins it with the one before, ", h("kbd", {}, "Alt ↑↓"), " moves it."),
        h("details", {}, h("summary", {}, "The original text"), h("pre.given", {}, kept.text))),
      h("aside.track-box", {}, await trackBox(kept, app, save, () => given().steps.length), tracked(kept)),
    ),
  );
  requestAnimationFrame(() => list.querySelectorAll("textarea").forEach(fit));
  const fitAll = () => list.querySelectorAll("textarea").forEach(fit);
  addEventListener("resize", fitAll);
  return () => {
    removeEventListener("resize", fitAll);
    save().catch(() => tell("Your last edit of the steps was not saved."));
  };
}

/** The embedded models know one language. */
function foreign({ language }, app) {
  if (!language || language === "en" || !app.server.trackers.some((one) => one.kind === "embedded")) return "";
  const name = new Intl.DisplayNames("en", { type: "language" }).of(language);
  return h("p.warning", {}, `The text seems to be in ${name}. The models tiny, small and base know only English, so expect wrong changes. For ${name}, start `,
    h("code", {}, "fluents web --model NAME --base-url URL"), ` with a language model that knows this language.`);
}

/** As high as what is in it. CSS does that alone where it knows `field-sizing`. */
function fit(box) {
  if (CSS.supports("field-sizing", "content")) return;
  box.rows = 1;
  while (box.scrollHeight > box.clientHeight && box.rows < 40) box.rows += 1;
}

/** The place between two sentences, or words, that is nearest to the middle. */
function halves(text) {
  const places = [...text.matchAll(/[.;!?]\s+|\s+/g)].map((found) => ({ at: found.index + found[0].length, weight: found[0].length > 1 ? 0 : 40 }));
  const middle = text.length / 2;
  const best = places.sort((a, b) => Math.abs(a.at - middle) + a.weight - Math.abs(b.at - middle) - b.weight)[0];
  return best ? [best.at, best.at] : [Math.ceil(middle), Math.ceil(middle)];
}

/** What a choice means, for people who do not know the models. */
const ACCURACY = { tiny: "quick, often wrong", small: "slower, more often right", base: "slowest, most often right" };

async function trackBox(kept, app, save, steps) {
  const speeds = await secondsAStep();
  const { trackers, default_tracker: usual } = app.server;
  const choice = (one) => {
    const speed = speeds[one.name];
    const cost = [];
    if (speed) cost.push(`about ${duration(speed * steps())}, at the speed of earlier runs on this machine`);
    else cost.push("the time left is shown after the first step");
    if (!one.ready && one.bytes) cost.push(`first downloads ${bytes(one.bytes)}, only once`);
    return h("label.choice", {}, h("input", { type: "radio", name: "tracker", value: one.name, checked: one.name === usual }),
      h("span", {}, h("b", {}, one.name), " ", h("span", {}, ACCURACY[one.kind === "embedded" ? one.name : ""] ?? one.about), h("small", { title: one.about }, cost.join("; "))));
  };
  const chosen = trackers.find((one) => one.name === usual) ?? trackers[0];
  const others = trackers.filter((one) => one !== chosen);
  const form = h("form.panel", {}, h("h2", {}, "Track"), h("fieldset", {}, h("legend.unseen", {}, "Tracker"), choice(chosen),
    others.length ? h("details", {}, h("summary", {}, `Other models (${others.length})`), others.map(choice)) : null));
  form.append(h("p.actions", {}, button("Track the changes", async () => {
    await save();
    const job = await post(`/documents/${kept.id}/jobs`, { tracker: new FormData(form).get("tracker") });
    await app.go(`/?job=${job.id}`);
  }, { kind: "primary" })));
  return form;
}

/** What finished jobs took on this machine, by tracker. */
async function secondsAStep() {
  const sums = {};
  for (const job of await get("/jobs", { state: "done" })) {
    if (!job.started || !job.ended || !job.done) continue;
    const sum = (sums[job.tracker] ??= { seconds: 0, steps: 0 });
    sum.seconds += (new Date(job.ended) - new Date(job.started)) / 1000;
    sum.steps += job.done;
  }
  return Object.fromEntries(Object.entries(sums).map(([name, { seconds, steps }]) => [name, seconds / steps]));
}

function tracked(kept) {
  const unfinished = kept.jobs.filter((job) => !job.trace);
  if (!kept.traces.length && !unfinished.length) return null;
  return h("section.panel", {}, h("h2", {}, "Tracked before"),
    h("ul.documents", {},
      unfinished.map((job) => h("li", {}, h("span.main", {}, link(`/?job=${job.id}`, job.tracker)), h("span.facts", {}, job.state, `, ${job.done} of ${counted(job.steps, "step")}`, " · ", day(job.created)))),
      kept.traces.map((one) => h("li", {}, h("span.main", {}, link(`/?trace=${one.id}`, h("bdi", {}, one.name))),
        h("span.facts", {}, counted(one.changes, "change"), one.corrections ? `, ${counted(one.corrections, "judgement")}` : "", " · ", day(one.created)))),
    ),
    kept.traces.length > 1 ? h("p", {}, link(`/?compare=${kept.traces[1].id},${kept.traces[0].id}`, "Compare the last two")) : null);
}
