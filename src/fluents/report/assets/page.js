// Filters entities by name. All else on the page works without a script.
"use strict";
(() => {
  const box = document.getElementById("filter");
  const found = document.querySelector("output");
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const names = (place) => fold([...place.querySelectorAll(".name, .wording bdi")].map((name) => name.textContent).join("\n"));
  const articles = [...document.querySelectorAll("article")].map((article) => ({
    article,
    link: document.querySelector(`nav a[href="#${article.id}"]`)?.parentElement,
    groups: [...article.querySelectorAll("li.group")].map((group) => ({ group, names: names(group) })),
    rows: [...article.querySelectorAll("tr.entity")].map((row) => ({
      row,
      history: row.nextElementSibling,
    })),
  }));
  const total = articles.reduce((sum, { rows }) => sum + rows.length, 0);

  function filter() {
    const wanted = fold(box.value.trim());
    let shown = 0;
    for (const { article, link, groups, rows } of articles) {
      let here = 0;
      const kept = new Set();
      for (const { group, names } of groups) {
        group.hidden = !names.includes(wanted);
        if (!group.hidden) kept.add(group.querySelector(".name").textContent);
      }
      for (const { row, history } of rows) {
        row.hidden = history.hidden = !kept.has(row.querySelector(".name").textContent);
        here += row.hidden ? 0 : 1;
      }
      article.hidden = wanted !== "" && here === 0;
      if (link) link.hidden = article.hidden;
      shown += here;
    }
    found.textContent = wanted ? `${shown} of ${total}` : "";
  }

  if (total > 0) {
    box.addEventListener("input", filter);
    box.closest("[hidden]").hidden = false;
    filter(); // a browser may have kept the words across a reload
  }
})();
