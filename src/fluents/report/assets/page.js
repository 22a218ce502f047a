// Filters entities by name. All else on the page works without a script.
"use strict";
(() => {
  const box = document.getElementById("filter");
  const found = document.querySelector("output");
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  const articles = [...document.querySelectorAll("article")].map((article) => ({
    article,
    link: document.querySelector(`nav a[href="#${article.id}"]`)?.parentElement,
    rows: [...article.querySelectorAll("tr.entity")].map((row) => ({
      row,
      history: row.nextElementSibling,
      names: fold([...row.cells[0].querySelectorAll("bdi")].map((name) => name.textContent).join("\n")),
    })),
  }));
  const total = articles.reduce((sum, { rows }) => sum + rows.length, 0);

  function filter() {
    const wanted = fold(box.value.trim());
    let shown = 0;
    for (const { article, link, rows } of articles) {
      let here = 0;
      for (const { row, history, names } of rows) {
        row.hidden = history.hidden = !names.includes(wanted);
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
