// A page of results or of a leaderboard: filters, details of cells. Without it the page is still whole.
"use strict";

(() => {
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const chosen = {method: new Set(), bits: new Set()};
  const root = document.documentElement;

  // -- tables: sorted by sorting.js ----------------------------------------------------------------

  // A heading of a kind of loss stands only over rows of its own that are shown.
  function showFamilies(table) {
    const sorted = table.querySelector("th[aria-sort=ascending], th[aria-sort=descending]");
    for (const heading of all("tr.family", table)) {
      const rows = [...heading.parentElement.rows].filter(row => row !== heading);
      heading.hidden = Boolean(sorted) || rows.every(row => row.hidden);
    }
  }

  const scores = all("table.scores");
  for (const table of scores) {
    table.addEventListener("sorted", () => {
      showFamilies(table);
      keepOneStop(table);
    });
  }

  // -- tables: details of a cell ------------------------------------------------------------------

  const details = document.createElement("div");
  Object.assign(details, {id: "details", className: "details screen", role: "tooltip", popover: "manual"});
  document.querySelector("main").append(details);
  let described = null;

  function showDetails(value) {
    if (described !== value) hideDetails();
    described = value;
    details.textContent = value.about;
    value.setAttribute("aria-describedby", "details");
    const at = value.closest("td").getBoundingClientRect();
    const seen = at.bottom > 0 && at.top < innerHeight;
    if (details.matches(":popover-open") !== seen) details.togglePopover(seen);
    const size = details.getBoundingClientRect();
    const below = at.bottom + 4 + size.height < innerHeight;
    details.style.top = `${Math.max(4, below ? at.bottom + 4 : at.top - 4 - size.height)}px`;
    details.style.left = `${Math.max(8, Math.min(at.right - size.width, innerWidth - size.width - 8))}px`;
  }

  function hideDetails() {
    described?.removeAttribute("aria-describedby");
    described = null;
    if (details.matches(":popover-open")) details.hidePopover();
  }

  // One stop for the tab key in each table of scores, its first score; arrow keys go on from there.
  function keepOneStop(table) {
    const values = all("tr[data-method] .value, tr.uncoded .value", table);
    for (const value of values) value.tabIndex = -1;
    const first = values.find(value => value.offsetParent);
    if (first) first.tabIndex = 0;
  }

  function step(value, key) {
    const cell = value.closest("td");
    const row = cell.parentElement;
    const inRow = cells =>
      cells.map(other => other.querySelector(".value")).filter(other => other?.offsetParent);
    const across = inRow([...row.cells]);
    const place = across.indexOf(value);
    const down = inRow(
      all("tr[data-method], tr.uncoded", row.closest("table")).map(other => other.cells[cell.cellIndex]),
    );
    const next = {
      ArrowLeft: across[place - 1],
      ArrowRight: across[place + 1],
      ArrowUp: down[down.indexOf(value) - 1],
      ArrowDown: down[down.indexOf(value) + 1],
      Home: across[0],
      End: across.at(-1),
    }[key];
    if (!next || next === value) return Boolean(next);
    for (const other of all(".value", row.closest("table"))) other.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    return true;
  }

  for (const cell of all(".scores td[title]")) {
    const value = document.createElement("button");
    value.type = "button";
    value.className = "value";
    value.tabIndex = -1;
    value.about = cell.title;
    cell.removeAttribute("title");
    // A note stays outside: a link cannot stand in a button.
    const inside = [...cell.childNodes].filter(node => !["SUP", "SMALL"].includes(node.nodeName));
    value.append(...inside);
    cell.prepend(value);
    value.addEventListener("pointerenter", () => showDetails(value));
    value.addEventListener("pointerleave", event => event.relatedTarget !== details && hideDetails());
    value.addEventListener("focus", () => showDetails(value));
    value.addEventListener("blur", hideDetails);
    value.addEventListener("click", () => showDetails(value));
    value.addEventListener("keydown", event => {
      if (step(value, event.key)) event.preventDefault();
    });
  }
  details.addEventListener("pointerleave", hideDetails);
  addEventListener("keydown", event => event.key === "Escape" && hideDetails());
  // The table may scroll under a cell in focus, by the focus itself.
  addEventListener("scroll", () => described && showDetails(described), {capture: true, passive: true});
  for (const table of scores) keepOneStop(table);

  // -- filters ------------------------------------------------------------------------------------

  const filter = document.getElementById("filter");
  for (const box of all("[name]", filter)) chosen[box.name].add(box.value);
  const everything = {method: chosen.method.size, bits: chosen.bits.size};

  function applyFilter() {
    for (const name of ["method", "bits"]) {
      chosen[name] = new Set(all(`[name=${name}]:checked`, filter).map(box => box.value));
    }
    for (const row of all("tr[data-method]")) {
      // Rows of runs and of health are about one code length, in the third column.
      const bits = row.closest(".runs, .health") && row.cells[2].textContent;
      row.hidden =
        !chosen.method.has(row.dataset.method) ||
        Boolean(bits && !chosen.bits.has(bits)) ||
        Boolean(row.unfound);
    }
    for (const table of scores) {
      const headings = all("th:has([data-column])", table);
      const hidden = headings.map(({dataset}) => Boolean(dataset.bits) && !chosen.bits.has(dataset.bits));
      const rows = all("tr[data-method], tr.uncoded", table).map(row => [...row.cells]);
      for (const cells of [headings, ...rows]) hidden.forEach((is, column) => (cells[column].hidden = is));
      let start = 1;
      for (const group of all("thead [colspan]", table)) {
        group.columns ??= group.colSpan;
        const shown = hidden.slice(start, start + group.columns).filter(is => !is).length;
        group.hidden = shown === 0;
        if (shown) group.colSpan = shown;
        start += group.columns;
      }
      for (const heading of all("tr.family th", table)) heading.colSpan = hidden.filter(is => !is).length;
      showFamilies(table);
      keepOneStop(table);
    }
    const methods = chosen.method.size;
    const bits = chosen.bits.size;
    const whole = methods === everything.method && bits === everything.bits;
    document.getElementById("filtered").textContent = whole
      ? "all"
      : `${methods} of ${everything.method} methods, ${bits} of ${everything.bits} code lengths; ` +
        "bold and underlined refer to all";
    for (const search of all("[data-searches]")) countRuns(search);
    figures.filter(chosen.method, chosen.bits);
  }

  filter.addEventListener("change", applyFilter);
  filter.addEventListener("submit", event => event.preventDefault());
  for (const button of all("[data-check]", filter)) {
    button.addEventListener("click", () => {
      for (const box of all(`[name=${button.dataset.of}]`, filter))
        box.checked = Boolean(button.dataset.check);
      applyFilter();
    });
  }
  // A long list of methods would take the place of what it filters, as does any on a phone.
  if (innerWidth < 640 || filter.offsetHeight > innerHeight / 4) filter.querySelector("details").open = false;
  new ResizeObserver(() => root.style.setProperty("--bar", `${filter.offsetHeight + 8}px`)).observe(filter);

  for (const box of all("[data-shows=published]")) {
    const show = () => box.closest("article").classList.toggle("unpublished", !box.checked);
    box.addEventListener("change", show);
    show();
  }

  // The files of a run, instead of a link to their folder: written out, they would be a tenth of a large page.
  for (const table of all("table.runs")) {
    const names = table.dataset.files.split(" ");
    for (const link of all("td:last-child a[href$='/']", table)) {
      const links = names.map(name => {
        const own = document.createElement("a");
        own.href = link.getAttribute("href") + name;
        own.textContent = name.split(".")[0];
        return own;
      });
      link.replaceWith(...links.flatMap((own, nth) => (nth ? [" ", own] : [own])));
    }
    for (const link of all("td:last-child a[href^='#']", table)) {
      link.href = document.querySelector(`${link.getAttribute("href")} a`).href;
    }
  }

  function countRuns(search) {
    const rows = [...document.getElementById(search.dataset.searches).tBodies[0].rows];
    const shown = rows.filter(row => !row.hidden).length;
    search.parentElement.querySelector("[role=status]").textContent = `${shown} of ${rows.length} runs`;
  }

  for (const search of all("[data-searches]")) {
    const rows = [...document.getElementById(search.dataset.searches).tBodies[0].rows];
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        row.text ??= row.textContent.toLowerCase();
        row.unfound = !words.every(word => row.text.includes(word));
      }
      applyFilter();
    });
  }

  // Browsers may keep ticked boxes over a reload.
  applyFilter();
})();
