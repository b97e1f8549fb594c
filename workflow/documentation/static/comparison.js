// Two methods of a leaderboard are compared. No statistics are computed here: every number is in the page.
"use strict";

(() => {
  const dash = "–";

  const form = document.getElementById("compare");
  const data = JSON.parse(document.getElementById("pairs").textContent);
  const place = document.getElementById("comparison");
  const order = new Map(data.methods.map(([name], index) => [name, index]));

  // An element with children, which are elements or texts.
  function make(tag, attributes = {}, ...children) {
    const one = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
    one.append(...children);
    return one;
  }

  const shown = (value, digits = 3) => (value === null ? dash : value.toFixed(digits));
  // What is 0 as printed has no sign.
  const signed = value => {
    const digits = Math.abs(value).toFixed(3);
    return (Number(digits) ? (value < 0 ? "−" : "+") : "") + digits;
  };
  const probability = p => (p === null ? dash : p < 0.001 ? "< 0.001" : `= ${p < 0.9995 ? p.toFixed(3) : 1}`);
  const seconds = value => (value === null ? dash : `${Number(value.toPrecision(3))} s`);
  const metric = () => [data.metric[0], ...(data.metric[1] ? [make("sub", {}, data.metric[1])] : [])];

  // The pair of places i and j: as it stands for i < j, with the other sign for j < i.
  function pairOf(length, i, j) {
    const [low, high] = [Math.min(i, j), Math.max(i, j)];
    const pair = length.pairs[(low * (2 * order.size - low - 1)) / 2 + high - low - 1];
    if (!pair || i < j) return pair;
    const [difference, from, to, ...rest] = pair;
    return [-difference, to === null ? null : -to, from === null ? null : -from, ...rest];
  }

  function table(names, bits, i, j) {
    const {cells} = data.lengths[bits];
    const of = data.competitors[bits];
    const rows = [
      [metric(), cell => [shown(cell[0]), ...(cell[1] === null ? [] : [` ± ${shown(cell[1])}`]),
        ...(cell[6] ? [` (${cell[6]})`] : [])]],
      [["Rank"], cell => [cell[3] === null ? dash : `${cell[3]} of ${of}`]],
      [["Seeds"], cell => [String(cell[2])]],
      [["Training"], cell => [seconds(cell[4])]],
      [["Encoding"], cell => [seconds(cell[5])]],
    ].map(([title, show]) => make("tr", {}, make("th", {scope: "row"}, ...title),
      ...[i, j].map(index => make("td", {}, ...(cells[index] ? show(cells[index]) : [dash])))));
    rows.push(make("tr", {}, make("th", {scope: "row"}, "Loss"),
      ...[i, j].map(index => make("td", {}, data.methods[index][2]))));
    return make("table", {class: "scores pair"},
      make("caption", {}, make("span", {}, `${names[0]} and ${names[1]} at ${bits} bits`)),
      make("thead", {}, make("tr", {}, make("td"), ...names.map(name => make("th", {scope: "col"}, name)))),
      make("tbody", {}, ...rows));
  }

  // The interval on a line, with the zero marked.
  function drawing([difference, low, high]) {
    const reach = 1.15 * Math.max(Math.abs(low), Math.abs(high), 1e-9);
    const x = value => (50 + (50 * value) / reach).toFixed(2);
    const box = document.createElement("div");
    box.className = "interval";
    box.setAttribute("aria-hidden", "true");
    box.innerHTML = `<svg viewBox="0 0 100 10" preserveAspectRatio="none"><path class="zero" d="M50 0v10"/>` +
      `<path class="range" d="M${x(low)} 5H${x(high)}"/><path class="mean" d="M${x(difference)} 2v6"/></svg>0`;
    return box;
  }

  function sentences(names, pair) {
    const [difference, low, high, p, adjusted, at] = pair;
    const over = data.over[at];
    const found = make("p", {class: "difference"}, `${names[0]} minus ${names[1]}: `,
      make("strong", {}, signed(difference)));
    if (low === null) {
      found.append(". There is no interval: one run of a method that may vary, or no scores of each query.");
      return [found];
    }
    if (p === null) {
      found.append(`, 95% interval ${signed(low)} to ${signed(high)}; ${over} for a verdict.`);
      return [found, drawing(pair)];
    }
    found.append(`, 95% interval ${signed(low)} to ${signed(high)}, p ${probability(p)} over ${over}.`);
    const words = p < data.level
      ? "The difference is larger than the noise, if the two were chosen before their scores were seen."
      : "Noise alone can bring about this difference; that does not say that the two are equal.";
    const corrected = adjusted === null
      ? "One of them has no rank, so there is no p value adjusted for all pairs."
      : `Adjusted for all pairs of this length: p ${probability(adjusted)}.`;
    return [found, drawing(pair), make("p", {}, `${words} ${corrected}`)];
  }

  function show() {
    const [one, other, bits] = ["one", "other", "bits"].map(name => form.elements[name].value);
    const [i, j] = [order.get(one), order.get(other)];
    const names = [i, j].map(index => data.methods[index][1]);
    const pair = i === j ? null : pairOf(data.lengths[bits], i, j);
    const missing = make("p", {}, i === j ? "Choose two different methods."
      : "One of the two has no score at this code length.");
    place.replaceChildren(table(names, bits, i, j), ...(pair ? sentences(names, pair) : [missing]));
    const address = `?${new URLSearchParams({one, other, bits})}#compare-two-methods`;
    place.append(make("p", {}, make("a", {href: address}, "Link to this comparison")));
    return address;
  }

  function choose(query) {
    const bits = form.elements.bits;
    bits.value = bits.options[bits.options.length - 1].value;
    form.elements.other.selectedIndex = 1;
    for (const [name, value] of query) {
      const options = form.elements[name]?.options;
      if (options && [...options].some(option => option.value === value)) form.elements[name].value = value;
    }
  }

  form.hidden = false;
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("change", () => history.replaceState(null, "", show()));
  document.getElementById("swap").addEventListener("click", () => {
    const {one, other} = form.elements;
    [one.value, other.value] = [other.value, one.value];
    history.replaceState(null, "", show());
  });
  choose(new URLSearchParams(location.search));
  show();
})();
