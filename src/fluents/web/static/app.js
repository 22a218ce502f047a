// The page: which view an address shows. Addresses are /, /?library, /?document=ID, /?job=ID, /?trace=ID and
// /?compare=GOLD,PRED, so that each can be reloaded, kept as a bookmark, and left with the back button.

import { get, post, remove } from "./api.js";
import { showComparison } from "./comparison.js";
import { showDocument } from "./document.js";
import { button, explain, h } from "./elements.js";
import { showHome } from "./home.js";
import { showJob } from "./job.js";
import { showLibrary } from "./library.js";
import { showTrace } from "./trace_page.js";

const content = document.getElementById("content");
let leave = () => {};
let turn = 0;
let shownAddress = null;

const VIEWS = {
  library: (page, _, app) => showLibrary(page, app),
  document: showDocument,
  job: showJob,
  trace: showTrace,
  compare: showComparison,
};

const app = {
  server: null,
  /** Show another address. `instead` of the present one: out of the history, with the same view and filters. */
  go(address, { instead = false } = {}) {
    history[instead ? "replaceState" : "pushState"]({}, "", address);
    return show(instead);
  },
  title(words) {
    document.title = words ? `${words} · fluents` : "fluents";
  },
};

const signOut = button("Sign out", async () => {
  await remove("/session");
  app.server = null;
  await app.go("/");
}, { kind: "plain", hidden: true });
document.querySelector(".bar nav").append(signOut);

const addressNow = () => location.pathname + location.search;

async function show(instead = false) {
  const mine = ++turn;
  shownAddress = addressNow();
  const [kind, value] = [...new URLSearchParams(location.search)][0] ?? ["home", ""];
  const view = VIEWS[kind] ?? ((page, _, application) => showHome(page, application));
  leave();
  leave = () => {};
  const page = h("div.page");
  app.title("");
  for (const one of document.querySelectorAll(".bar nav a")) {
    if (one.getAttribute("href") === shownAddress) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  try {
    app.server ??= await get("/server");
    signOut.hidden = !(app.server.needs_token && app.server.signed_in);
    const left = app.server.needs_token && !app.server.signed_in ? showSignIn(page) : await view(page, value, app);
    if (mine !== turn) return left?.();
    leave = left ?? leave;
  } catch (error) {
    if (mine !== turn) return;
    const misspelt = error.where?.startsWith("path.") || error.where?.startsWith("query.");
    page.replaceChildren(h("h1", {}, error.status === 404 ? "This is not here any more" : "This cannot be shown"));
    explain(misspelt ? { what: "there is no page at this address", fix: "look for the text in the library" } : error, page);
    page.append(h("p.actions", {}, button("Try again", () => show()), h("a", { href: "/" }, "Go to the start page")));
  }
  const chosen = instead ? [...content.querySelectorAll(".toolbar input")] : [];
  for (const { id, value, checked } of chosen) {
    const box = page.querySelector(`.toolbar #${id}`);
    if (box) Object.assign(box, box.type === "radio" ? { checked } : { value });
  }
  content.replaceChildren(page);
  if (chosen.length) {
    page.querySelector(".filters")?.dispatchEvent(new Event("input"));
    return;
  }
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  else scrollTo(0, 0);
}

function showSignIn(page) {
  const box = h("input", { type: "password", name: "token", id: "token", autocomplete: "current-password", required: true });
  const form = h(
    "form.panel.narrow",
    {
      async onsubmit(event) {
        event.preventDefault();
        try {
          await post("/session", { token: box.value });
          app.server = null;
          await show();
        } catch (error) {
          explain(error, form);
        }
      },
    },
    h("h1", {}, "Sign in"),
    h("p", {}, "This server asks for a token. Whoever started it can give you one."),
    h("input", { type: "text", name: "username", value: "fluents", autocomplete: "username", hidden: true }), // for the browser's keychain
    h("label.field", { for: "token" }, "Token ", box),
    h("p.actions", {}, h("button.primary", { type: "submit" }, "Sign in")),
  );
  page.append(form);
  setTimeout(() => box.focus());
}

document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a[href^='/']");
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!anchor || !plain || anchor.target || anchor.hasAttribute("download") || "plain" in anchor.dataset) return;
  event.preventDefault();
  app.go(anchor.getAttribute("href")).then(() => content.focus({ preventScroll: true }));
});
addEventListener("popstate", () => {
  if (addressNow() !== shownAddress) show(); // else only the step in the address changed
});

show();
