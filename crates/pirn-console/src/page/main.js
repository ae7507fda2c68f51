// Which view is shown, and what is around it: the process, pause, theme, search.

import { text, attribute, to } from "./dom.js";
import { state, connect, listen, pause } from "./state.js";
import { overview } from "./overview.js";
import { groups } from "./groups.js";
import { threads, thread } from "./threads.js";
import { scopes } from "./scopes.js";
import { carriers } from "./carriers.js";
import { clock, nanos, seconds, pattern } from "./words.js";

const VIEWS = { overview, groups, threads, thread, scopes, carriers };
const THEMES = ["auto", "light", "dark"];

const byId = (id) => document.getElementById(id);
const main = byId("view");
let current = null;
/** Whether the view is being updated, and has to be again. */
let busy = false;
let pending = false;

function route() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const name = path in VIEWS ? path : "overview";
  const query = Object.fromEntries(new URLSearchParams(search ?? ""));
  current?.close();
  current = VIEWS[name](query);
  main.replaceChildren(current.node);
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.dataset.view === (name === "thread" ? "threads" : name);
    attribute(link, "aria-current", here ? "page" : null);
  }
  document.title = `${state.hello?.name ?? ""} – pirn console`;

  window.scrollTo(0, 0);
  update("view");
}

/** Updates the view. While that waits for an answer, what comes is put together. */
async function update(what) {
  const view = current;
  if (what === "points" || what === "status") {
    view.update(what);
    return;
  }
  if (busy) {
    pending = true;
    return;
  }
  busy = true;
  try {
    if (state.dump === 0) text(byId("made"), "waiting for the first dump");
    const answer = await view.update(what, () => update("view"));
    if (answer !== undefined) showMade(answer);
  } catch (problem) {
    // The next dump is asked for again. What is shown stays.
    text(byId("made"), problem.message);
  }
  busy = false;
  if (pending || view !== current) {
    pending = false;
    update(view === current ? "dump" : "view");
  }
}

function showMade(answer) {
  const problems = answer.problems.length > 0 ? `, without some names` : "";
  text(byId("made"), `dump ${answer.number} at ${clock(answer.time)}, took ${nanos(answer.process_ms * 1e6)}${problems}`);
  attribute(byId("made"), "title", answer.problems.join("\n"));
}

function showStatus() {
  const { hello, status } = state;
  const shown = status === "ended" || status === "lost" ? status : state.paused ? "paused" : status === "alive" ? "live" : status;
  const pill = byId("state");
  text(pill, shown);
  pill.className = `pill ${shown}`;
  if (hello !== null) {
    text(byId("name"), hello.name);
    attribute(byId("name"), "title", hello.program);
    const now = status === "ended" ? (state.points.at(-1)?.time ?? 0) / 1e6 : Date.now();
    text(byId("facts"), `process ${hello.pid}, up ${seconds(Math.max(0, (now - hello.started) / 1000))}`);
    if (document.title.startsWith(" –")) document.title = `${hello.name} – pirn console`;
  }
  const banner = byId("banner");
  const trouble = state.trouble === "" ? "" : `The last dump failed: ${state.trouble}`;
  const said = {
    ended: `${sentence(state.statusText)} What is shown stays.`,
    silent: `The process is ${state.statusText}`,
    lost: state.statusText,
  }[status] ?? trouble;
  text(banner, said);
  banner.className = `banner ${status}`;
  banner.hidden = said === "";
  attribute(byId("pause"), "aria-pressed", String(state.paused));
  text(byId("pause"), state.paused ? "Go on" : "Pause");
}

function sentence(said) {
  return `${said.charAt(0).toUpperCase()}${said.slice(1).replace(/\.$/, "")}.`;
}

function setTheme(theme) {
  attribute(document.documentElement, "data-theme", theme === "auto" ? null : theme);
  text(byId("theme"), `Theme: ${theme}`);
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // A browser that keeps nothing asks again.
  }
}

function savedTheme() {
  try {
    const theme = localStorage.getItem("theme");
    return THEMES.includes(theme) ? theme : "auto";
  } catch {
    return "auto";
  }
}

function search(event) {
  event.preventDefault();
  const wanted = byId("query").value.trim();
  if (wanted === "") return;
  byId("query").value = "";
  const number = /^#?(\d+)$/.exec(wanted);
  if (number !== null) location.hash = to("thread", { id: number[1] });
  else location.hash = to("threads", { where: /^[a-z]+=/.test(wanted) ? wanted : pattern(wanted) });
}

function onKey(event) {
  const typing = event.target.closest("input, select, textarea") !== null;
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    byId("query").select();
    event.preventDefault();
  } else if (event.key === "Escape") {
    byId("save").open = false;
    if (typing) event.target.blur();
  }
}

setTheme(savedTheme());
byId("theme").addEventListener("click", () => {
  setTheme(THEMES[(THEMES.indexOf(savedTheme()) + 1) % THEMES.length]);
});
byId("pause").addEventListener("click", () => pause(!state.paused));
byId("search").addEventListener("submit", search);
document.addEventListener("keydown", onKey);
document.addEventListener("click", (event) => {
  if (event.target.closest("#save summary") === null) byId("save").open = false;
});
document.addEventListener("visibilitychange", connect);
window.addEventListener("hashchange", route);
listen((what) => {
  showStatus();
  update(what);
});
connect();
route();
setInterval(showStatus, 1000);
