// Curves over time, as drawings: axes, a curve per series, and what the pointer is at.

import { h, s, text, attribute } from "./dom.js";
import { clock } from "./words.js";

const HEIGHT = 110;
const LEFT = 48;
const BOTTOM = 16;
const TOP = 6;
/** A curve has a gap where no points are for this long, in milliseconds. */
const GAP = 15_000;

/** Where the pointer is, for all charts at once: milliseconds since 1970. */
let pointed = null;
const charts = new Set();

/**
 * Makes a chart: { title, id, series: [{ name, class, value(point) }], format, log, least }.
 * Its large number is the first series' last value, or `headline(point)`.
 */
export function chart(options) {
  const value = h("span", { class: "value", "data-testid": options.id });
  const legend = h("div", { class: "legend" });
  const marks = options.series.map((series) => h("span", {}));
  if (options.series.length > 1) {
    legend.append(...options.series.map((series, index) =>
      h("span", { class: "key" }, h("i", { class: `swatch ${series.class}` }), `${series.name} `, marks[index])));
  }
  const plot = s("svg", { class: "plot", role: "img", height: HEIGHT });
  const node = h("section", { class: "card chart" },
    h("div", { class: "cardhead" }, h("h2", {}, options.title), value), plot, legend);
  const self = { node, points: [], span: 300_000, draw: () => draw(self) };
  Object.assign(self, { options, plot, value, marks });
  const observer = new ResizeObserver(() => self.draw());
  observer.observe(plot);
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    point(self.timeAt?.(event.clientX - box.left) ?? null);
  });
  plot.addEventListener("pointerleave", () => point(null));
  charts.add(self);
  self.update = (points, span) => {
    self.points = points;
    self.span = span;
    self.draw();
  };
  self.close = () => {
    observer.disconnect();
    charts.delete(self);
  };
  return self;
}

function point(time) {
  pointed = time;
  for (const other of charts) other.draw();
}

function draw(self) {
  const { options, plot } = self;
  const width = plot.clientWidth;
  const last = self.points.at(-1);
  if (width < LEFT + 20 || last === undefined) return;
  const end = last.time / 1e6;
  const begin = end - self.span;
  const shown = self.points.filter((point) => point.time / 1e6 >= begin);
  const x = (time) => LEFT + ((time - begin) / (end - begin)) * (width - LEFT - 4);
  self.timeAt = (at) => begin + ((at - LEFT) / (width - LEFT - 4)) * (end - begin);
  const values = options.series.flatMap((series) => shown.map(series.value)).filter((it) => Number.isFinite(it));
  const scale = options.log ? logScale(values) : linearScale(values, options.least ?? 1, options.binary);
  const y = (value) => TOP + (1 - scale.place(value)) * (HEIGHT - TOP - BOTTOM);
  const parts = scale.ticks.map((tick) => [
    s("line", { class: "grid", x1: LEFT, x2: width - 4, y1: y(tick), y2: y(tick) }),
    s("text", { class: "tick", x: LEFT - 6, y: y(tick) + 3.5, "text-anchor": "end" }, options.format(tick).replace(/\.0(?=\D|$)/, "")),
  ]);
  for (const [time, anchor] of [[begin, "start"], [end, "end"]]) {
    parts.push(s("text", { class: "tick", x: x(time), y: HEIGHT - 3, "text-anchor": anchor }, clock(time)));
  }
  options.series.forEach((series, index) => {
    const line = path(shown, series.value, x, y);
    if (options.series.length === 1 && line !== "") {
      parts.push(s("path", { class: `area ${series.class}`, d: area(shown, series.value, x, y) }));
    }
    parts.push(s("path", { class: `line ${series.class}`, d: line }));
  });
  const at = pointed === null ? last : nearest(shown, pointed) ?? last;
  if (pointed !== null) parts.push(s("line", { class: "cursor", x1: x(at.time / 1e6), x2: x(at.time / 1e6), y1: TOP, y2: HEIGHT - BOTTOM }));
  plot.replaceChildren(...parts.flat());
  label(self, at);
}

function label(self, at) {
  const { options } = self;
  const said = options.series.map((series) => {
    const value = series.value(at);
    return Number.isFinite(value) ? options.format(value) : "–";
  });
  text(self.value, options.headline ? options.headline(at) : said[0]);
  self.marks.forEach((mark, index) => text(mark, said[index]));
  const all = options.series.map((series, index) => `${series.name} ${said[index]}`).join(", ");
  attribute(self.plot, "aria-label", `${options.title} at ${clock(at.time / 1e6)}: ${all}`);
}

function nearest(points, time) {
  let best;
  for (const point of points) {
    if (best === undefined || Math.abs(point.time / 1e6 - time) < Math.abs(best.time / 1e6 - time)) best = point;
  }
  return best;
}

function path(points, value, x, y) {
  let line = "";
  let before = -Infinity;
  for (const point of points) {
    const [time, height] = [point.time / 1e6, value(point)];
    if (!Number.isFinite(height)) continue;
    line += `${time - before > GAP ? "M" : "L"}${x(time).toFixed(1)} ${y(height).toFixed(1)}`;
    before = time;
  }
  return line;
}

/** The area below a curve; each part between gaps ends at the bottom. */
function area(points, value, x, y) {
  const floor = HEIGHT - BOTTOM;
  const parts = path(points, value, x, y).split("M").filter((part) => part !== "");
  return parts.map((part) => {
    const places = part.split("L");
    const [first, last] = [places[0], places.at(-1)].map((place) => place.split(" ")[0]);
    return `M${first} ${floor}L${places.join("L")}L${last} ${floor}Z`;
  }).join("");
}

function linearScale(values, least, binary) {
  // Sizes have round numbers of KiB, MiB, or GiB.
  const largest = Math.max(least, ...values);
  const unit = binary ? 1024 ** Math.floor(Math.log(largest) / Math.log(1024)) : 1;
  const top = largest / unit;
  const power = 10 ** Math.floor(Math.log10(top / 2));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => top / size <= 2.999) ?? 10 * power;
  const ceiling = Math.max(top, step * Math.ceil(top / step - 0.25));
  const ticks = [];
  for (let tick = 0; tick <= ceiling * 1.0001; tick += step) ticks.push(tick * unit);
  return { ticks, place: (value) => value / unit / ceiling };
}

function logScale(values) {
  const positive = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(1e3, ...positive)));
  const high = Math.max(low + 2, Math.ceil(Math.log10(Math.max(1e5, ...positive))));
  const step = Math.ceil((high - low) / 3);
  const ticks = [];
  for (let power = low; power <= high; power += step) ticks.push(10 ** power);
  return { ticks, place: (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low) };
}

/** A curve as small as a word: how a group's number has changed. */
export function sparkline(counts) {
  const [width, height] = [56, 16];
  const svg = s("svg", { class: "spark", width, height, "aria-hidden": "true" });
  if (counts.length < 2) return svg;
  const [begin, end] = [counts[0][0], counts.at(-1)[0]];
  const numbers = counts.map(([, number]) => number);
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (high === low) svg.classList.add("still");
  const y = (number) => (high === low ? height / 2 : height - 2 - ((number - low) / (high - low)) * (height - 4));
  const places = counts.map(([time, number]) => `${(((time - begin) / (end - begin)) * width).toFixed(1)} ${y(number).toFixed(1)}`);
  svg.append(s("path", { class: "line s1", d: `M${places.join("L")}` }));
  return svg;
}
