// The page of `fluents annotate`: which view an address shows. Addresses are ?join#CODE, ?work, ?grid, ?adjudicate,
// ?progress, ?audit and ?guide; without one, people begin where their role has most to do.

import { get, remove, replace } from "../api.js";
import { button, capital, counted, explain, h, link } from "../elements.js";
import { showAdjudication } from "./adjudication.js";
import { showAudit } from "./audit.js";
import { WRITTEN } from "./forms.js";
import { showGuide } from "./guide.js";
import { showConsent, showJoin, showSignIn } from "./join.js";
import { Keyboard } from "./keyboard.js";
import { MemberStorage } from "./member_storage.js";
import { Outbox } from "./outbox.js";
import { showProgress } from "./progress.js";
import { showWork } from "./work.js";

const content = document.getElementById("content");
const nav = document.querySelector(".bar nav");
const saving = document.querySelector(".saving");
const lost = document.querySelector(".lost");
const refused = document.querySelector(".refused");
let leave = () => {};
let turn = 0;

const ALL = ["annotator", "adjudicator", "owner"];
const VIEWS = {
  work: { title: "Work", roles: ALL, view: showWork },
  grid: { title: "Grid", roles: ALL, view: (page, app) => showWork(page, app, { gridFirst: true }) },
  guide: { title: "Guideline", roles: ALL, view: showGuide },
  adjudicate: { title: "Disagreements", roles: ["adjudicator", "owner"], view: showAdjudication },
  progress: { title: "Progress", roles: ["owner"], view: showProgress },
  audit: { title: "Audit log", roles: ["owner"], view: showAudit },
};

const app = {
  /** Who works here, and on what: the answer to GET /me. */
  me: null,
  outbox: null,
  storage: null,
  keyboard: new Keyboard(),
  go(address) {
    history.pushState({}, "", address);
    return show();
  },
  /** Ask who this is, and how far the project has come. */
  async meet() {
    const me = await get("/annotation/me");
    if (app.me && app.me.member.id !== me.member.id) return location.reload(); // another window signed in as somebody else
    app.me = me;
    app.keyboard.use(me.keys);
    if (!app.storage) {
      app.storage = new MemberStorage(me.member.id);
      app.outbox = new Outbox(app.storage, showSaving);
      app.outbox.flush();
    }
    return undefined;
  },
  async saveKeys(own) {
    app.me.keys = own;
    await replace("/annotation/me/keys", own);
    for (const cap of document.querySelectorAll("kbd[data-action]")) cap.replaceWith(app.keyboard.cap(cap.dataset.action));
  },
};

async function show() {
  const mine = ++turn;
  const [[kind] = [""]] = [...new URLSearchParams(location.search)];
  leave();
  leave = () => {};
  const page = h("div.page");
  try {
    const left = await open(page, kind);
    if (mine !== turn) return left?.();
    leave = left ?? leave;
  } catch (error) {
    if (mine !== turn) return;
    page.replaceChildren(h("h1", {}, "This page cannot be shown"));
    explain(error, page);
    page.append(h("p.actions", {}, button("Try again", show)));
  }
  content.replaceChildren(page);
  page.querySelector("[data-begin]")?.focus();
  scrollTo(0, 0);
}

async function open(page, kind) {
  if (kind === "join") return showJoin(page);
  try {
    if (!app.me) await app.meet();
  } catch (error) {
    if (error.status === 401) return showSignIn(page);
    throw error;
  }
  const { me } = app;
  const home = me.member.role === "owner" ? "progress" : "work"; // an owner who looks in holds no item
  const view = VIEWS[kind]?.roles.includes(me.member.role) ? kind : home;
  document.title = `${VIEWS[view].title} · ${me.project.name}`;
  showNavigation(view);
  if (me.consent && !me.consented) return showConsent(page, app);
  return VIEWS[view].view(page, app);
}

function showNavigation(current) {
  const { member, project } = app.me;
  const isWritten = WRITTEN.includes(app.me.stage?.kind);
  const open = Object.entries(VIEWS).filter(([kind, { roles }]) => roles.includes(member.role) && (kind !== "grid" || isWritten));
  nav.replaceChildren(
    ...open.map(([kind, { title }]) => h("a", { href: `?${kind}`, "aria-current": kind === current ? "page" : null }, title)),
    h("details.menu.member", {}, h("summary", {}, h("bdi", {}, member.name)), h("div.sheet-below", {},
      h("p", {}, h("bdi", {}, project.name)), h("p.hint", {}, capital(member.role)),
      button("Sign out", async () => {
        await remove("/annotation/session");
        location.assign(location.pathname);
      }))),
  );
}

/** What is saved, what is not yet, and what the server did not take. */
function showSaving(outbox) {
  const left = outbox.entries().length;
  const at = outbox.savedAt?.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  saving.textContent = left ? (outbox.isLost ? `${counted(left, "answer")} not saved yet` : "saving …") : at ? `saved ✓ ${at}` : "";
  saving.classList.toggle("unsaved", left > 0);
  lost.hidden = !(outbox.isLost || outbox.isSignedOut || !app.storage.lasts) || !left;
  const kept = app.storage.lasts ? "Your answers are stored in this browser. They will be sent" : "This browser cannot store your answers, so keep this page open. They will be sent";
  if (outbox.isSignedOut) {
    lost.replaceChildren(`You are signed out. ${counted(left, "answer")} will be sent when you sign in again. `, link(location.pathname, "Sign in"));
  } else {
    lost.replaceChildren(h("b", {}, "No connection. "), `${kept} when the server answers again. ${counted(left, "answer")} to send.`);
  }
  refused.replaceChildren(...outbox.refused().map((entry) => h("p.problem", { role: "alert" },
    h("b", {}, "Not saved: "), entry.about, ". ", capital(entry.problem.what), ". ", entry.problem.fix ? `${capital(entry.problem.fix)}. ` : "",
    button("Send again", () => outbox.sendAgain(entry).catch(() => {}), { kind: "plain" }), button("Discard", () => outbox.discard(entry), { kind: "plain" }))));
}

document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a[href^='?']");
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!anchor || !plain || anchor.target || anchor.hasAttribute("download")) return;
  event.preventDefault();
  app.go(anchor.getAttribute("href")).then(() => content.contains(document.activeElement) || content.focus({ preventScroll: true }));
});
addEventListener("popstate", show);
addEventListener("hashchange", () => location.search.startsWith("?join") && show()); // another invitation in the same window

show();
