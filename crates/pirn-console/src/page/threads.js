// Single threads: a list of those that meet conditions, and all that is known about one.

import { h, keyed, text, attribute, badge, threadLink, to } from "./dom.js";
import { state, ask, areMany } from "./state.js";
import { filterForm, explain, describe, stackList, threadItem } from "./groups.js";
import { count, counted, seconds, bytes } from "./words.js";

export function threads(query) {
  const total = h("p", { class: "dim", "data-testid": "threads-total" }, "looking …");
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const head = ["thread", "state", "waits for", "at least", "scope"];
  const body = h("tbody", { "data-testid": "threads-body" });
  const empty = h("p", { class: "dim empty", hidden: true }, "No thread meets these conditions.");
  const table = h("table", { class: "threads" },
    h("thead", {}, h("tr", {}, head.map((name, index) => h("th", { scope: "col", class: `t${index}` }, name)))), body);
  const more = h("button", { type: "button", hidden: true, onclick: () => { max *= 5; again(); } }, "Show more threads");
  let max = 200;
  let again = () => {};
  let asked = false;
  return {
    node: h("div", { class: "view", "data-testid": "threads" },
      h("div", { class: "toolbar" }, h("h1", {}, "Threads"), filterForm("threads", query.where ?? ""), total),
      error, h("section", { class: "card" }, h("div", { class: "scroll" }, table, empty)), more),
    async update(what, retry) {
      again = retry;
      if (what === "points" || what === "status" || (what === "dump" && asked && areMany())) return undefined;
      asked = true;
      error.hidden = true;
      try {
        const answer = await ask("threads", { where: query.where, max, now: query.now });
        keyed(body, answer.threads, (it) => String(it.id), (it) => threadRow(it));
        empty.hidden = answer.threads.length > 0;
        text(total, counted(answer.all, "thread") + (answer.cut > 0 ? `, and ${count(answer.cut)} not looked at` : "")
          + (answer.all > answer.threads.length ? `; ${count(answer.threads.length)} are shown, those with names first` : ""));
        more.hidden = answer.all <= answer.threads.length || max >= 5000;
        return answer;
      } catch (problem) {
        explain(error, problem, query, "threads");
        return undefined;
      }
    },
    close: () => {},
  };
}

function threadRow(first) {
  const cells = ["t0", "t1", "t2", "t3 number", "t4"].map((name) => h("td", { class: name }));
  const [who, stateCell, waits, age, scope] = cells;
  who.append(threadLink(first.id, first.name));
  const said = h("bdi", {});
  waits.append(said);
  return {
    node: h("tr", { "data-testid": "thread-row" }, cells),
    update(row) {
      if (stateCell.textContent !== row.state) stateCell.replaceChildren(badge(row.state));
      text(said, describe({ ...row, age: null, state: row.carrier === null ? "" : `on carrier ${row.carrier}` }));
      text(age, row.age === null ? "" : seconds(row.age));
      if (scope.textContent !== String(row.scope ?? "")) {
        scope.replaceChildren(...(row.scope === null ? [] : [h("a", { href: to("threads", { where: `scope=${row.scope}` }) }, String(row.scope))]));
      }
    },
  };
}

