// What the page knows: it comes as events, and by questions. Views listen.

/** How long points and the counts of groups are kept, in milliseconds. */
const KEPT = 10 * 60_000;

/** With more threads than this, lists of single ones are made anew only on request. */
const MANY = 20_000;

export const state = {
  hello: null,
  points: [],
  /** The number of the newest dump. */
  dump: 0,
  trouble: "",
  /** connecting, alive, silent, ended, lost */
  status: "connecting",
  statusText: "",
  paused: false,
  /** By the key of a group: [[time, count], …]. */
  counts: new Map(),
  /** Which thread each carrier had at a dump: [[time, Map of number to name], …]. */
  mounted: [],
};

const listeners = new Set();
let source = null;

/** Calls a function with what has changed: points, dump, status. Returns how to end that. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether there are so many threads that a dump of each is not taken again and again. */
export function areMany() {
  const threads = Object.values(state.points.at(-1)?.threads ?? {});
  return threads.reduce((sum, it) => sum + it, 0) > MANY;
}

function tell(what) {
  for (const listener of [...listeners]) listener(what);
}

/** Opens the stream, unless the page is paused or hidden. */
export function connect() {
  const wanted = !state.paused && !document.hidden;
  if (wanted === (source !== null)) return;
  if (!wanted) {
    source.close();
    source = null;
    tell("status");
    return;
  }
  source = new EventSource("events");
  const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
  on("hello", (hello) => {
    state.hello = hello;
    state.points = [];
    state.dump = 0;
    setStatus("connecting", "");
  });
  on("points", (points) => {
    state.points.push(...points);
    const oldest = points.at(-1).time / 1e6 - KEPT;
    while (state.points.length > 0 && state.points[0].time / 1e6 < oldest) state.points.shift();
    tell("points");
  });
  on("dump", (dump) => {
    state.dump = dump.number;
    tell("dump");
  });
  on("trouble", (trouble) => {
    state.trouble = trouble;
    tell("status");
  });
  on("status", (status) => setStatus(status.state, status.text));
  // It comes again by itself, and begins with `hello`; unless the console refuses.
  source.onerror = () => setStatus("lost", source.readyState === EventSource.CLOSED
    ? "The console does not let this page in. If it was started anew, it has printed a new address."
    : "The command pirn console does not answer. It is asked again every second.");
}

function setStatus(status, text) {
  state.status = status;
  state.statusText = text;
  tell("status");
}

export function pause(paused) {
  state.paused = paused;
  connect();
  tell("status");
}

/** Asks the console; an answer that says what is wrong is an Error with that text. */
export async function ask(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const response = await fetch(`${path}?${new URLSearchParams(pairs)}`);
  if (!response.ok) throw new Error(`The console answers: ${response.status}`);
  const answer = await response.json();
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer;
}

/** Asks for groups, and notes how large they are. */
export async function askGroups(query) {
  const answer = await ask("groups", query);
  const old = answer.time - KEPT;
  for (const group of query.where ? [] : answer.groups) {
    const counts = state.counts.get(group.key) ?? [];
    if (counts.at(-1)?.[0] !== answer.time) counts.push([answer.time, group.count]);
    while (counts[0][0] < old) counts.shift();
    state.counts.set(group.key, counts);
  }
  for (const [key, counts] of state.counts) if (counts.at(-1)[0] < old) state.counts.delete(key);
  noteMounted(answer);
  return answer;
}

/** Notes which thread each carrier had. */
export function noteMounted(answer) {
  if (state.mounted.at(-1)?.[0] === answer.time) return;
  state.mounted.push([answer.time, new Map(answer.carriers.map((it) => [it.number, it]))]);
  if (state.mounted.length > 300) state.mounted.shift();
}

/** How much larger a group is than a minute ago; undefined if it has not been known for long. */
export function change(group) {
  const counts = state.counts.get(group.key) ?? [];
  if (counts.length < 2) return undefined;
  const since = counts.at(-1)[0] - 60_000;
  const before = counts.find(([time]) => time >= since);
  return counts.at(-1)[1] - before[1];
}
