// The tree of scopes: who opened each, how many subtasks have not ended.

import { h, keyed, text, threadLink, to } from "./dom.js";
import { ask } from "./state.js";
import { count, counted } from "./words.js";

/** The scopes that are closed, by id. */
const closed = new Set();

export function scopes() {
  const total = h("p", { class: "dim", "data-testid": "scopes-total" });
  const tree = h("ul", { class: "tree", "data-testid": "scope-tree" });
  const rest = h("p", { class: "dim", hidden: true });
  const none = h("p", { class: "dim empty", hidden: true }, "No scope is open.");
  return {
    node: h("div", { class: "view", "data-testid": "scopes" },
      h("div", { class: "toolbar" }, h("h1", {}, "Scopes"), total),
      h("section", { class: "card" }, none, tree, rest)),
    async update(what) {
      if (what === "points" || what === "status") return undefined;
      const answer = await ask("scopes");
      keyed(tree, answer.tree, (it) => String(it.id), (it) => scopeNode(it));
      none.hidden = answer.tree.length > 0;
      rest.hidden = answer.more === 0;
      text(rest, `and ${counted(answer.more, "scope")} with fewer subtasks`);
      text(total, `${counted(answer.all, "scope")} open; ${counted(answer.outside, "thread")} in no scope`);
      return answer;
    },
    close: () => {},
  };
}

function scopeNode(first) {
  const name = h("bdi", { class: "scopename", "data-testid": "scope-name" });
  const id = h("span", { class: "dim" }, first.name === null ? "" : `(${first.id})`);
  const subtasks = h("a", { href: to("threads", { where: `scope=${first.id}` }), "data-testid": "scope-threads" });
  const owner = h("span", { class: "dim" });
  const mark = h("span", { class: "badge warn", hidden: true }, "cancelled");
  const inner = h("ul", {});
  const more = h("p", { class: "dim", hidden: true });
  const line = [name, " ", id, " ", mark, " ", subtasks, " ", owner];
  const leaf = h("div", { class: "leaf" });
  const summary = h("summary", {});
  const branch = h("details", { open: !closed.has(first.id), ontoggle: () => (branch.open ? closed.delete(first.id) : closed.add(first.id)) },
    summary, inner, more);
  const node = h("li", {});
  if (first.owner !== null) {
    owner.append("opened by ", threadLink(first.owner, first.owner_name));
  }
  return {
    node,
    update(scope) {
      const isBranch = scope.scopes.length + scope.more > 0;
      const place = isBranch ? summary : leaf;
      if (name.parentNode !== place) {
        place.append(...line);
        node.replaceChildren(isBranch ? branch : leaf);
      }
      text(name, scope.name === null ? `scope ${scope.id}` : scope.name);
      text(subtasks, counted(scope.subtasks, "subtask"));
      mark.hidden = !scope.cancelled;
      keyed(inner, scope.scopes, (it) => String(it.id), (it) => scopeNode(it));
      more.hidden = scope.more === 0;
      text(more, `and ${count(scope.more)} more scopes with fewer subtasks`);
    },
  };
}
