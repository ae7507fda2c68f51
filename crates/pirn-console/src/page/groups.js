// Groups of threads that are alike: how many, what they wait for, where. A group opens to its stack
// and some of its threads.

import { h, keyed, text, attribute, badge, threadLink, to } from "./dom.js";
import { state, askGroups, areMany, change } from "./state.js";
import { sparkline } from "./chart.js";
import { count, counted, short, seconds, pattern } from "./words.js";

/** The groups that are open, by their keys: they stay open from view to view. */
const open = new Set();

const EXAMPLE = "state=waiting, wait=read|poll, frame=recv*, place=main.rs:12";

export function groups(query) {
  const table = groupTable({});
  const total = h("p", { class: "dim", "data-testid": "groups-total" }, "looking …");
  const more = h("button", { type: "button", hidden: true, onclick: () => { max *= 5; again(); } }, "Show more groups");
  const error = h("p", { class: "error", role: "alert", "data-testid": "groups-error", hidden: true });
  const filter = filterForm("groups", query.where ?? "");
  let max = 100;
  let again = () => {};
  let asked = false;
  return {
    node: h("div", { class: "view", "data-testid": "groups" },
      h("div", { class: "toolbar" }, h("h1", {}, "Groups"), filter, total),
      error, h("section", { class: "card" }, table.node), more),
    async update(what, retry) {
      again = retry;
      if (what === "points" || what === "status") return undefined;
      // Conditions about single threads need a dump of each.
      if (what === "dump" && asked && query.where && areMany()) return undefined;
      asked = true;
      error.hidden = true;
      try {
        const answer = await askGroups({ where: query.where, max, now: query.now });
        table.update(answer);
        text(total, `${counted(answer.totals.listed, "thread")} in ${counted(answer.groups.length + answer.groups_left, "group")}${besides(answer)}`);
        more.hidden = answer.groups_left === 0;
        return answer;
      } catch (problem) {
        explain(error, problem, query, "groups");
        return undefined;
      }
    },
    close: () => {},
  };
}

function besides(answer) {
  const parts = [
    [answer.totals.not_run_yet, "not run yet"],
    [answer.totals.unclaimed, "without a stack, as they were about to run"],
    [answer.totals.cut, "left out"],
    [answer.threads_left, "in groups not shown"],
  ].filter(([number]) => number > 0);
  return parts.map(([number, what]) => `; ${count(number)} ${what}`).join("");
}

/** Says what is wrong. If it would take a dump of very many threads, offers it. */
export function explain(element, problem, query, view) {
  element.hidden = false;
  element.closest(".view")?.querySelector(".toolbar > p")?.replaceChildren();
  element.classList.toggle("note", problem.message === "many");
  if (problem.message !== "many") {
    element.textContent = problem.message;
    return;
  }
  const link = h("a", { class: "button", href: to(view, { ...query, now: 1 }), "data-testid": "list-all" }, "List them");
  element.replaceChildren("There are so many threads that a list of each keeps the process busy for a second or more. ", link);
}

/** A form for conditions, written as for `pirn dump --where`. */
export function filterForm(view, where) {
  const input = h("input", {
    type: "text", value: where, "data-testid": "filter", spellcheck: "false", autocomplete: "off",
    placeholder: EXAMPLE, "aria-label": "Conditions, as for pirn dump --where",
    title: "state, wait, name, for, frame, place, scope, id, object, age; commas between conditions, | between alternatives, * for any text",
  });
  const go = (next) => { location.hash = to(view, { where: next.trim() }); };
  const chip = (name, condition) => h("a", {
    class: "chip", href: to(view, { where: condition }), "aria-current": where === condition ? "true" : false,
  }, name);
  return h("form", { class: "filter", onsubmit: (event) => { event.preventDefault(); go(input.value); } },
    input, h("button", { type: "submit" }, "Filter"),
    h("span", { class: "chips" }, chip("all", ""), chip("waiting", "state=waiting"), chip("runnable", "state=runnable"), chip("running", "state=running")));
}

/** A table of groups. `compact` leaves out what the first view has no room for. */
export function groupTable({ compact }) {
  const head = ["threads", "change", "state", "waits for", "in", "spawned at", "at least"];
  const table = h("table", { class: compact ? "groups compact" : "groups" },
    h("thead", {}, h("tr", {}, head.map((name, index) => h("th", { scope: "col", class: `c${index}` }, name)))));
  const empty = h("p", { class: "dim empty" }, "No thread meets these conditions.");
  const node = h("div", { class: "scroll" }, table, empty);
  empty.hidden = true;
  // A body per group, so that a group and what it opens to move together.
  const bodies = { firstChild: null };
  return {
    node,
    update(answer) {
      empty.hidden = answer.groups.length > 0;
      keyed(bodiesOf(table, bodies), answer.groups, (group) => group.key, (group) => groupRow(group, compact));
    },
  };
}

/** The table as a parent of bodies alone: the head stays first. */
function bodiesOf(table, self) {
  self.contains = (node) => table.contains(node);
  self.insertBefore = (node, place) => table.insertBefore(node, place);
  Object.defineProperty(self, "firstChild", { configurable: true, get: () => table.tHead.nextSibling });
  return self;
}

