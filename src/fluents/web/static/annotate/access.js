// Who gets into the project, for its owner: links that invite people, and the end of somebody's access.

import { get, post, remove } from "../api.js";
import { button, confirmed, copyButton, counted, h, tell } from "../elements.js";

const day = (time) => new Date(time * 1000).toLocaleDateString("en-GB", { dateStyle: "medium" });
const named = ({ name, pseudonym }) => `${name} (${pseudonym})`;

/** Put new children into an element only if what they show has changed: somebody may be about to press one of them. */
function update(element, shown, make) {
  const now = JSON.stringify(shown);
  if (element.dataset.shown === now) return;
  element.dataset.shown = now;
  element.replaceChildren(...shown.map(make));
}

/** `refresh` counts everything anew. */
export function accessBox(refresh) {
  const uses = h("input", { id: "invited-uses", type: "number", min: 1, max: 1000, value: 1 });
  const many = h("label", { for: "invited-uses" }, "for how many people ", uses);
  const again = h("optgroup", { label: "Member who cannot sign in any more" });
  const whom = h("select", { id: "invited-role", onchange: () => (many.hidden = whom.value.startsWith("A")) }, ["annotator", "adjudicator", "owner"].map((role) => h("option", { value: role }, `New ${role}`)), again);
  const made = h("p.made", { role: "status" });
  const links = h("ul.links", { "aria-label": "Links that still work" });
  const ended = h("select", { id: "ended-member" });
  const end = h("p.actions", { hidden: true }, h("label", { for: "ended-member" }, "End the access of ", ended), button("End access", async () => {
    const who = ended.selectedOptions[0]?.textContent;
    if (!who || !(await confirmed(`End the access of ${who}?`, "End access", "They cannot sign in any more. Their answers are kept.", "Cancel"))) return;
    await remove(`/annotation/people/${ended.value}`);
    tell(`${who} has no access any more.`);
    await refresh();
  }));
  const element = h("div.invite", {}, h("p.actions", {}, h("label", { for: "invited-role" }, "Invite ", whom), many,
    button("Make a link", async () => {
      const { link } = await post("/annotation/invitations", many.hidden ? { member: whom.value } : { role: whom.value, uses: Number(uses.value) });
      made.replaceChildren("Copy this link now and send it, because it is not shown again: ", h("code.secret", { tabindex: 0 }, link), " ", copyButton(link));
      await refresh();
    })), h("p.hint", {}, "Annotators answer questions. Adjudicators can also settle disagreements. Owners can do everything."), made, links, end);

  function linkLine({ id, role, uses: left, member, expires }) {
    const words = `Link for ${member ?? (left === 1 ? `one ${role}` : `${counted(left, role)}`)}, until ${day(expires)}`;
    return h("li", {}, words, " ", button("Revoke", async () => {
      await remove(`/annotation/invitations/${id}`);
      await refresh();
    }, { kind: "plain", "aria-label": `Revoke: ${words}` }));
  }
  return {
    element,
    async know(people) {
      update(again, people.map(({ pseudonym, name }) => ({ pseudonym, name })), (one) => h("option", { value: one.pseudonym }, named(one)));
      update(ended, people.filter(({ access }) => access).map(({ pseudonym, name }) => ({ pseudonym, name })), (one) => h("option", { value: one.pseudonym }, named(one)));
      end.hidden = !ended.children.length;
      update(links, await get("/annotation/invitations"), linkLine);
    },
  };
}
