// Ask a trace something, or let a planner find its steps again.

import { post } from "./api.js";
import { button, counted, h } from "./elements.js";

const SIGNS = { "more likely": "↑", "less likely": "↓", "no change": "=", "cannot tell": "?" };

export function questionPanel(id, trace) {
  const box = h("input", { name: "question", placeholder: "The pot is hot", required: true, maxlength: 1000, autocomplete: "off" });
  const answer = h("div.answer", { "aria-live": "polite" });
  const send = button("Ask", async () => {
    if (!box.reportValidity()) return;
    const found = await post(`/traces/${id}/ask`, { question: box.value });
    answer.replaceChildren(h("ol.likelihoods", {}, found.likelihoods.map((one) =>
      h("li", {}, h("b", {}, one.step === 0 ? "Before" : `Step ${one.step}`),
        one.step === 0 ? h("span.sign") : h("span.sign", { title: one.change }, h("span", { "aria-hidden": "true" }, SIGNS[one.change] ?? "·"), ` ${one.change}`),
        one.rating ? h("span.rating", { title: "from 1, impossible, to 5, certain" }, h("meter", { min: 1, max: 5, value: one.rating, "aria-hidden": "true" }), ` ${one.rating.toFixed(1)} of 5`) : null,
        h("small", {}, one.reason ?? (one.step ? trace.procedure.steps[one.step - 1] : ""))))));
  }, { kind: "primary" });
  return h("form.panel-in", { onsubmit: (event) => { event.preventDefault(); send.click(); } },
    h("label.field", {}, "How likely is it, after each step, that … ", box), h("p.actions", {}, send), answer);
}

const OUTCOMES = { solved: "A plan was found", unsolvable: "No plan reaches the goal", "gave-up": "The planner gave up" };

export function planPanel(id, trace) {
  const answer = h("div.answer", { "aria-live": "polite" });
  const find = button("Find a plan", async () => {
    const found = await post(`/traces/${id}/plan`, {});
    answer.replaceChildren(h("div", {},
      h("p", {}, h("b", {}, OUTCOMES[found.status] ?? found.status), found.reason ? `: ${found.reason}` : "", ` (planner: ${found.planner})`),
      found.steps.length ? h("ol.plan", {}, found.steps.map((step) => h("li", { value: step }, trace.procedure.steps[step - 1] ?? ""))) : null,
      found.steps.length ? h("p.hint", {}, `The plan uses ${found.steps.length} of the ${counted(trace.procedure.steps.length, "step")}. Each step keeps its number from the text.`) : null,
      found.unreachable.length ? h("p.hint", {}, "Cannot be reached: ", found.unreachable.map((fact) => Object.values(fact).join(" ")).join("; ")) : null,
    ));
  }, { kind: "primary" });
  return h("section.panel-in", {}, h("p.hint", {}, "The steps become actions with preconditions and effects. A planner then looks for steps that lead to the final states of the important entities."), h("p.actions", {}, find), answer);
}
