// Carriers: what each does and has done in the last minute, and, recorded, each turn of a thread.

import { h, s, keyed, text, attribute, badge, threadLink, to } from "./dom.js";
import { state, ask, askGroups } from "./state.js";
import { count, short, clock, seconds, nanos } from "./words.js";

/** How much of the past is shown, in milliseconds. */
const SPAN = 60_000;
const HEIGHT = 18;

/** The last recording stays while the page is there. */
let recorded = null;
let visible = [0, 1];
let chosen = 0;

export function carriers() {
  const head = ["carrier", "state", "carries", "the last minute", "queue", "mounts/s", "steals", "preempted", "stuck"];
  const body = h("tbody", { "data-testid": "carriers-body" });
  const table = h("table", { class: "carriers" },
    h("thead", {}, h("tr", {}, head.map((name, index) => h("th", { scope: "col", class: `k${index}` }, name)))), body);
  const keys = ["running", "searching", "sleeping", "stuck"].map((name) =>
    h("span", { class: "key" }, h("i", { class: `swatch state ${name}` }), name));
  const recording = recorder();
  const node = h("div", { class: "view", "data-testid": "carriers" },
    h("div", { class: "toolbar" }, h("h1", {}, "Carriers"), h("div", { class: "legend" }, keys)),
    h("section", { class: "card" }, h("div", { class: "scroll" }, table)),
    recording.node);
  function draw() {
    const last = state.points.at(-1);
    if (last !== undefined) keyed(body, last.carriers, (it) => String(it.number), (it) => carrierRow(it));
  }
  return {
    node,
    async update(what) {
      draw();
      if (what === "points" || what === "status") return undefined;
      const answer = await askGroups({ max: 100 });
      draw();
      return answer;
    },
    close: () => recording.close(),
  };
}

function carrierRow() {
  const cells = ["k0", "k1", "k2", "k3", "k4 number", "k5 number", "k6 number", "k7 number", "k8 number"].map((name) => h("td", { class: name }));
  const [number, stateCell, carries, past, queue, rate, steals, preempted, stuck] = cells;
  const strip = s("svg", { class: "strip", height: HEIGHT, role: "img", "data-testid": "strip" });
  past.append(strip);
  let who = null;
  return {
    node: h("tr", { "data-testid": "carrier" }, cells),
    update(it) {
      text(number, `${it.number}${it.spare ? ", spare" : ""}`);
      attribute(number, "title", it.tid === null ? null : `OS thread ${it.tid}`);
      if (stateCell.textContent !== it.state) stateCell.replaceChildren(badge(it.state));
      const now = state.mounted.at(-1)?.[1].get(it.number);
      if ((now?.thread ?? null) !== who) {
        who = now?.thread ?? null;
        carries.replaceChildren(...(who === null ? [] : [threadLink(who, now.name)]));
      }
      text(queue, count(it.queue));
      text(rate, short(it.mount_rate));
      text(steals, count(it.steals));
      text(preempted, count(it.preemptions));
      text(stuck, it.stuck === 0 ? "" : `${count(it.stuck)} × ${nanos(it.stuck_ns / it.stuck)}`);
      drawStrip(strip, it.number);
    },
  };
}

/** The state at each sample. What a carrier did between two samples is not known. */
function drawStrip(strip, number) {
  const width = strip.clientWidth || 300;
  const end = state.points.at(-1).time / 1e6;
  const shown = state.points.filter((point) => point.time / 1e6 >= end - SPAN);
  const step = shown.length > 1 ? (end - shown[0].time / 1e6) / (shown.length - 1) : 1000;
  const x = (time) => ((time - end + SPAN) / SPAN) * width;
  const parts = [];
  const gap = width / Math.max(1, shown.length) > 5 ? 0.5 : 0;
  const tally = {};
  for (const point of shown) {
    const it = point.carriers.find((carrier) => carrier.number === number);
    if (it === undefined) continue;
    const time = point.time / 1e6;
    tally[it.state] = (tally[it.state] ?? 0) + 1;
    const dump = state.mounted.findLast(([at]) => at <= time + step);
    const carried = dump && time - dump[0] < 2 * step ? dump[1].get(number) : undefined;
    const said = `${clock(time)}: ${it.state}, ${short(it.mount_rate)} mounts/s${carried?.thread ? `, #${carried.thread} ${carried.name ?? ""}` : ""}`;
    parts.push(s("rect", { class: `state ${it.state}`, x: (x(time - step) + gap).toFixed(1), y: 1, width: Math.max(1, x(time) - x(time - step) - 2 * gap).toFixed(1), height: HEIGHT - 2 },
      s("title", {}, said)));
  }
  strip.replaceChildren(...parts);
  const all = Object.entries(tally).map(([name, times]) => `${name} ${Math.round((100 * times) / shown.length)} %`);
  attribute(strip, "aria-label", `the last minute: ${all.join(", ")}`);
}