export function thread(query) {
  const id = Number(query.id);
  const title = h("h1", { "data-testid": "thread-title" }, `Thread #${id}`);
  const stateHere = h("span", {});
  const name = h("p", { class: "fullname", "data-testid": "thread-name" }, h("bdi", {}));
  const facts = h("dl", { class: "facts" });
  const stack = h("div", {});
  const side = h("div", {});
  const note = h("p", { class: "error", role: "alert", "data-testid": "thread-gone", hidden: true });
  const button = h("button", { type: "button", onclick: () => again() }, "Look again");
  let again = () => {};
  let shownStack = "";
  let asked = false;

  function show(answer) {
    const it = answer.thread;
    if (it === null) {
      note.hidden = false;
      text(note, answer.whole ? `There is no thread #${id}: it has ended, or never was.` : `The groups do not show thread #${id}.`);
      return;
    }
    note.hidden = true;
    if (stateHere.textContent !== it.state) stateHere.replaceChildren(badge(it.state));
    name.hidden = it.full_name === null;
    text(name.firstChild, it.full_name ?? "");
    document.title = `#${id} – ${state.hello?.name ?? ""} – pirn console`;
    keyed(facts, factsOf(it), ([key]) => key, ([key]) => {
      const value = h("dd", {});
      let before;
      return {
        node: h("div", {}, h("dt", {}, key), value),
        update([, parts]) {
          const said = JSON.stringify(parts.map((part) => part?.textContent ?? part));
          if (said !== before) value.replaceChildren(...parts);
          before = said;
        },
      };
    });
    const next = JSON.stringify(it.stack);
    if (next !== shownStack) stack.replaceChildren(stackList(it.stack));
    shownStack = next;
    showOthers(side, it);
  }

  return {
    node: h("div", { class: "view", "data-testid": "thread" },
      h("div", { class: "toolbar" }, title, stateHere, button), note, name,
      h("div", { class: "columns" },
        h("section", { class: "card wide" }, h("div", { class: "cardhead" }, h("h2", {}, "Stack")), stack),
        h("section", { class: "card" }, h("div", { class: "cardhead" }, h("h2", {}, "About it")), facts, side))),
    async update(what, retry) {
      again = retry;
      if (what === "points" || what === "status" || (what === "dump" && asked && areMany())) return undefined;
      asked = true;
      try {
        button.hidden = !areMany();
        const answer = await ask("thread", { id, now: query.now });
        show(answer);
        return answer;
      } catch (problem) {
        explain(note, problem, query, "thread");
        return undefined;
      }
    },
    close: () => {},
  };
}

function factsOf(it) {
  const waits = [it.full_waits || "nothing"];
  if (it.owner !== null) waits.push(" ", threadLink(it.owner));
  const scopes = it.scopes.flatMap((scope, index) => [
    index > 0 ? " in " : "",
    h("a", { href: to("threads", { where: `scope=${scope.id}` }) }, h("bdi", {}, scope.name === null ? `scope ${scope.id}` : `${scope.name} (${scope.id})`)),
    scope.cancelled ? " cancelled" : "",
  ]);
  const all = [
    ["waits for", it.state === "waiting" && waits],
    ["gives up in", it.left !== null && [seconds(it.left)]],
    ["has not moved for at least", it.age !== null && [seconds(it.age)]],
    ["spawned at", it.place !== null && [h("bdi", { class: "code" }, it.place)]],
    ["scope", scopes.length > 0 && scopes],
    ["carrier", it.carrier !== null && [String(it.carrier)]],
    ["mounted", [counted(it.mounts, "time")]],
    ["stack in use", it.stack_bytes !== null && [bytes(it.stack_bytes)]],
    ["interrupted", it.interrupted && ["yes, but has not noticed yet"]],
    ["kind", !it.is_virtual && ["platform thread"]],
    ["others with the same", it.object !== null && it.wait !== "none" && [
      h("a", { href: to("threads", { where: `wait=${it.wait},object=${it.object}` }) }, "threads that wait for it")]],
  ];
  return all.filter(([, parts]) => parts);
}

/** Whom it waits for, one for the other, and who waits for it. */
function showOthers(side, it) {
  if (side.firstChild === null) {
    side.append(h("h3", { hidden: true }, "It waits for"), h("ol", { class: "rows", "data-testid": "chain" }),
      h("h3", { hidden: true }, "Waiting for it"), h("ul", { class: "rows", "data-testid": "waiters" }));
  }
  const [chainTitle, chain, waitersTitle, waiters] = side.children;
  chainTitle.hidden = it.chain.length === 0;
  waitersTitle.hidden = it.waiters.length === 0;
  text(waitersTitle, `${counted(it.waiters_all, "thread")} waiting for it`);
  let step = 0;
  const steps = it.chain.map((row) => ({ ...row, step: step++ }));
  keyed(chain, steps, (row) => `${row.step} ${row.id}`, (row) => threadItem(row));
  attribute(chain, "hidden", it.chain.length === 0);
  keyed(waiters, it.waiters, (row) => String(row.id), (row) => threadItem(row));
}
