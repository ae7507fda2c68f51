// Making elements. Text becomes text: no function here takes markup, so a name cannot be any.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element. Keys that begin with "on" are listeners, others attributes; false leaves out. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Sets an element's text, unless it is that already: a selection in it stays. */
export function text(element, value) {
  const next = String(value ?? "");
  if (element.textContent !== next) element.textContent = next;
}

/** Sets or removes an attribute. */
export function attribute(element, name, value) {
  if (value === undefined || value === null || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value === true ? "" : value);
}

/**
 * Keeps the children of `parent` in step with `items`: `make(item)` returns { node, update(item) },
 * and is called when a key is new. Other items keep their nodes, and with these focus, selection,
 * and what is open.
 */
export function keyed(parent, items, key, make) {
  const known = parent.keyed ?? new Map();
  const wanted = new Map(items.map((item) => [key(item), item]));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  for (const [name, made] of known) {
    if (wanted.has(name)) continue;
    made.node.remove();
    known.delete(name);
  }
  let place = parent.firstChild;
  for (const [name, item] of wanted) {
    if (!known.has(name)) known.set(name, make(item));
    const made = known.get(name);
    made.update(item);
    if (made.node === place) place = place.nextSibling;
    else parent.insertBefore(made.node, place);
  }
  parent.keyed = known;
  // What was moved has lost the focus.
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
}

/** A link to a view: `#/thread?id=7`. */
export function to(view, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(pairs).toString();
  return `#/${view}${search ? `?${search}` : ""}`;
}

/** A small label for a state. */
export function badge(state) {
  return h("span", { class: `badge ${state}` }, state);
}

/** A thread as a link: its number, and its name if it has one. */
export function threadLink(id, name) {
  const link = h("a", { href: to("thread", { id }), class: "thread", "data-testid": `thread-${id}` }, `#${id}`);
  if (name !== undefined && name !== null) link.append(" ", h("bdi", { class: "threadname", title: name }, name));
  return link;
}
