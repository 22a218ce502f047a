// Filters what the views show. The rest of a trace works without a script.
const fold = (text) => text.normalize("NFKC").toLowerCase();
const reaches = (element, kind, least) => !(kind in element.dataset) || Number(element.dataset[kind]) >= least;
const hide = (element, hidden) => {
  if (element.hidden !== hidden) element.hidden = hidden; // setting it anew would cost a layout
  return hidden;
};

/** Make the toolbar of a page work. Returns a function that filters anew, for when the page has changed. */
export function follow(page) {
  const bar = page.querySelector(".filters");
  const box = page.querySelector("#filter");
  if (!bar) return () => {};
  const sliders = [...bar.querySelectorAll("input[type=range]")].map((slider) => ({
    slider,
    kind: slider.id.replace("least-", ""),
  }));

  function filter() {
    const wanted = fold(box.value.trim());
    const least = sliders.filter(({ slider }) => Number(slider.value) > 0).map(({ slider, kind }) => [kind, Number(slider.value)]);
    const passes = (element) => least.every(([kind, value]) => reaches(element, kind, value));
    let entities = 0, changes = 0, allEntities = 0, allChanges = 0;
    for (const { slider } of sliders) slider.nextElementSibling.textContent = Number(slider.value).toFixed(slider.max > 1 ? 1 : 2);
    for (const article of page.querySelectorAll("article")) {
      const names = new Set();
      article.classList.toggle("filtered", wanted !== "" || least.length > 0);
      for (const group of article.querySelectorAll("li.group")) {
        const named = [...group.querySelectorAll(".name, .wording bdi")].map((name) => name.textContent).join("\n");
        const meant = fold(named).includes(wanted) && passes(group);
        let here = 0;
        for (const change of group.querySelectorAll("li.change")) {
          here += hide(change, !meant || !passes(change)) ? 0 : 1;
          allChanges += 1;
        }
        hide(group, here === 0);
        if (here > 0) names.add(group.querySelector(".name").textContent);
        changes += here;
      }
      const isKept = (place) => names.has(place.querySelector(".name").textContent);
      for (const line of article.querySelectorAll("tbody.lifeline")) {
        hide(line, !isKept(line));
        for (const track of line.rows) {
          const bands = [...track.querySelectorAll(".band")];
          for (const band of bands) band.classList.toggle("out", !passes(band));
          hide(track, track !== line.rows[0] && bands.every((band) => band.classList.contains("out")));
        }
      }
      for (const row of article.querySelectorAll("tr.entity")) {
        entities += hide(row, hide(row.nextElementSibling, !isKept(row))) ? 0 : 1;
        for (const said of row.querySelectorAll(".gist")) hide(said, !passes(said));
        for (const event of row.nextElementSibling.querySelectorAll(".event")) hide(event, !passes(event));
        allEntities += 1;
      }
      article.hidden = wanted !== "" && names.size === 0;
      const link = page.querySelector(`nav a[href="#${article.id}"]`)?.parentElement;
      if (link) link.hidden = article.hidden;
    }
    const filtered = wanted !== "" || least.length > 0;
    bar.querySelector(".found").textContent = filtered ? `${entities} of ${allEntities} entities, ${changes} of ${allChanges} changes` : "";
  }

  bar.addEventListener("input", filter);
  page.addEventListener("click", (event) => {
    if (event.target.closest(".scroll thead a")) page.querySelector("#view-steps").checked = true; // where it leads
  });
  bar.hidden = false;
  if (box.value || sliders.some(({ slider }) => Number(slider.value) > 0)) filter(); // kept across a reload
  return filter;
}
