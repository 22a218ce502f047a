// Filters what the views show. The rest of a trace works without a script.
const fold = (text) => text.normalize("NFKC").toLowerCase();
const reaches = (element, kind, least) => !(kind in element.dataset) || Number(element.dataset[kind]) >= least;

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
          change.hidden = !meant || !passes(change);
          here += change.hidden ? 0 : 1;
          allChanges += 1;
        }
        group.hidden = here === 0;
        if (here > 0) names.add(group.querySelector(".name").textContent);
        changes += here;
      }
      const isKept = (place) => names.has(place.querySelector(".name").textContent);
      for (const line of article.querySelectorAll("tbody.lifeline")) {
        line.hidden = !isKept(line);
        for (const track of line.rows) {
          const bands = [...track.querySelectorAll(".band")];
          for (const band of bands) band.classList.toggle("out", !passes(band));
          track.hidden = track !== line.rows[0] && bands.every((band) => band.classList.contains("out"));
        }
      }
      for (const row of article.querySelectorAll("tr.entity")) {
        row.hidden = row.nextElementSibling.hidden = !isKept(row);
        for (const said of row.querySelectorAll(".gist")) said.hidden = !passes(said);
        for (const event of row.nextElementSibling.querySelectorAll(".event")) event.hidden = !passes(event);
        entities += row.hidden ? 0 : 1;
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