/** What is recorded on demand: each turn of a thread, on each carrier. */
function recorder() {
  const length = h("select", { "aria-label": "How long" }, [1, 2, 5, 10].map((it) => h("option", { value: it, selected: it === 2 }, `${it} s`)));
  const button = h("button", { type: "button", class: "primary", "data-testid": "record", onclick: () => record() }, "Record");
  const save = h("a", { class: "button", href: "trace.pftrace", download: true, hidden: true, "data-testid": "save-recorded" }, "Save for Perfetto");
  const zoom = ["Zoom in", "Zoom out", "All"].map((name, index) =>
    h("button", { type: "button", onclick: () => [() => scale(0.5), () => scale(2), () => look(0, 1)][index]() }, name));
  const zooms = h("span", { class: "choice", hidden: true }, zoom);
  const said = h("p", { class: "dim", "data-testid": "recorded", role: "status" },
    "Records what the scheduler does, and shows each turn of a thread. It costs the process a few percent meanwhile.");
  const rows = h("div", { class: "lanes", "data-testid": "lanes" });
  const about = h("p", { class: "about", "data-testid": "bar" });
  const node = h("section", { class: "card recorder" },
    h("div", { class: "cardhead" }, h("h2", {}, "Recording"), h("span", { class: "tools" }, zooms, save, length, button)),
    said, rows, about);
  const observer = new ResizeObserver(() => draw());
  observer.observe(rows);

  async function record() {
    button.disabled = true;
    text(said, `Recording for ${length.value} s …`);
    try {
      recorded = await ask("record", { seconds: length.value });
      chosen = 0;
      look(0, 1);
    } catch (problem) {
      text(said, problem.message);
    }
    button.disabled = false;
  }

  function look(from, to) {
    const size = Math.min(1, Math.max(to - from, 1e-4));
    const begin = Math.min(1 - size, Math.max(0, from));
    visible = [begin, begin + size];
    draw();
  }

  function scale(by, at = 0.5) {
    const [from, to] = visible;
    const middle = from + (to - from) * at;
    look(middle - (middle - from) * by, middle + (to - middle) * by);
  }

  function draw() {
    if (recorded === null) return;
    save.hidden = zooms.hidden = false;
    const turns = recorded.carriers.reduce((sum, it) => sum + it.turns, 0);
    text(said, `${clock(recorded.begin)}, ${seconds(recorded.length / 1e6)}: ${count(turns)} turns, ${count(recorded.events)} events`
      + (recorded.lost > 0 ? `; ${count(recorded.lost)} older ones were overwritten` : "")
      + (recorded.complete ? "" : "; it breaks off") + ". Drag to zoom.");
    keyed(rows, recorded.carriers, (it) => String(it.number), (it) => lane(it, about, { look, scale, draw }));
  }

  draw();
  return { node, close: () => observer.disconnect() };
}

function lane(first, about, { look, draw }) {
  const title = h("span", { class: "lanename" });
  const plot = s("svg", { class: "lane", height: 26, tabindex: 0, role: "img" });
  let drag = null;
  const share = (event) => {
    const box = plot.getBoundingClientRect();
    const part = (event.clientX - box.left) / box.width;
    return visible[0] + part * (visible[1] - visible[0]);
  };
  plot.addEventListener("pointerdown", (event) => { drag = share(event); plot.setPointerCapture(event.pointerId); });
  plot.addEventListener("pointerup", (event) => {
    const to = share(event);
    const far = Math.abs(to - drag) / (visible[1] - visible[0]) > 0.02;
    if (far) look(Math.min(drag, to), Math.max(drag, to));
    else pick(barAt(plot.carrier, to * recorded.length));
    drag = null;
  });
  plot.addEventListener("keydown", (event) => {
    const step = (visible[1] - visible[0]) / 4;
    if (event.key === "ArrowLeft") look(visible[0] - step, visible[1] - step);
    else if (event.key === "ArrowRight") look(visible[0] + step, visible[1] + step);
    else return;
    event.preventDefault();
  });

  function pick(bar) {
    chosen = bar?.thread ?? 0;
    about.replaceChildren(...(bar === undefined ? [] : describeBar(bar, plot.carrier.number)));
    draw();
  }

  return {
    node: h("div", { class: "lanerow" }, title, plot),
    update(it) {
      plot.carrier = it;
      text(title, `carrier ${it.number}`);
      attribute(plot, "aria-label", `carrier ${it.number}: ${count(it.turns)} turns, busy ${Math.round((100 * it.busy) / recorded.length)} %`);
      const width = plot.clientWidth || 600;
      const [from, to] = visible.map((part) => part * recorded.length);
      const x = (time) => ((time - from) / (to - from)) * width;
      plot.replaceChildren(...it.bars.filter((bar) => bar.to >= from && bar.from <= to).map((bar) =>
        s("rect", {
          class: bar.thread !== 0 && bar.thread === chosen ? "turn chosen" : "turn", x: x(bar.from).toFixed(2), y: 3, height: 20,
          width: Math.max(0.7, x(bar.to) - x(bar.from)).toFixed(2), "fill-opacity": (0.25 + 0.75 * bar.busy).toFixed(2),
        }, s("title", {}, sayBar(bar)))));
    },
  };
}

function barAt(carrier, time) {
  const slack = (recorded.length * (visible[1] - visible[0])) / 400;
  const near = carrier.bars.filter((bar) => bar.from - slack <= time && time <= bar.to + slack);
  const far = (bar) => Math.max(bar.from - time, time - bar.to, 0);
  return near.sort((one, other) => far(one) - far(other))[0];
}

function sayBar(bar) {
  const name = recorded.threads[bar.thread];
  const who = `#${bar.thread}${name === undefined ? "" : ` ${name}`}`;
  const long = nanos((bar.to - bar.from) * 1e3);
  return bar.turns > 1 ? `${count(bar.turns)} turns in ${long}, busy ${Math.round(100 * bar.busy)} %, the longest ${who}` : `${who}, ${long}, ${bar.end}`;
}

function describeBar(bar, number) {
  const at = `carrier ${number}, at ${nanos(bar.from * 1e3)}: `;
  return [at, h("bdi", {}, sayBar(bar)), " ", bar.thread !== 0 && h("a", { href: to("thread", { id: bar.thread }) }, "look at it")].filter(Boolean);
}
