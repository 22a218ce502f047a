// The procedure that an item is about, and changes in words.

import { changeWords, h } from "../elements.js";

/** Pictures are links, as the page loads nothing from elsewhere. Only web addresses are: anything else might be a script. */
function picture(address, number) {
  if (!/^https?:\/\//i.test(address ?? "")) return null;
  return [" ", h("a.picture", { href: address, target: "_blank", rel: "noreferrer noopener" }, `picture of step ${number}`)];
}

export const stepText = ({ steps, images }, number) => h("p.what", { dir: "auto" }, steps[number - 1], picture(images?.[number - 1], number));

/** Goal and steps. The step in question stands out; `beside` gives what stands under the others. */
export function procedureView(procedure, { step = null, beside = () => null } = {}) {
  return h("section.procedure", { "aria-label": "Procedure" }, h("h2", {}, h("bdi", {}, procedure.goal || "(no goal given)")),
    h("ol.steps", {}, procedure.steps.map((_, at) =>
      h("li.step", { "aria-current": at + 1 === step ? "step" : null }, stepText(procedure, at + 1), beside(at + 1)))));
}

/** "pan — temperature: cold → hot" */
export const changeLine = (change) => [h("bdi.name", {}, change.entity), " ", ...changeWords(change)];

/** The template's sentence. */
export const changeSentence = ({ attribute, entity, before, after }) => h("p.sentence-read", { dir: "auto" },
  h("b", {}, attribute), " of ", h("b", {}, entity), " was ", h("b", {}, before || "—"), " before and ", h("b", {}, after || "—"), " afterwards");
