// The bar at the top has two rows in windows of middling width: what stays below it is told its height.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const items = document.querySelector(".bd-header .navbar-header-items");
  const height = () => `max(4rem, ${items.offsetHeight}px)`;
  const tell = () => document.documentElement.style.setProperty("--pst-header-height", height());
  new ResizeObserver(tell).observe(items);
});
