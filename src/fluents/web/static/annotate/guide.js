// The guideline: beside an item, on a page of its own, and on paper.

import { h } from "../elements.js";

/** Text with headings (#), lists (-), quotes (>), **bold** and `code`, and nothing else, as elements. */
export function guidelineText(text) {
  const parts = [];
  for (const block of text.replaceAll("\r", "").split(/\n\s*\n/)) {
    let list = null, words = [];
    const flush = () => {
      if (words.length) parts.push(h("p", {}, inline(words.join(" "))));
      words = [];
    };
    for (const line of block.split("\n")) {
      const [, marks, title] = line.match(/^(#{1,4})\s+(.*)$/) ?? [];
      const [, sign, item] = line.match(/^\s*([-*]|\d+[.)])\s+(.*)$/) ?? [];
      if (marks) {
        flush();
        list = null;
        parts.push(h(marks.length === 1 ? "h2" : "h3", {}, inline(title)));
      } else if (sign) {
        flush();
        const tag = /\d/.test(sign) ? "ol" : "ul";
        if (list?.localName !== tag) parts.push((list = h(tag)));
        list.append(h("li", {}, inline(item)));
      } else if (list && /^\s+\S/.test(line)) {
        list.lastChild.append(" ", ...inline(line.trim()));
      } else if (line.trim()) {
        list = null;
        words.push(line.trim());
      }
    }
    flush();
  }
  return h("div.guideline-text", {}, parts);
}

const inline = (text) => text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).filter(Boolean).map((part) => {
  if (part.startsWith("**") && part.length > 4) return h("b", {}, part.slice(2, -2));
  if (part.startsWith("`") && part.length > 2) return h("code", {}, part.slice(1, -1));
  return part;
});

export function showGuide(page, app) {
  const { guideline, project } = app.me;
  page.append(h("article.guideline", {}, h("header.lead", {}, h("h1", {}, h("bdi", {}, project.name)), h("p.facts", {}, `Guideline, version ${guideline.version}`)),
    guideline.text.trim() ? guidelineText(guideline.text) : h("p.nothing", {}, "The owner of the project has not written a guideline.")));
}
