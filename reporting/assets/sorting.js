// Rows of a table by the values of a column, for the pages of results and those of leaderboards: a click on the
// button of a heading. A cell has its value as data-value, else its text is the value; "" stands last.
"use strict";

// Sorts the rows in place and returns the order, "ascending" or "descending": that which is not the present one,
// `now`. value: row -> text, "" for none, which stands last; numbers begin with the largest if `largestFirst`.
function sortRows(rows, value, now, largestFirst) {
  const numbers = rows.every(row => value(row) === "" || !Number.isNaN(Number(value(row))));
  const first = numbers && largestFirst ? "descending" : "ascending";
  const second = first === "ascending" ? "descending" : "ascending";
  const order = now === first ? second : first;
  const sign = order === "ascending" ? 1 : -1;
  rows.sort((a, b) => {
    const x = value(a);
    const y = value(b);
    if (x === "" || y === "") return (x === "") - (y === "");
    return sign * (numbers ? x - y : x.localeCompare(y, "en"));
  });
  return order;
}

// A heading whose order is "other" restores the rows as they were printed, each in its body. The table is told by
// an event, "sorted".
for (const button of document.querySelectorAll("th button[data-column]")) {
  const table = button.closest("table");
  const heading = button.closest("th");
  const column = Number(button.dataset.column);
  const restores = heading.getAttribute("aria-sort") === "other";
  const printed = restores && [...table.tBodies].map(body => [body, [...body.rows]]);
  button.addEventListener("click", () => {
    let order = "other";
    if (restores) {
      for (const [body, rows] of printed) body.append(...rows);
    } else {
      const rows = [...table.tBodies].flatMap(body => [...body.rows]).filter(row => !row.matches(".family"));
      const value = ({cells}) => cells[column].dataset.value ?? cells[column].textContent;
      order = sortRows(rows, value, heading.getAttribute("aria-sort"), column > 0);
      table.tBodies[0].append(...rows);
    }
    for (const other of table.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", order);
    table.dispatchEvent(new Event("sorted"));
  });
}
