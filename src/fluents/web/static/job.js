// A text while it is tracked: each step's changes appear when they are known.

import { drawn, get, listen, post, warningsOf } from "./api.js";
import { bytes, button, counted, duration, h, link, tell, warningBox } from "./elements.js";
import { follow } from "./trace.js";

const ENDED = ["done", "cancelled", "failed"];

export async function showJob(page, id, app) {
  let job = await get(`/jobs/${id}`);
  if (job.trace) {
    app.go(`/?trace=${job.trace}`, { instead: true });
    return undefined;
  }
  app.title(job.goal);
  const bar = h("progress", { max: job.steps, value: job.done, "aria-label": "Steps tracked" });
  const words = h("p.facts", { role: "status" });
  const cancel = button("Cancel", async () => show(await post(`/jobs/${id}/cancel`)));
  const resume = button("Resume", async () => {
    show(await post(`/jobs/${id}/resume`));
    stop();
    stop = listen(id, told);
  }, { kind: "primary" });
  const lost = h("p.warning", { role: "status", hidden: true }, "The connection to the server is lost. Trying again. The finished steps are kept.");
  const head = h("header.lead", {}, h("h1", {}, h("bdi", {}, job.goal || "Tracking")), words, bar, h("p.actions", {}, cancel, resume, link(`/?document=${job.document}`, "Edit the steps")), lost);
  const warned = warningBox(ENDED.includes(job.state) ? await warningsOf(id) : []);
  const place = h("div.trace", {});
  page.append(head, warned.box, place);

  let filter = () => {}, drawing = null, again = false, draft = null;

  function show(now, left = null) {
    job = now;
    bar.value = job.done;
    bar.hidden = ENDED.includes(job.state);
    cancel.hidden = ENDED.includes(job.state);
    resume.hidden = !["cancelled", "failed"].includes(job.state);
    const done = `${job.done} of ${job.steps} steps`;
    words.textContent = {
      queued: job.ahead ? `Waiting for ${counted(job.ahead, "earlier job")}` : "About to start",
      running: `${done}${left ? `, about ${duration(left)} left` : ""}`,
      done: "Done",
      cancelled: `Cancelled after ${done}. The finished steps are kept.`,
      failed: `Failed after ${done}: ${job.error ?? "no reason given"}`,
    }[job.state];
    if (job.state === "done") finish();
    else mark();
  }
  /** The steps that are still to come say so. */
  function mark() {
    const steps = place.querySelectorAll(".step");
    steps.forEach((step, at) => {
      const empty = step.querySelector("li.nothing");
      if (!empty || at < job.done) return;
      const now = job.state === "running" && at === job.done;
      step.classList.toggle("now", now);
      const line = now ? (draft ?? "reading …") : ENDED.includes(job.state) ? "not tracked" : "waiting";
      if (empty.textContent !== line) empty.textContent = line;
    });
  }
  /** Draw what is known. One at a time; what changed meanwhile is drawn after. */
  async function draw() {
    if (drawing) {
      again = true;
      return drawing;
    }
    drawing = (async () => {
      do {
        again = false;
        const { toolbar, article } = await drawn(`/jobs/${id}`);
        const old = place.querySelector("article");
        if (!old) {
          place.append(toolbar, article);
          filter = follow(place);
        } else if (old.querySelectorAll("li.change").length === 0 && toolbar.querySelectorAll("label").length !== place.querySelectorAll(".toolbar label").length) {
          place.replaceChildren(toolbar, article); // the first changes bring their sliders
          filter = follow(place);
        } else {
          const fresh = article.querySelectorAll(".step");
          old.querySelectorAll(".step").forEach((step, at) => {
            if (step.querySelector("li.nothing") && !fresh[at].querySelector("li.nothing")) step.replaceWith(fresh[at]), fresh[at].classList.add("fresh");
          });
          for (const view of [".of-lifelines", ".of-matrix", ".facts"]) old.querySelector(view)?.replaceWith(article.querySelector(view));
          const legend = article.querySelector(".legend");
          if (legend && !old.querySelector(".legend")) old.querySelector(".of-steps").before(legend);
          filter();
        }
        mark();
      } while (again);
    })().finally(() => (drawing = null));
    return drawing;
  }
  async function finish() {
    stop();
    await drawing;
    if (location.search === `?job=${id}` && job.trace) app.go(`/?trace=${job.trace}`, { instead: true });
  }
  function told(kind, data) {
    if (kind === "lost" && ENDED.includes(job.state)) {
      stop(); // there is nothing more to hear, unless the job was cancelled because its text is deleted
      get(`/jobs/${id}`).catch((error) => error.status === 404 && location.search === `?job=${id}` && told("gone"));
    } else if (kind === "lost") lost.hidden = false;
    else if (kind === "back") {
      lost.hidden = true;
      tell("Connected again.");
    } else if (kind === "gone") app.go(`/?job=${id}`, { instead: true }); // which says so
    else if (kind === "warning") warned.add(data.message);
    else if (kind === "state") show(data);
    else if (kind === "step") {
      draft = null;
      show({ ...job, state: "running", done: Math.max(job.done, data.done) }, data.seconds_left);
      draw().catch(() => {});
    } else if (data.phase === "fetching") {
      words.textContent = `Downloading the model: ${bytes(data.done)} of ${bytes(data.total)}${data.seconds_left ? `, about ${duration(data.seconds_left)} left` : ""}`;
    } else {
      draft = data.draft ? data.draft.replaceAll("|", "·") : draft;
      if (data.phase === "starting") words.textContent = "Loading the model";
      else if (job.state === "running") show(job, data.seconds_left);
      mark();
    }
  }

  let stop = () => {};
  await draw();
  show(job);
  if (!ENDED.includes(job.state)) stop = listen(id, told);
  return () => stop();
}
