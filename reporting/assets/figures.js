// Figures of pages: a method is marked in all of them and in tables, methods and code lengths are left out,
// points say their values. All of it is read from the SVG: a group has data-method, data-bits or data-values;
// data-names, what the values are, stands there or on its panel. Without this, figures stand still.
"use strict";

const figures = (() => {
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const svgs = all("figure svg").filter(svg => svg.querySelector("[data-method], [data-values]"));
  const titles = new Map(
    all(".legend [data-method]").map(one => [one.dataset.method, one.textContent.trim()]),
  );
  const said = document.createElement("output");
  const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  const points = new Map();
  document.documentElement.classList.add("js");
  let [chosenBits, marked, kept, shown] = [null, null, null, null];

  // -- a method, everywhere -----------------------------------------------------------------------

  function mark(method) {
    if (method === marked) return;
    marked = method;
    document.documentElement.classList.toggle("marking", method !== null);
    for (const one of all("[data-method]")) one.classList.toggle("marked", one.dataset.method === method);
  }

  function keep(method) {
    kept = kept === method ? null : method;
    mark(kept);
  }

  const about = target => target.closest?.("[data-method]")?.dataset.method ?? kept;
  document.addEventListener("pointerover", event => shown || mark(about(event.target)));
  document.addEventListener("focusin", ({target}) => target.matches(":focus-visible") && mark(about(target)));
  document.addEventListener("click", event => {
    const row = event.target.closest("tr[data-method] > th");
    if (row && !event.target.closest("a, button")) keep(row.parentElement.dataset.method);
  });

  // -- some methods and code lengths --------------------------------------------------------------

  const namesOf = group => group.closest("[data-names]")?.dataset.names.split(";") ?? [];
  const drawn = (selector, group) => all(selector, group).filter(one => !one.closest("defs"));

  function filter(methods, bits) {
    chosenBits = bits;
    points.clear();
    for (const group of svgs.flatMap(svg => all("[data-method], [data-bits]", svg))) {
      const {method, bits: length} = group.dataset;
      const left = (method && !methods.has(method)) || (length && !bits.has(length));
      group.toggleAttribute("hidden", Boolean(left));
    }
    for (const group of svgs.flatMap(svg => all("[data-values]", svg))) {
      if (namesOf(group)[0] !== "bits") continue;
      const lengths = group.dataset.values.split(";").map(row => row.split(" ")[0]);
      drawn("use", group).forEach((use, at) => use.toggleAttribute("hidden", !bits.has(lengths[at])));
    }
    for (const button of all("[data-shows=table][aria-expanded=true]")) fill(button);
  }

  // -- points -------------------------------------------------------------------------------------

  // Where the points of a group are, in the units of the figure: the corners of its line, which is written
  // as steps, else its markers. Bars of equal width have more corners than values, and begin at zero.
  function placesOf(group, rows) {
    const line = drawn("path", group)[0];
    const steps = line?.getAttribute("d").match(/-?\d*\.?\d+/g).map(Number) ?? [];
    if (steps.length === 2 * rows.length) {
      let [x, y] = [0, 0];
      return rows.map((_, at) => [(x += steps[2 * at]), (y += steps[2 * at + 1])]);
    }
    const uses = drawn("use", group);
    if (uses.length === rows.length) return uses.map(use => [use.x.baseVal.value, use.y.baseVal.value]);
    const {x, y, width, height} = line.getBBox();
    const most = Math.max(...rows.map(row => row.at(-1)));
    const bar = width / rows.length;
    return rows.map((row, at) => [x + (at + 0.5) * bar, y + height * (1 - row.at(-1) / most)]);
  }

  function pointsOf(svg) {
    if (points.has(svg)) return points.get(svg);
    const found = [];
    for (const [of, group] of all("[data-values]", svg).entries()) {
      if (group.closest("[hidden]")) continue;
      const method = group.closest("[data-method]")?.dataset.method ?? null;
      const panel = group.closest("[data-panel]")?.dataset.panel;
      const where = [titles.get(method) ?? method, panel, group.dataset.label].filter(Boolean);
      const about = {of, method, where, names: namesOf(group)};
      const rows = group.dataset.values.split(";").map(row => row.split(" ").map(Number));
      for (const [at, [x, y]] of placesOf(group, rows).entries()) {
        const left = about.names[0] === "bits" && chosenBits && !chosenBits.has(String(rows[at][0]));
        if (!left) found.push({...about, at, x, y, values: rows[at]});
      }
    }
    points.set(svg, found);
    return found;
  }

  function show(svg, point) {
    shown = {svg, point};
    const values = point.values.map((value, at) => `${point.names[at] ?? ""} ${value}`);
    const words = `${point.where.join(", ")}: ${values.join(", ")}`;
    if (said.textContent !== words) said.textContent = words; // said once, though it may be placed twice
    ring.setAttribute("cx", point.x);
    ring.setAttribute("cy", point.y);
    svg.append(ring);
    const at = new DOMPoint(point.x, point.y).matrixTransform(svg.getScreenCTM());
    const {width, height} = said.getBoundingClientRect();
    const {scrollX, scrollY} = window;
    const left = document.documentElement.clientWidth - width - 4;
    said.style.left = `${scrollX + Math.max(4, Math.min(at.x - width / 2, left))}px`;
    said.style.top = `${scrollY + (at.y > height + 14 ? at.y - height - 14 : at.y + 14)}px`;
    mark(point.method);
  }

  function leave() {
    shown = null;
    said.textContent = "";
    ring.remove();
    mark(kept);
  }

  function nearest(svg, event) {
    const matrix = svg.getScreenCTM();
    const {x, y} = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    const off = point => Math.hypot(point.x - x, point.y - y);
    const best = pointsOf(svg).reduce((one, other) => (one && off(one) <= off(other) ? one : other), null);
    return best && off(best) * matrix.a < 24 ? best : null;
  }

  // The point that a key leads to: along a line, or to the same place of the line before or after it.
  function next(known, point, key) {
    const at = known.findIndex(one => one.of === point?.of && one.at === point.at);
    const lines = [...new Set(known.map(one => one.of))];
    const line = step => {
      const other = known.filter(one => one.of === lines[lines.indexOf(point?.of) + step]);
      return other.find(one => one.at >= point.at) ?? other.at(-1);
    };
    const keys = {ArrowLeft: () => known[at - 1], ArrowRight: () => known[at + 1], ArrowUp: () => line(-1),
      ArrowDown: () => line(1), Home: () => known[0], End: () => known.at(-1)};
    return keys[key]?.();
  }

  for (const svg of svgs) {
    const scroll = svg.closest(".scroll");
    scroll?.removeAttribute("tabindex");
    svg.tabIndex = 0;
    svg.setAttribute("role", "application");
    svg.setAttribute("aria-roledescription", "figure");
    const point = event => {
      const found = nearest(svg, event);
      if (found) show(svg, found);
      else if (shown) leave();
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", event => event.pointerType === "mouse" && shown && leave());
    svg.addEventListener("click", event => keep(shown?.point.method ?? about(event.target)));
    svg.addEventListener("focus", () => {
      const known = pointsOf(svg);
      const first = known.find(one => one.method === kept) ?? known[0];
      if (svg.matches(":focus-visible") && first) show(svg, first);
    });
    svg.addEventListener("blur", () => shown && leave());
    svg.addEventListener("keydown", event => {
      const at = shown?.svg === svg ? shown.point : null;
      if (event.key === "Escape") leave();
      else if (event.key === "Enter" && at) keep(at.method);
      else {
        const found = next(pointsOf(svg), at, event.key);
        if (found) {
          // A wide figure scrolls, and a long one is higher than the window.
          ring.remove();
          show(svg, found);
          ring.scrollIntoView({block: "nearest", inline: "nearest"});
          show(svg, found);
        }
        if (!found && !event.key.startsWith("Arrow")) return;
        event.preventDefault();
      }
    });
  }
  said.className = "point";
  said.ariaLive = "polite";
  ring.setAttribute("class", "ring");
  ring.setAttribute("r", 5);
  document.body.append(said);

  // -- a figure as a table, and as a file ---------------------------------------------------------

  // Its points, the filtered ones left out; the heads are those of all panels together.
  function asTable(svg) {
    const known = pointsOf(svg);
    const heads = [];
    for (const names of new Set(known.map(one => one.names.join(";")))) {
      names.split(";").forEach((name, at) => (heads[at] ??= new Set()).add(name));
    }
    const table = document.createElement("table");
    table.createCaption().textContent = svg.getAttribute("aria-label");
    table.caption.className = "unseen";
    const cell = (row, words, tag, scope) => {
      const one = document.createElement(tag);
      one.textContent = words;
      if (scope) one.scope = scope;
      row.append(one);
    };
    const head = table.createTHead().insertRow();
    for (const words of ["Line", ...heads.map(names => [...names].join(" / "))]) cell(head, words, "th", "col");
    head.cells[0].className = "left";
    const body = table.createTBody();
    for (const {where, values} of known) {
      const row = body.insertRow();
      cell(row, where.join(", "), "th", "row");
      for (let at = 0; at < heads.length; at++) cell(row, values[at] ?? "", "td");
    }
    return table;
  }

  // The figure as it is shown, in the colours of paper, which the names of its variables tell.
  function asFile(svg) {
    const copy = svg.cloneNode(true);
    for (const one of all("[hidden], .ring", copy)) one.remove();
    const {width, height} = svg.viewBox.baseVal;
    for (const [name, value] of Object.entries({width: `${width}pt`, height: `${height}pt`, role: "img"})) {
      copy.setAttribute(name, value);
    }
    copy.removeAttribute("tabindex");
    const paper = {surface: "#ffffff", line: "#d0d0d0", quiet: "#767676", front: "#bbbbbb", band: "#e4e4e4"};
    return new XMLSerializer().serializeToString(copy).replaceAll("currentColor", "#000000")
      .replace(/var\(--(\w+)\)/g, (_, name) => paper[name] ?? `#${name.slice(1)}`);
  }

  const figureOf = button => button.closest("figure").querySelector("svg[id]");

  // Its table is made when somebody asks for it.
  function fill(button) {
    const open = button.getAttribute("aria-expanded") === "true";
    const place = document.getElementById(button.getAttribute("aria-controls"));
    place.hidden = !open;
    place.replaceChildren(...(open ? [asTable(figureOf(button))] : []));
  }

  for (const button of all("[data-shows=table]")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-expanded", String(button.getAttribute("aria-expanded") !== "true"));
      fill(button);
    });
  }
  for (const button of all("[data-file]")) {
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      const text = asFile(figureOf(button));
      link.href = URL.createObjectURL(new Blob([text], {type: "image/svg+xml"}));
      link.download = button.dataset.file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    });
  }
  return {filter};
})();