function groupRow(first, compact) {
  const cells = ["c0 number", "c1", "c2", "c3", "c4 code", "c5 code", "c6 number"].map((name) => h("td", { class: name }));
  const [number, changed, stateCell, waits, inside, place, oldest] = cells;
  const total = h("span", { "data-testid": "count" });
  const toggle = h("button", { type: "button", class: "open", "data-testid": "group-open", onclick: () => flip() }, total);
  number.append(toggle);
  const delta = h("span", { class: "delta" });
  const spark = h("span", {});
  changed.append(spark, delta);
  const row = h("tr", { class: "group", onclick: (event) => event.target.closest("a, button") || String(getSelection()) !== "" || flip() }, cells);
  const detail = h("td", { colspan: compact ? 5 : 7 });
  const opened = h("tr", { class: "detail", hidden: true }, detail);
  const node = h("tbody", { "data-testid": "group", "data-key": first.key }, row, opened);
  let group = first;

  function flip() {
    if (!open.delete(group.key)) open.add(group.key);
    show();
  }

  function show() {
    const isOpen = open.has(group.key);
    attribute(toggle, "aria-expanded", String(isOpen));
    opened.hidden = !isOpen;
    if (isOpen) showDetail(detail, group);
  }

  return {
    node,
    update(next) {
      group = next;
      text(total, count(group.count));
      const by = change(group);
      text(delta, by === undefined || by === 0 ? "" : `${by > 0 ? "+" : "−"}${short(Math.abs(by))}`);
      attribute(delta, "title", by === undefined ? "" : count(by));
      delta.className = by > 0 ? "delta up" : "delta";
      spark.replaceChildren(sparkline(state.counts.get(group.key) ?? []));
      if (stateCell.firstChild === null) stateCell.append(badge(group.state));
      text(waits, waitWord(group));
      attribute(waits, "title", `waits ${group.waits}`);
      text(inside, group.stack?.inside ?? "");
      attribute(inside, "title", group.stack?.inside ?? "");
      text(place, shortPlace(group.place));
      attribute(place, "title", group.place);
      text(oldest, group.oldest === null ? "" : seconds(group.oldest));
      show();
    },
  };
}

/** What a group waits for in the words of conditions, but for what a futex belongs to. */
function waitWord(group) {
  if (group.state !== "waiting") return "";
  return (group.futex ?? group.wait) + (group.timed && group.wait !== "sleep" ? ", timed" : "");
}

export function shortPlace(place) {
  return place === null || place === undefined ? "" : place.split("/").at(-1);
}

/** The stack, and some of the threads. */
function showDetail(cell, group) {
  if (cell.firstChild === null) {
    const conditions = [`state=${group.state}`, group.wait !== "none" && `wait=${group.wait}`,
      group.place !== null && `place=${pattern(group.place)}`].filter(Boolean).join(",");
    const frame = group.stack?.frames.find((it) => it.own)?.text.split(" at ")[0];
    const exact = frame === undefined ? conditions : `${conditions},frame=${pattern(frame)}`;
    cell.append(h("div", { class: "split" },
      h("div", {}, h("h3", {}, "Stack"), h("div", { class: "stackhere" })),
      h("div", {}, h("h3", {}, "Some of them"), h("ul", { class: "rows" }),
        h("a", { href: to("threads", { where: exact }), "data-testid": "group-threads" }, "list all threads like these"),
        group.place !== null && h("p", { class: "dim code" }, `spawned at ${group.place}`))));
  }
  const stack = cell.querySelector(".stackhere");
  if (stack.firstChild === null) stack.append(stackList(group.stack));
  keyed(cell.querySelector(".rows"), group.examples, (it) => String(it.id), (it) => threadItem(it));
}

/** A thread in a short list. */
export function threadItem(first) {
  const said = h("bdi", { class: "dim" });
  return {
    node: h("li", {}, threadLink(first.id, first.name), " ", said),
    update: (row) => text(said, describe(row)),
  };
}

/** What a thread does, in one line. */
export function describe(row) {
  const parts = [row.waits || row.state];
  if (row.left !== null) parts.push(`${seconds(row.left)} left`);
  if (row.age !== null && row.age >= 0.1) parts.push(`for at least ${seconds(row.age)}`);
  if (row.interrupted) parts.push("interrupted");
  return parts.join(", ");
}

/** The last folders of an absolute path; the whole of another. */
function nearPath(path) {
  return path.startsWith("/") ? path.split("/").slice(-3).join("/") : path;
}

/** A stack, innermost first. Functions of the program itself stand out. */
export function stackList(stack) {
  if (stack === null || stack === undefined) return h("p", { class: "dim" }, "No stack: it ran, or was about to, each time it was looked at.");
  const frame = (it) => {
    const at = it.text.lastIndexOf(" at ");
    const [name, where] = at < 0 ? [it.text, ""] : [it.text.slice(0, at), it.text.slice(at + 4)];
    return h("li", { class: it.own ? "own" : "" }, h("bdi", { class: "function" }, name), " ", h("bdi", { class: "dim where", title: where }, nearPath(where)));
  };
  return h("ol", { class: "stack", "data-testid": "stack" }, stack.frames.map(frame),
    stack.end !== null && h("li", { class: "dim" }, `(${stack.end})`));
}
