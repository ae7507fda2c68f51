// The first view: curves of the last minutes, what was noticed, the largest groups, memory.

import { h, keyed, text, to, threadLink, attribute } from "./dom.js";
import { state, askGroups } from "./state.js";
import { chart } from "./chart.js";
import { groupTable } from "./groups.js";
import { count, short, bytes, nanos, counted } from "./words.js";

const alive = (point) => point.threads.new + point.threads.runnable + point.threads.running + point.threads.waiting;

const CHARTS = [
  { id: "alive", title: "Virtual threads", format: short, headline: (it) => count(alive(it)),
    series: [{ name: "alive", class: "s1", value: alive }] },
  { id: "busy", title: "Not waiting", format: short,
    headline: (it) => count(it.threads.running + it.threads.runnable + it.threads.new),
    series: [
      { name: "running", class: "s2", value: (it) => it.threads.running },
      { name: "runnable", class: "s3", value: (it) => it.threads.runnable },
      { name: "new", class: "s4", value: (it) => it.threads.new },
    ] },
  { id: "started", title: "Started and ended, per second", format: short,
    series: [
      { name: "started", class: "s1", value: (it) => it.rates.started },
      { name: "ended", class: "s4", value: (it) => it.rates.ended },
    ] },
  { id: "mounts", title: "Mounts per second", format: short,
    series: [{ name: "mounts", class: "s1", value: (it) => it.rates.mounts }] },
  { id: "latency", title: "From woken to running", format: nanos, log: true,
    headline: (it) => (it.p99 === null ? "–" : nanos(it.p99)),
    series: [
      { name: "p50", class: "s1", value: (it) => it.p50 ?? NaN },
      { name: "p99", class: "s3", value: (it) => it.p99 ?? NaN },
    ] },
  { id: "cpu", title: "Processors busy", format: (it) => it.toFixed(1), headline: (it) => it.cpu.toFixed(2),
    series: [{ name: "busy", class: "s2", value: (it) => it.cpu }] },
  { id: "memory", title: "Memory", format: bytes, binary: true, least: 1 << 20,
    series: [
      { name: "resident", class: "s1", value: (it) => it.resident },
      { name: "stacks", class: "s3", value: (it) => it.memory.stacks ?? NaN },
    ] },
  { id: "things", title: "Waited for", format: short, headline: (it) => count(it.gauges.descriptors + it.gauges.timers),
    series: [
      { name: "descriptors", class: "s1", value: (it) => it.gauges.descriptors },
      { name: "timers", class: "s3", value: (it) => it.gauges.timers },
    ] },
];

const SPANS = [[60_000, "1 min"], [300_000, "5 min"], [600_000, "10 min"]];
let span = 300_000;

export function overview() {
  const charts = CHARTS.map(chart);
  const grid = h("div", { class: "charts" }, charts.map((it) => it.node));
  const findings = h("ul", { class: "findings", "data-testid": "findings" });
  const table = groupTable({ compact: true });
  const memory = h("dl", { class: "facts", "data-testid": "memory" });
  const spans = h("div", { class: "choice", role: "group", "aria-label": "How much is shown" }, SPANS.map(([size, name]) =>
    h("button", { type: "button", "aria-pressed": size === span ? "true" : "false", onclick: () => choose(size) }, name)));
  const node = h("div", { class: "view overview", "data-testid": "overview" },
    h("div", { class: "toolbar" }, h("h1", {}, "Overview"), spans),
    grid,
    h("section", { class: "card noticed" }, h("div", { class: "cardhead" }, h("h2", {}, "Noticed")), findings),
    h("div", { class: "columns" },
      h("section", { class: "card wide" },
        h("div", { class: "cardhead" }, h("h2", {}, "Largest groups"), h("a", { href: to("groups") }, "all groups")), table.node),
      h("section", { class: "card" }, h("div", { class: "cardhead" }, h("h2", {}, "Memory and runtime")), memory)));

  function choose(size) {
    span = size;
    [...spans.children].forEach((button, index) => attribute(button, "aria-pressed", SPANS[index][0] === size ? "true" : "false"));
    drawPoints();
  }

  function drawPoints() {
    for (const it of charts) it.update(state.points, span);
    const last = state.points.at(-1);
    if (last !== undefined) facts(memory, last);
  }

  async function drawDump() {
    const answer = await askGroups({ max: 100 });
    showFindings(findings, answer);
    table.update({ ...answer, groups: answer.groups.slice(0, 6) });
    return answer;
  }

  return {
    node,
    update(what) {
      if (what !== "dump") drawPoints();
      return what === "points" || what === "status" ? undefined : drawDump();
    },
    close: () => charts.forEach((it) => it.close()),
  };
}

function showFindings(list, answer) {
  const items = answer.findings.length > 0 ? answer.findings
    : [{ kind: "", text: "Nothing: no circle of threads is known, and no carrier is stuck.", threads: [] }];
  keyed(list, items, (it) => it.kind + it.text, (it) => ({
    node: h("li", { class: it.kind === "" ? "dim" : "finding" },
      it.kind !== "" && h("span", { class: "badge warn" }, it.kind), " ", h("bdi", {}, it.text), " ",
      it.threads.map((id) => [threadLink(id), " "])),
    update: () => {},
  }));
}

/** What the memory is used for, and other numbers. */
function facts(list, point) {
  const names = Object.entries(point.memory).filter(([name, size]) => size > 0 && name !== "process");
  const rows = [
    ["resident, all of the process", bytes(point.resident)],
    ...names.map(([name, size]) => [name.replaceAll("_", " "), bytes(size)]),
    ["parallelism", `${counted(point.gauges.parallelism, "carrier")}, ${point.gauges.spare_carriers} spare`],
    ["scopes open", count(point.gauges.scopes)],
    ["platform threads for calls", count(point.gauges.offload_threads)],
    ["panicked so far", count(point.panicked)],
  ];
  keyed(list, rows, ([name]) => name, ([name]) => {
    const value = h("dd", {});
    return { node: h("div", {}, h("dt", {}, name), value), update: ([, said]) => text(value, said) };
  });
}
