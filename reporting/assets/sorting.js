// Rows of a table by the values of a column, for the pages of results and those of leaderboards.
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
