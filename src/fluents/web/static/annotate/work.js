// The desk: one item after another. What is decided goes through the outbox; the next item of a quick kind is there
// before it is needed.

import { get, post } from "../api.js";
import { button, counted, explain, h, link } from "../elements.js";
import { advice, formOf, isQuick, kindName, question } from "./forms.js";
import { guidelineText } from "./guide.js";
import { isTakenByFocus } from "./keyboard.js";
import { newId } from "./outbox.js";

const UNDOABLE = 20;
/** Seconds between renewals of leases, between looks for new work, and between counts of what is decided. */
const RENEWAL = 60, LOOK = 10, COUNT = 5;

export async function showWork(page, app, { gridFirst = false } = {}) {
  const { outbox, storage, keyboard } = app;
  const place = h("div.item-place");
  const beside = h("aside.guideline-beside", { "aria-label": "Guideline" });
  const undo = button("Undo", takeBack, { kind: "plain" });
  const skip = button("Skip", leaveOut, { kind: "plain" });
  const status = h("p.hint", { role: "status" });
  const bar = h("div.work-bar", {}, status, undo, skip, button("Keys", showKeys, { kind: "plain" }));
  undo.prepend(keyboard.cap("undo"), " ");
  skip.prepend(keyboard.cap("skip"), " ");
  page.append(h(`div.desk${gridFirst ? ".grid-first" : ""}`, {}, h("div.work", {}, bar, place), beside));

  let current = null, form = null, ahead = [], past = [], isOver = false, done = app.me.mine.done;
  let shownAt = 0, seconds = 0, timers = [], filling = false, refusal = null, countedAt = -Infinity, isDone = false;
  const decided = new Set(); // two answers of the server may have brought the same item; one of them is late

  outbox.inHand = () => [current, ...ahead].filter(Boolean).map(({ item }) => item.id);
  outbox.wantsNext = () => !ahead.length && (!current || isQuick(current.item));

  const draftName = (item) => `draft.${item.id}`;
  const goalOf = (item) => item.payload.procedure.goal || item.payload.procedure.steps[0];

  /** Time counts only while the page can be seen. A machine that slept has leases to renew. */
  function clock() {
    if (document.hidden) {
      seconds += (performance.now() - shownAt) / 1000;
      shownAt = Infinity;
    } else {
      shownAt = performance.now();
      renew().catch(() => {});
    }
  }
  const spent = () => Math.round((seconds + Math.max(0, performance.now() - shownAt) / 1000) * 10) / 10;

  function show(next) {
    current = next;
    refusal?.remove();
    const { item } = current;
    seconds = 0;
    shownAt = performance.now();
    const desk = {
      item,
      payload: item.payload,
      answer: current.answer,
      draft: storage.get(draftName(item)),
      keep(state) {
        refusal?.remove(); // it may hold no longer
        if (!isOver) storage.set(draftName(item), state);
      },
      decide,
      cap: (name) => keyboard.cap(name),
      refuse: (what, fix) => (refusal = explain({ what, fix }, form?.element ?? place)),
      gridFirst,
    };
    form = formOf(desk);
    const title = h("h1", { tabindex: -1 }, question(item));
    place.replaceChildren(h("header.lead", {}, h("p.facts", {}, kindName(item.kind)), title, advice(item) ? h("p", {}, advice(item)) : null), form.element);
    place.dataset.item = item.id;
    if (form.focus) form.focus();
    else title.focus(); // so that it is read aloud
    scrollTo(0, 0);
    tell();
  }
  function tell() {
    const stage = app.me.stages.find(({ state }) => state === "open");
    status.textContent = [`You have answered ${counted(done, "question")}.`, stage ? `In this part of the project, ${stage.decided} of ${stage.items} questions have all the answers they need.` : ""].filter(Boolean).join(" ");
    undo.disabled = past.length === 0;
    skip.disabled = current === null;
    place.dataset.ahead = ahead.length;
    const { version } = app.me.guideline;
    if (beside.dataset.version !== String(version)) showGuideline(beside, app.me.guideline);
  }
  function wait(words, ...more) {
    current = form = null;
    refusal?.remove();
    delete place.dataset.item;
    place.replaceChildren(h("section.rest", {}, h("p", {}, words), more));
    tell();
  }
  function nothingLeft() {
    const isFree = document.activeElement === document.body || place.contains(document.activeElement);
    isDone = app.me.stages.every(({ state }) => state === "done");
    const now = isDone ? null : button("Check now", lookForMore);
    const isPrepared = !app.me.stage && app.me.stages.some(({ state }) => state === "waiting");
    const words = app.me.stage ? "There are no questions for you at the moment. Thank you!" : isPrepared ? "The next questions are being prepared." : "This project is finished. Thank you!";
    const onwards = app.me.member.role === "owner" ? link("?progress", "Go to Progress") : null; // only owners open stages
    wait(isDone ? words : `${words} New questions appear here by themselves.`, h("p.actions", {}, now, onwards));
    if (isFree) (now ?? onwards)?.focus();
  }

  /** Decide the item on the desk, and put the next one there. */
  async function decide(answer) {
    const { item } = current;
    const decision = { id: newId(), item: item.id, answer, seconds: spent() };
    const sent = outbox.add({ id: decision.id, path: "/annotation/decisions", body: decision, about: `${kindName(item.kind)} of “${goalOf(item)}”` });
    storage.remove(draftName(item));
    past = [...past, { id: decision.id, item, answer }].slice(-UNDOABLE);
    done += 1;
    decided.add(item.id);
    showNext();
    try {
      take((await sent)?.next);
    } catch {
      done -= 1;
      decided.delete(item.id);
      past = past.filter(({ id }) => id !== decision.id); // the outbox shows why it was refused
      tell();
    }
    if (!outbox.entries().length) await fill();
    await count();
    if (item.kind === "author" && decided.has(item.id)) await remind(item, answer);
  }
  /** How far the stage is: not after every quick decision, because the server counts the whole stage. */
  async function count() {
    if (performance.now() - countedAt < COUNT * 1000 || isOver) return;
    countedAt = performance.now();
    await app.meet().catch(() => {}); // no connection: again later
    tell();
  }
  /** What the draft mentions and the author did not: the answer is kept, so that it cannot lead them any more. */
  async function remind(item, answer) {
    const { prompts } = await get("/annotation/recall", { item: item.id }).catch(() => ({ prompts: [] }));
    if (!prompts.length || isOver || !decided.has(item.id)) return;
    const again = button("Look again", () => {
      note.remove();
      if (current) ahead.unshift(current);
      decided.delete(item.id);
      done -= 1;
      show({ item, answer });
    });
    const note = h("p.coach.reminder", { role: "status" }, "Your answer is saved. You did not mention ", h("b", {}, prompts.map(({ entity }) => entity).join(", ")), ` in “${goalOf(item)}”. `, again, button("Dismiss", () => note.remove(), { kind: "plain" }));
    bar.parentElement.querySelector(".reminder")?.remove();
    bar.after(note);
  }
  function showNext() {
    current = null;
    if (ahead.length) show(ahead.shift());
    else wait("Loading the next question …");
  }
  /** An item that the server gave: on the desk, or beside it. */
  function take(next) {
    if (!next || decided.has(next.item.id) || outbox.inHand().includes(next.item.id)) return;
    if (isOver) release(next);
    else if (current) ahead.push(next);
    else show(next);
    tell();
  }
  const ask = (body = {}) => {
    const unsent = outbox.entries().map((entry) => entry.body.item).filter(Boolean);
    return post("/annotation/next", { besides: [...outbox.inHand(), ...unsent], ...body });
  };
  /** Ask for what the desk lacks: an item, and for quick kinds another one. */
  async function fill() {
    if (filling || isOver) return;
    filling = true;
    try {
      if (!current) take(await ask());
      if (!current && !isOver) {
        await app.meet(); // how far the stage is, with the last decision
        nothingLeft();
      }
      for (let tries = 0; tries < 3 && current && !isOver && outbox.wantsNext(); tries += 1) {
        const next = await ask();
        if (!next) break;
        take(next); // not if the answer to a decision brought the same one meanwhile: then another
      }
    } finally {
      filling = false;
    }
  }
  const release = ({ item }) => post(`/annotation/items/${item.id}/release`, {}, { keepalive: true }).catch(() => {}); // else the lease ends by itself

  async function leaveOut() {
    if (!current) return;
    const left = current.item.id;
    showNext();
    take(await ask({ release: left, besides: [...outbox.inHand(), left] }));
    await fill();
  }
  async function takeBack() {
    const last = past.at(-1);
    if (!last) return;
    const item = last.item ?? (await get(`/annotation/items/${last.of}`)).item;
    past = past.filter((one) => one !== last);
    const id = newId();
    const sent = outbox.add({ id, path: `/annotation/decisions/${last.id}/undo`, body: { id }, about: `Undo of “${goalOf(item)}”` });
    if (current) ahead.unshift(current);
    done -= 1;
    decided.delete(item.id);
    show({ item, answer: last.answer });
    sent.catch(async () => {
      done += 1; // the outbox shows why it was refused: the decision stands
      decided.add(item.id);
      storage.remove(draftName(item));
      if (current?.item.id !== item.id) return;
      showNext();
      await fill();
    });
  }
  function showKeys() {
    const common = [{ name: "undo", label: "Undo the last answer" }, { name: "skip", label: "Skip this question" }, { name: "help", label: "Show the keys" }];
    keyboard.showHelp([...(form?.actions ?? []), ...common], app.saveKeys);
  }
  function pressed(event) {
    const focused = event.target;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form?.finish && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      form.finish();
      return;
    }
    if (event.key === "Escape" && focused.matches?.("input, select")) focused.blur();
    if (isTakenByFocus(event)) return;
    const name = keyboard.action(event);
    const act = form?.actions.find((one) => one.name === name)?.act ?? { undo: takeBack, skip: leaveOut, help: showKeys }[name];
    if (!act) return;
    event.preventDefault();
    if (event.repeat && !["up", "down", "left", "right"].includes(name)) return; // a key that stays down decides one item
    Promise.resolve(act()).catch((error) => explain(error, place));
  }
  /** Keep what is in hand, and hear what is new: another guideline, how far the others are. */
  async function renew() {
    const held = [current, ...ahead].filter(Boolean);
    await Promise.allSettled(held.map(({ item }) => post(`/annotation/items/${item.id}/renew`)));
    await app.meet();
    tell();
  }
  async function lookForMore() {
    if (current || document.hidden || outbox.entries().length || isDone) return;
    await fill();
  }
  const regularly = (act, pause) => setInterval(() => act().catch(() => {}), pause * 1000); // no connection: again later

  document.addEventListener("keydown", pressed);
  document.addEventListener("visibilitychange", clock);
  timers = [regularly(renew, RENEWAL), regularly(lookForMore, LOOK)];
  const end = () => ahead.splice(0).forEach(release);
  addEventListener("pagehide", end);

  const mine = await get("/annotation/mine", { limit: UNDOABLE });
  past = mine.filter((one) => one.stage === app.me.stage?.number && !one.undone && !one.adjudicates && !one.checks).map(({ id, item, answer }) => ({ id, of: item, answer })).reverse();
  wait("Looking for a question …");
  setTimeout(() => fill().catch((error) => explain(error, place))); // after the page is in its place, so that it can take the focus

  return () => {
    isOver = true;
    timers.forEach(clearInterval);
    document.removeEventListener("keydown", pressed);
    document.removeEventListener("visibilitychange", clock);
    removeEventListener("pagehide", end);
    end();
    outbox.wantsNext = () => false;
    outbox.inHand = () => [];
  };
}

function showGuideline(beside, { version, text }) {
  const isBeside = matchMedia("(min-width: 75rem)").matches;
  beside.dataset.version = version;
  beside.replaceChildren(h("details", { open: isBeside }, h("summary", {}, text.trim() ? `Guideline, version ${version}` : "Guideline"), text.trim() ? guidelineText(text) : h("p.nothing", {}, "There is no guideline yet.")));
}
