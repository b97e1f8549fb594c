// A page of results: sorting, filters, details of cells, charts. Without it the page is still whole: the
// tables stand in their order and static figures take the place of the charts.
"use strict";

(() => {
  const {styles, tables} = JSON.parse(document.getElementById("page-data").textContent);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const chosen = {method: new Set(Object.keys(styles)), bits: new Set()};
  const root = document.documentElement;

  // -- tables: sorting ----------------------------------------------------------------------------

  // The rows of each body as they came, its heading (a kind of loss) first where it has one.
  const printed = new Map(
    all("table.scores").map(table => [table, [...table.tBodies].map(body => [body, [...body.rows]])]),
  );

  function sort(table, button) {
    const column = Number(button.dataset.column);
    const heading = button.closest("th");
    let order = "other";
    if (column === 0 && printed.has(table)) {
      for (const [body, rows] of printed.get(table)) body.append(...rows);
    } else {
      const rows = [...table.tBodies].flatMap(body => [...body.rows]).filter(row => !row.matches(".family"));
      const now = heading.getAttribute("aria-sort");
      // A cell whose text is its value has it there alone.
      const value = ({cells}) => cells[column].dataset.value ?? cells[column].textContent;
      order = sortRows(rows, value, now, column > 0);
      table.tBodies[0].append(...rows);
    }
    for (const other of all("th[aria-sort]", table)) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", order);
    showFamilies(table);
    keepOneStop(table);
  }

  // A heading of a kind of loss stands only over rows of its own that are shown.
  function showFamilies(table) {
    const sorted = table.querySelector("th[aria-sort=ascending], th[aria-sort=descending]");
    for (const heading of all("tr.family", table)) {
      const rows = [...heading.parentElement.rows].filter(row => row !== heading);
      heading.hidden = Boolean(sorted) || rows.every(row => row.hidden);
    }
  }

  for (const button of all("th button")) {
    button.addEventListener("click", () => sort(button.closest("table"), button));
  }

  // -- tables: details of a cell ------------------------------------------------------------------

  const details = document.getElementById("details");
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
  for (const table of printed.keys()) keepOneStop(table);

  // -- filters ------------------------------------------------------------------------------------

  const filter = document.getElementById("filter");
  for (const box of all("[name=bits]", filter)) chosen.bits.add(box.value);
  const everything = {method: chosen.method.size, bits: chosen.bits.size};

  function applyFilter() {
    for (const name of ["method", "bits"]) {
      chosen[name] = new Set(all(`[name=${name}]:checked`, filter).map(box => box.value));
    }
    for (const item of all("li[data-method]")) item.hidden = !chosen.method.has(item.dataset.method);
    for (const row of all("tr[data-method]")) {
      const {method, bits} = row.dataset;
      row.hidden =
        !chosen.method.has(method) || Boolean(bits && !chosen.bits.has(bits)) || Boolean(row.unfound);
    }
    for (const table of printed.keys()) {
      const columns = [...table.tHead.rows[1].cells];
      const hidden = columns.map(heading => !chosen.bits.has(heading.dataset.bits));
      for (const row of all("tr[data-method], tr.uncoded", table)) {
        hidden.forEach((is, column) => (row.cells[column + 1].hidden = is));
      }
      columns.forEach((heading, column) => (heading.hidden = hidden[column]));
      let start = 0;
      for (const group of all("th.group", table)) {
        group.columns ??= group.colSpan;
        const shown = hidden.slice(start, start + group.columns).filter(is => !is).length;
        group.hidden = shown === 0;
        if (shown) group.colSpan = shown;
        start += group.columns;
      }
      for (const heading of all("tr.family th", table)) heading.colSpan = 1 + hidden.filter(is => !is).length;
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
    for (const article of all("article[data-table]")) offerBits(article);
    redraw();
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
  // On a phone the list of methods would take the place of what it filters.
  if (innerWidth < 640) filter.querySelector("details").open = false;
  new ResizeObserver(() => root.style.setProperty("--bar", `${filter.offsetHeight + 8}px`)).observe(filter);

  for (const box of all("[data-shows=published]")) {
    const show = () => box.closest("article").classList.toggle("unpublished", !box.checked);
    box.addEventListener("change", show);
    show();
  }

  // The files of a run, instead of a link to their folder: written out, they would be a tenth of a large page.
  for (const table of all("table.runs")) {
    const names = table.dataset.files.split(" ");
    for (const link of all("td.files a[href$='/']", table)) {
      const links = names.map(name => {
        const own = document.createElement("a");
        own.href = link.getAttribute("href") + name;
        own.textContent = name.split(".")[0];
        return own;
      });
      link.replaceWith(...links.flatMap((own, nth) => (nth ? [" ", own] : [own])));
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
        const {method, bits} = row.dataset;
        row.hidden = row.unfound || !chosen.method.has(method) || !chosen.bits.has(bits);
      }
      countRuns(search);
    });
  }

  // -- charts: what all share ---------------------------------------------------------------------

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();
  let ink = {};
  let pointed = null;

  function readInk() {
    const style = getComputedStyle(root);
    const of = name => style.getPropertyValue(name).trim();
    ink = {text: of("--text"), quiet: of("--quiet"), line: of("--line"), surface: of("--surface")};
    Chart.defaults.color = ink.quiet;
    Chart.defaults.borderColor = ink.line;
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 12;
    Object.assign(Chart.defaults.plugins.tooltip, {
      backgroundColor: ink.surface,
      borderColor: ink.quiet,
      borderWidth: 1,
      titleColor: ink.text,
      bodyColor: ink.text,
      footerColor: ink.quiet,
      usePointStyle: true,
      boxWidth: 8,
      boxHeight: 8,
      cornerRadius: 3,
      caretSize: 0,
      padding: 8,
      bodySpacing: 1,
      titleFont: {weight: 600},
      footerFont: {weight: "normal"},
    });
    Object.assign(Chart.defaults.plugins.legend, {display: false});
    Object.assign(Chart.defaults, {animation: false, maintainAspectRatio: false, normalized: true});
  }

  const colourOf = method => (dark.matches ? styles[method].dark : styles[method].colour);
  const faded = colour => colour.slice(0, 7) + "26";
  const three = value => value.toFixed(3);
  const seconds = value =>
    value < 0.1 ? value.toPrecision(2) : value < 10 ? value.toFixed(2) : value.toFixed(1);
  const about = (value, digits = 4) =>
    value === null || value === undefined ? "–" : String(Number(value.toPrecision(digits)));
  const nameOf = block => block.name.filter(Boolean).join("_");

  // A method's colour, faded while another one is pointed at in the legend.
  const shade = method => (pointed && pointed !== method ? faded(colourOf(method)) : colourOf(method));

  // A method's points as a line with its colour, dash and marker; a long one has few markers. What depends
  // on `pointed` is a function: Chart.js keeps values, but asks functions again at every update.
  function line(method, data, changes = {}) {
    const style = styles[method];
    const every = Math.max(1, Math.round(data.length / 7));
    const offset = Object.keys(styles).indexOf(method) % every;
    const own = () => shade(method);
    const filled = style.fill === "filled";
    return {
      method,
      data,
      label: style.name,
      borderColor: own,
      backgroundColor: own,
      pointBackgroundColor: filled ? own : ink.surface,
      pointBorderColor: filled ? ink.surface : own,
      borderWidth: () => (pointed === method ? 3 : 1.6),
      borderDash: style.dash,
      pointStyle: style.marker,
      pointRotation: style.rotation,
      spanGaps: true,
      pointRadius: data.length > 10 ? data.map((_, at) => (at % every === offset ? 3.5 : 0)) : 4,
      pointHoverRadius: 6,
      pointHitRadius: 6,
      pointBorderWidth: filled ? 0.6 : 1.6,
      pointHoverBorderWidth: filled ? 0.6 : 2.5,
      ...changes,
    };
  }

  function scale(title, changes = {}) {
    const {ticks, ...others} = changes;
    return {
      title: {display: true, text: title, color: ink.text},
      grid: {color: ink.line, lineWidth: 0.6},
      border: {color: ink.quiet},
      // No tick at the bounds: these are no round numbers, and would be labelled as if they were.
      ticks: {color: ink.quiet, maxRotation: 0, includeBounds: false, ...ticks},
      ...others,
    };
  }

  // An axis of scores spans a tenth at least: one score, or nearly equal ones, must not look far apart.
  function scoreSpan(values) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    if (high - low >= 0.1) return {grace: "6%"};
    const bottom = Math.min(Math.max((low + high) / 2 - 0.05, 0), 0.9);
    return {suggestedMin: Math.min(low, bottom), suggestedMax: Math.max(high, bottom + 0.1)};
  }

  // Ticks at powers of ten and, where there is room, at twice and five times them.
  const logarithmic = {
    type: "logarithmic",
    ticks: {
      callback: (value, _, ticks) => {
        const digit = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
        const decades = Math.log10(ticks.at(-1).value / ticks[0].value);
        const shown = decades > 2.5 ? [1] : [1, 2, 5];
        return shown.some(one => Math.abs(one - digit) < 1e-6) ? about(value, 3) : null;
      },
    },
  };

  // Words at the right of each element of a dataset that has `words`. Those of points keep clear of each
  // other and inside the chart, at the end of a line where there is no room beside the point.
  const rings = [8, 22, 38, 56, 76, 98];
  const directions = [
    [1, 0],
    [-1, 0],
    [0, -1],
    [0, 1],
    [1, -1],
    [-1, -1],
    [1, 1],
    [-1, 1],
  ];

  // Boxes [left, top, right, bottom] of words so wide about a point, the nearest first.
  const boxesAbout = (x, y, width) =>
    rings.flatMap(ring =>
      directions.map(([right, down]) => {
        const left = x + right * ring + (right - 1) * (width / 2);
        const middle = y + down * (ring === 8 ? 13 : ring);
        return [left, middle - 6, left + width, middle + 6];
      }),
    );
  const shared = (one, other) =>
    Math.max(0, Math.min(one[2], other[2]) - Math.max(one[0], other[0])) *
    Math.max(0, Math.min(one[3], other[3]) - Math.max(one[1], other[1]));

  const beside = {
    id: "beside",
    afterDatasetsDraw(chart) {
      const {ctx, chartArea: area} = chart;
      const elements = chart.data.datasets.flatMap((dataset, index) =>
        dataset.words
          ? chart
              .getDatasetMeta(index)
              .data.map((element, at) => ({dataset, element, words: dataset.words[at]}))
          : [],
      );
      const taken = elements.map(({element: {x, y}}) => [x - 6, y - 6, x + 6, y + 6]);
      chart.placed = [];
      ctx.save();
      ctx.font = `11px ${Chart.defaults.font.family}`;
      ctx.textBaseline = "middle";
      for (const {
        dataset,
        element: {x, y},
        words,
      } of elements) {
        const width = ctx.measureText(words).width;
        let box = [x + 8, y - 6, x + 8 + width, y + 6];
        if (dataset.method) {
          const covered = place => taken.reduce((sum, other) => sum + shared(place, other), 0);
          const inside = boxesAbout(x, y, width).filter(
            ([left, top, right, bottom]) =>
              left > area.left && right < chart.width && top > 0 && bottom < area.bottom,
          );
          box =
            inside.find(place => covered(place) === 0) ??
            inside.sort((one, other) => covered(one) - covered(other))[0] ??
            box;
          taken.push(box);
          const end = [Math.min(Math.max(x, box[0]), box[2]), Math.min(Math.max(y, box[1]), box[3])];
          if (Math.hypot(end[0] - x, end[1] - y) > 14) {
            ctx.strokeStyle = shade(dataset.method);
            ctx.lineWidth = 0.8;
            ctx.beginPath();
            ctx.moveTo(x, y);
            ctx.lineTo(...end);
            ctx.stroke();
          }
        }
        chart.placed.push({words, box});
        ctx.fillStyle = pointed && dataset.method && dataset.method !== pointed ? ink.line : ink.text;
        ctx.fillText(words, box[0], (box[1] + box[3]) / 2);
      }
      ctx.restore();
    },
  };

  // -- charts: one function each ------------------------------------------------------------------
  //
  // Each takes {block, runs, methods, bits, choice} and gives {config, head, rows}: what Chart.js draws, and
  // the same numbers as a table; or null where there is nothing to show.

  // Pixels of the chart of ranges with so many bars.
  const heightOf = bars => bars * 25 + 62;

  const kinds = {
    ranges({block, methods, bits}) {
      const column = block.bits.indexOf(Number(bits));
      const rows = methods
        .map(method => [method, block.ranges[method]?.[column]])
        .filter(([, range]) => range);
      if (!rows.length) return null;
      const names = rows.map(([method]) => styles[method].name);
      const exact = {
        type: "line",
        indexAxis: "y",
        showLine: false,
        label: nameOf(block),
        pointStyle: "circle",
        order: 0,
        data: rows.map(([, range]) => range[1]),
        pointRadius: 4,
        pointHoverRadius: 5,
        pointBackgroundColor: ink.text,
        pointBorderColor: ink.surface,
        pointBorderWidth: 1,
      };
      const bars = {
        label: "range",
        data: rows.map(([, range]) => [range[0], range[2]]),
        order: 1,
        backgroundColor: ({dataIndex}) => shade(rows[dataIndex]?.[0]),
        barPercentage: 0.8,
        categoryPercentage: 0.85,
        words: rows.map(([, range]) => three(range[1])),
      };
      const low = Math.min(...rows.map(([, range]) => range[0]));
      const high = Math.max(...rows.map(([, range]) => range[2]));
      const room = Math.max(high - low, 0.02) * 0.06;
      return {
        height: heightOf(rows.length),
        config: {
          type: "bar",
          data: {labels: names, datasets: [exact, bars]},
          options: {
            indexAxis: "y",
            layout: {padding: {right: 42}},
            interaction: {mode: "index", axis: "y", intersect: false},
            scales: {
              x: scale(`mean ${block.name[0]} over all orders of tied items`, {
                min: Math.max(0, low - room),
                max: high,
              }),
              y: scale("", {
                title: {display: false},
                grid: {display: false},
                ticks: {color: ink.text, autoSkip: false},
              }),
            },
            plugins: {
              tooltip: {
                filter: item => item.datasetIndex === 0,
                callbacks: {
                  label: item => {
                    const [, range] = rows[item.dataIndex];
                    return [
                      `${nameOf(block)} ${three(range[1])}`,
                      `worst order ${three(range[0])}`,
                      `best order ${three(range[2])}`,
                    ];
                  },
                },
              },
            },
          },
          plugins: [beside],
        },
        head: ["Method", "Worst order", nameOf(block), "Best order"],
        rows: rows.map(([method, range]) => [styles[method].name, ...range.map(value => value.toFixed(4))]),
      };
    },

    bits({block, methods}) {
      const shown = block.bits
        .map((bits, column) => [bits, column])
        .filter(([bits]) => chosen.bits.has(String(bits)));
      const rows = methods.map(method => [method, block.scores[method]]).filter(([, scores]) => scores);
      if (!rows.length || !shown.length) return null;
      const points = scores =>
        shown.map(([bits, column]) => ({x: bits, y: scores[column]?.[0] ?? null, of: scores[column]}));
      return {
        config: {
          type: "line",
          data: {datasets: rows.map(([method, scores]) => line(method, points(scores)))},
          options: {
            interaction: {mode: "index", axis: "x", intersect: false},
            scales: {
              x: scale("code length (bits)", {
                type: "linear",
                offset: false,
                grace: 0,
                min: shown[0][0] - 1,
                max: shown.at(-1)[0] + 1,
                afterBuildTicks: axis => (axis.ticks = shown.map(([bits]) => ({value: bits}))),
              }),
              y: scale(
                nameOf(block),
                scoreSpan(rows.flatMap(([, scores]) => scores.filter(Boolean).map(([mean]) => mean))),
              ),
            },
            plugins: {
              tooltip: {
                itemSort: (a, b) => b.parsed.y - a.parsed.y,
                callbacks: {
                  title: items => (items.length ? `${items[0].parsed.x} bits` : ""),
                  label: ({dataset, raw}) => {
                    const [mean, low, high, seeds] = raw.of;
                    return (
                      `${dataset.label} ${three(mean)}` +
                      (seeds > 1 ? ` (${three(low)} to ${three(high)})` : "")
                    );
                  },
                },
              },
            },
          },
        },
        head: ["Method", ...shown.map(([bits]) => `${bits} bits`)],
        rows: rows.map(([method, scores]) => [
          styles[method].name,
          ...shown.map(([, column]) => {
            if (!scores[column]) return "–";
            const [mean, low, high, seeds] = scores[column];
            return mean.toFixed(4) + (seeds > 1 ? ` (${low.toFixed(4)} to ${high.toFixed(4)})` : "");
          }),
        ]),
      };
    },

    recall({runs, methods}) {
      const rows = methods.filter(method => runs[method]?.recall);
      if (!rows.length) return null;
      const points = ({precision, recall}) =>
        recall
          .map((x, radius) => ({x, y: precision[radius], radius}))
          .filter(({x, y}) => x !== null && y !== null);
      const most = Math.max(...rows.map(method => runs[method].recall.length));
      return {
        config: {
          type: "line",
          data: {datasets: rows.map(method => line(method, points(runs[method])))},
          options: {
            interaction: {mode: "nearest", axis: "xy", intersect: false},
            scales: {x: scale("recall", {type: "linear", min: 0, max: 1}), y: scale("precision")},
            plugins: {
              tooltip: {
                callbacks: {
                  title: items => items[0]?.dataset.label ?? "",
                  label: ({raw}) => [
                    `within radius ${raw.radius}`,
                    `precision ${three(raw.y)}`,
                    `recall ${three(raw.x)}`,
                  ],
                },
              },
            },
          },
        },
        head: ["Radius", ...rows.flatMap(method => [`${styles[method].name} precision`, "recall"])],
        rows: Array.from({length: most}, (_, radius) => [
          String(radius),
          ...rows.flatMap(method => [
            about(runs[method].precision[radius]),
            about(runs[method].recall[radius]),
          ]),
        ]),
      };
    },

    precision({runs, methods, cuts}) {
      const rows = methods.filter(method => runs[method]?.precision_at);
      if (!rows.length) return null;
      const ks = cuts[runs[rows[0]].cuts];
      const same = rows.filter(method => cuts[runs[method].cuts] === ks);
      return {
        config: {
          type: "line",
          data: {
            datasets: same.map(method =>
              line(
                method,
                ks.map((x, at) => ({x, y: runs[method].precision_at[at]})),
              ),
            ),
          },
          options: {
            interaction: {mode: "index", axis: "x", intersect: false},
            scales: {x: scale("K", {...logarithmic, min: ks[0], max: ks.at(-1)}), y: scale("precision")},
            plugins: {
              tooltip: {
                itemSort: (a, b) => b.parsed.y - a.parsed.y,
                callbacks: {
                  title: items => (items.length ? `first ${items[0].parsed.x.toLocaleString("en")}` : ""),
                  label: ({dataset, parsed}) => `${dataset.label} ${three(parsed.y)}`,
                },
              },
            },
          },
        },
        head: ["K", ...same.map(method => styles[method].name)],
        rows: ks.map((k, at) => [
          k.toLocaleString("en"),
          ...same.map(method => about(runs[method].precision_at[at])),
        ]),
      };
    },

    distances({runs, choice}) {
      const cell = runs[choice.method];
      if (!cell?.relevant && !cell?.irrelevant) return null;
      const count = (cell.relevant ?? cell.irrelevant).length;
      const set = (label, shares, colour, dash) => ({
        label,
        data: shares ?? [],
        borderColor: colour,
        backgroundColor: faded(colour),
        borderWidth: 1.5,
        borderDash: dash,
        fill: true,
        stepped: "middle",
        pointRadius: 0,
        pointHoverRadius: 3,
        pointStyle: "circle",
      });
      return {
        config: {
          type: "line",
          data: {
            labels: Array.from({length: count}, (_, distance) => distance),
            datasets: [
              set("relevant", cell.relevant, colourOf(choice.method), []),
              set("irrelevant", cell.irrelevant, ink.quiet.length === 7 ? ink.quiet : "#808080", [4, 3]),
            ],
          },
          options: {
            interaction: {mode: "index", axis: "x", intersect: false},
            scales: {
              x: scale("Hamming distance", {ticks: {autoSkip: true, maxTicksLimit: 14}}),
              y: scale("share of pairs", {beginAtZero: true}),
            },
            plugins: {
              legend: {display: true, align: "end", labels: {boxWidth: 20, boxHeight: 8, color: ink.text}},
              tooltip: {
                callbacks: {
                  title: items => (items.length ? `distance ${items[0].label}` : ""),
                  label: ({dataset, parsed}) => `${dataset.label} ${(100 * parsed.y).toPrecision(3)} %`,
                },
              },
            },
          },
        },
        head: ["Distance", "Relevant", "Irrelevant"],
        rows: Array.from({length: count}, (_, distance) => [
          String(distance),
          about(cell.relevant?.[distance]),
          about(cell.irrelevant?.[distance]),
        ]),
      };
    },

    cost({block, runs, methods, bits, choice}) {
      const column = block.bits.indexOf(Number(bits));
      const rows = methods.filter(
        method => block.scores[method]?.[column] && runs[method]?.[choice.part] > 0,
      );
      if (!rows.length) return null;
      const score = method => block.scores[method][column][0];
      const times = rows.map(method => runs[method][choice.part]);
      const title = {fit: "training", encode: "encoding"}[choice.part];
      return {
        config: {
          type: "scatter",
          data: {
            datasets: rows.map(method =>
              line(method, [{x: runs[method][choice.part], y: score(method)}], {
                pointRadius: 5,
                pointHoverRadius: 7,
                words: [styles[method].name],
                showLine: false,
              }),
            ),
          },
          options: {
            interaction: {mode: "nearest", axis: "xy", intersect: false},
            layout: {padding: {top: 6}},
            scales: {
              x: scale(`seconds of ${title}`, {
                ...logarithmic,
                min: Math.min(...times) / 1.4,
                max: Math.max(...times) * 1.4,
              }),
              y: scale(nameOf(block), scoreSpan(rows.map(score))),
            },
            plugins: {
              tooltip: {
                callbacks: {
                  title: items => items[0]?.dataset.label ?? "",
                  label: ({parsed}) => [
                    `${nameOf(block)} ${three(parsed.y)}`,
                    `${seconds(parsed.x)} s of ${title}`,
                  ],
                },
              },
            },
          },
          plugins: [beside],
        },
        head: ["Method", "Training (s)", "Encoding (s)", nameOf(block)],
        rows: rows.map(method => [
          styles[method].name,
          about(runs[method].fit),
          about(runs[method].encode),
          score(method).toFixed(4),
        ]),
      };
    },

    training({runs, methods, choice}) {
      const scaled = choice.method === "";
      const rows = (scaled ? methods : [choice.method]).filter(method => runs[method]?.training);
      if (!rows.length) return null;
      const sets = rows.flatMap(method =>
        (scaled ? runs[method].training.slice(0, 1) : runs[method].training).map((curve, nth) => {
          const low = Math.min(...curve.objective);
          const span = Math.max(...curve.objective) - low || 1;
          const points = curve.objective
            .map((objective, at) => ({
              x: scaled ? curve.seconds[at] : curve.step[at],
              y: scaled ? (objective - low) / span : objective,
              objective,
              step: curve.step[at],
              counter: curve.counter,
              seconds: curve.seconds[at],
              seed: curve.seed,
            }))
            .filter(({x}) => x !== null && (!scaled || x > 0));
          const changes = scaled
            ? {}
            : {borderDash: [[], [6, 3], [2, 2], [8, 3, 2, 3]][nth % 4], label: `seed ${curve.seed}`};
          return line(method, points, changes);
        }),
      );
      const counter = runs[rows[0]].training[0].counter;
      return {
        config: {
          type: "line",
          data: {datasets: sets},
          options: {
            interaction: {mode: "nearest", axis: "xy", intersect: false},
            scales: {
              x: scaled ? scale("seconds of training", logarithmic) : scale(counter, {type: "linear"}),
              y: scale(scaled ? "objective, scaled" : "objective"),
            },
            plugins: {
              legend: {
                display: !scaled && sets.length > 1,
                align: "end",
                labels: {boxWidth: 24, boxHeight: 1, color: ink.text},
              },
              tooltip: {
                callbacks: {
                  title: items =>
                    items.length ? `${styles[items[0].dataset.method].name}, seed ${items[0].raw.seed}` : "",
                  label: ({raw}) => [
                    `objective ${about(raw.objective)}`,
                    `${raw.counter} ${raw.step}`,
                    `${raw.seconds === null ? "–" : seconds(raw.seconds)} s`,
                  ],
                },
              },
            },
          },
        },
        head: ["Method", "Seed", "Step", "Seconds", "Objective"],
        rows: sets.flatMap(set =>
          set.data.map(point => [
            styles[set.method].name,
            String(point.seed),
            `${point.counter} ${point.step}`,
            about(point.seconds),
            about(point.objective),
          ]),
        ),
      };
    },
  };

  // -- charts: choices and drawing ----------------------------------------------------------------

  const choiceOf = (place, name) => place.querySelector(`[data-choice=${name}]`)?.value;

  function blockOf(article) {
    const {blocks} = tables[article.dataset.table];
    return blocks[Number(choiceOf(article, "block") ?? 0)];
  }

  // Code lengths of the block that are not filtered out; the one chosen before stays where it can.
  function offerBits(article) {
    const select = article.querySelector("[data-choice=bits]");
    if (!select) return;
    const of = blockOf(article).bits;
    const offered = of.filter(bits => chosen.bits.has(String(bits)));
    const before = select.value || String(of[Math.floor(of.length / 2)]);
    select.replaceChildren(...offered.map(bits => new Option(`${bits} bits`, String(bits))));
    select.value = offered.map(String).includes(before)
      ? before
      : String(offered[Math.floor(offered.length / 2)] ?? "");
    select.disabled = !offered.length;
  }

  // The numbers of a chart as a table, made when somebody asks for it.
  function fillTable(figure, chart) {
    const box = figure.querySelector(".as-table");
    if (box.hidden) return;
    const table = document.createElement("table");
    const caption = table.createCaption();
    caption.className = "unseen";
    caption.textContent = figure.querySelector("canvas").getAttribute("aria-label");
    const head = table.createTHead().insertRow();
    const body = table.createTBody();
    for (const words of chart?.head ?? []) {
      const heading = document.createElement("th");
      heading.scope = "col";
      heading.textContent = words;
      head.append(heading);
    }
    for (const row of chart?.rows ?? []) {
      const line = body.insertRow();
      row.forEach((words, column) => {
        const cell = document.createElement(column ? "td" : "th");
        if (!column) cell.scope = "row";
        cell.textContent = words;
        line.append(cell);
      });
    }
    box.replaceChildren(table);
  }

  function draw(figure) {
    const place = figure.querySelector(".chart");
    const canvas = place.querySelector("canvas");
    const article = figure.closest("article");
    const data = tables[article.dataset.table];
    const block = blockOf(article);
    const bits = choiceOf(article, "bits");
    const chart =
      bits &&
      kinds[place.dataset.kind]({
        block,
        bits,
        cuts: data.cuts,
        runs: data.runs[block.protocol]?.[bits] ?? {},
        methods: block.methods.filter(method => chosen.method.has(method)),
        choice: {method: choiceOf(figure, "method"), part: choiceOf(figure, "part")},
      });
    const whole = place.dataset.kind === "bits";
    canvas.setAttribute(
      "aria-label",
      `${canvas.dataset.says}. ${block.title}, ${nameOf(block)}${whole ? "" : `, ${bits} bits`}.`,
    );
    drawn.get(figure)?.destroy();
    drawn.delete(figure);
    place.querySelector(".nothing").hidden = Boolean(chart);
    canvas.hidden = !chart;
    place.style.height = chart?.height ? `${chart.height}px` : "";
    if (chart) drawn.set(figure, new Chart(canvas, chart.config));
    fillTable(figure, chart);
  }

  // The method under the pointer in the legend stands out, before the others.
  function emphasise(chart) {
    for (const dataset of chart.data.datasets) {
      if (dataset.method) dataset.order = dataset.method === pointed ? -1 : 0;
    }
    chart.update("none");
  }

  function point(method) {
    if (pointed === method) return;
    pointed = method;
    for (const row of all("table.scores tr[data-method]"))
      row.classList.toggle("pointed", row.dataset.method === method);
    drawn.forEach(emphasise);
  }

  for (const label of all("label:has([name=method])", filter)) {
    const method = label.querySelector("input").value;
    label.addEventListener("pointerenter", () => point(method));
    label.addEventListener("pointerleave", () => point(null));
    label.addEventListener("focusin", event => event.target.matches(":focus-visible") && point(method));
    label.addEventListener("focusout", () => point(null));
  }

  const charted = all(".figure.charted");
  const near = new Set();
  function redraw() {
    for (const figure of charted) if (near.has(figure)) draw(figure);
  }

  for (const article of all("article[data-table]")) {
    offerBits(article);
    // What stands below must not move when the chart is drawn.
    const ranges = article.querySelector("[data-kind=ranges]");
    if (ranges) ranges.style.height = `${heightOf(Object.keys(blockOf(article).ranges).length)}px`;
    // The last method of a table is the one it is about; its distances come first, where it has any.
    const distances = article.querySelector("figure:has([data-kind=distances]) select");
    if (distances) {
      const runs =
        tables[article.dataset.table].runs[blockOf(article).protocol]?.[choiceOf(article, "bits")] ?? {};
      const last = [...distances.options].findLast(
        ({value}) => runs[value]?.relevant ?? runs[value]?.irrelevant,
      );
      distances.value = last?.value ?? distances.options[0].value;
    }
    for (const select of all("[data-choice]", article)) {
      select.addEventListener("change", () => {
        if (select.dataset.choice === "block") offerBits(article);
        const figure = select.closest("figure");
        for (const one of figure ? [figure] : all(".figure.charted", article)) if (near.has(one)) draw(one);
      });
    }
  }
  for (const button of all(".tool[aria-controls]")) {
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      const figure = button.closest("figure");
      const shown = document.getElementById(button.getAttribute("aria-controls"));
      button.setAttribute("aria-expanded", String(open));
      if (button.dataset.shows === "table") {
        shown.hidden = !open;
        if (open) draw(figure);
      } else {
        shown.classList.toggle("shown", open);
        figure.classList.toggle("wide", Boolean(figure.querySelector(".drawing.shown")));
      }
    });
  }
  // Static figures as files: gzip in base64, to the bytes that were drawn.
  async function unpack(button) {
    const bytes = Uint8Array.from(atob(button.dataset.packed), letter => letter.charCodeAt(0));
    const text = await new Response(
      new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")),
    ).arrayBuffer();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], {type: "image/svg+xml"}));
    link.download = button.dataset.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }
  for (const button of all("[data-packed]")) button.addEventListener("click", () => unpack(button));

  readInk();
  dark.addEventListener("change", () => {
    readInk();
    redraw();
  });
  // A page of many tables has many charts: each is drawn when it comes near.
  const observer = new IntersectionObserver(
    entries => {
      for (const {isIntersecting, target} of entries) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        near.add(target);
        draw(target);
      }
    },
    {rootMargin: "400px"},
  );
  for (const figure of charted) observer.observe(figure);
  // Browsers may keep ticked boxes over a reload.
  applyFilter();
})();
