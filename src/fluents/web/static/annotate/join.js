// How somebody comes in: by an invitation, or again by the token it gave them; and what they agree to.

import { post } from "../api.js";
import { button, explain, h } from "../elements.js";
import { guidelineText } from "./guide.js";

function entrance(title, act, ...children) {
  const form = h("form.panel.narrow", {}, h("h1", {}, title), children);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await act(form);
    } catch (error) {
      explain(error, form);
    }
  });
  return form;
}

/** Load the page anew: nothing of somebody who was here before stays in it. */
const comeIn = () => location.assign(location.pathname);

export function showJoin(page) {
  const code = location.hash.slice(1);
  const invitation = h("input", { id: "invitation", value: code, required: true, autocomplete: "off" });
  const name = h("input", { id: "name", required: true, maxlength: 100, autocomplete: "name", "data-begin": true });
  const about = h("p", {}, "You were invited to annotate. Enter a name by which the person who invited you knows you.");
  page.replaceChildren(entrance("Join", async (form) => {
    const joined = await post("/annotation/join", { invitation: invitation.value.trim(), name: name.value.trim() });
    history.replaceState({}, "", "?join"); // the invitation need not stay in the address
    const start = button("Start", () => comeIn(), { kind: "primary" });
    form.replaceChildren(h("h1", {}, "Welcome, ", h("bdi", {}, name.value.trim())),
      h("p", {}, "This browser remembers you. To sign in from another browser, you need this token. Copy it now: it is not shown again."),
      h("p", {}, h("code.secret", { tabindex: 0 }, joined.token)), h("p.actions", {}, start));
    start.focus();
  },
  about,
  h("label.field", { for: "name" }, "Your name ", name),
  h("label.field", { for: "invitation", hidden: code !== "" }, "Invitation code ", invitation),
  h("p.actions", {}, h("button.primary", { type: "submit" }, "Join"), button("Sign in with a token", () => showSignIn(page), { kind: "plain" }))));
  if (code) tellAbout(code, about, name).catch((error) => explain(error, about));
}

/** Which project the invitation is for, and what the person may do there. Members who come back keep their name. */
async function tellAbout(code, about, box) {
  const { project, role, name } = await post("/annotation/join/about", { invitation: code });
  about.replaceChildren("You were invited to the project ", h("b", {}, h("bdi", {}, project)), ` as an ${role}. `,
    ...(name ? ["You joined before as ", h("bdi", {}, name), "."] : ["Enter a name by which the person who invited you knows you."]));
  if (!name) return;
  box.value = name;
  box.readOnly = true;
}

export function showSignIn(page) {
  const token = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true, "data-begin": true });
  page.replaceChildren(entrance("Sign in", async () => {
    await post("/annotation/session", { token: token.value.trim() });
    comeIn();
  },
  h("p", {}, "If you have joined before, enter the token that the page showed you then. Otherwise, open the link with which you were invited."),
  h("input", { type: "text", name: "username", value: "fluents", autocomplete: "username", hidden: true }), // for the browser's keychain
  h("label.field", { for: "token" }, "Token ", token),
  h("p.actions", {}, h("button.primary", { type: "submit" }, "Sign in"))));
  token.focus();
}

export function showConsent(page, app) {
  page.replaceChildren(h("section.panel.consent", {}, h("h1", {}, "Before you start"), guidelineText(app.me.consent),
    h("p.actions", {}, button("I agree", async () => {
      await post("/annotation/me/consent");
      comeIn();
    }, { kind: "primary", "data-begin": true })),
    h("p.hint", {}, "If you do not agree, close this page. So far, only your name has been stored.")));
}
