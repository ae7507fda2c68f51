// The page of `pirn console` in a browser, about the example `shop`.
//
//     node console.mjs PIRN SHOP OUTPUT
//
// PIRN: the command. SHOP: the built example. OUTPUT: a folder for screenshots. The package
// `playwright-core` must be found from the working folder, and a Chromium (CHROMIUM, or
// /usr/bin/chromium). Each step waits for a condition; the first that does not come true fails.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import readline from "node:readline";
import { createRequire } from "node:module";

const [pirn, shop, output] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.cwd(), "x.js"))("playwright-core");
fs.mkdirSync(output, { recursive: true });

const PATIENCE = 30_000 * Number(process.env.PIRN_TEST_SLOWNESS ?? 1);
const started = [];

/** Starts a program; its lines come one by one. */
function start(program, ...parameters) {
  const child = spawn(program, parameters, { stdio: ["pipe", "pipe", "inherit"] });
  started.push(child);
  const lines = readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, line: async () => (await lines.next()).value };
}

async function startShop() {
  const it = start(shop);
  assert.equal(await it.line(), "ready");
  it.tell = async (command) => {
    it.child.stdin.write(`${command}\n`);
    assert.equal(await it.line(), "done");
  };
  return it;
}

async function startConsole(pid, ...parameters) {
  const it = start(pirn, "console", String(pid), ...parameters);
  await it.line();
  it.url = await it.line();
  assert.match(it.url, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
  return it;
}

/** Asks the console as another program would: its status. */
function status(url, headers = {}) {
  return new Promise((done, failed) => {
    http.get(url, { headers }, (response) => done(response.resume().statusCode)).on("error", failed);
  });
}

async function step(name, act) {
  await act();
  console.log(`ok: ${name}`);
}

const target = await startShop();
const served = await startConsole(target.child.pid, "--interval-ms", "250");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // No name leads anywhere: the page must work without a network.
  args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
});

/** What the page must not do: errors, warnings of its policy, requests to others. */
const wrong = [];
async function newPage(size, colorScheme) {
  const context = await browser.newContext({ viewport: size, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => request.url().startsWith(served.url) || wrong.push(request.url()));
  page.on("dialog", (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.addInitScript(() => document.addEventListener("securitypolicyviolation", (event) => {
    console.error(`the policy is violated: ${event.violatedDirective} ${event.blockedURI}`);
  }));
  return page;
}

const page = await newPage({ width: 1280, height: 860 }, "light");
const byId = (id) => page.getByTestId(id);
const go = async (view) => {
  await byId(`nav-${view}`).click();
  await byId(view).waitFor();
};
const textOf = async (id) => (await byId(id).first().textContent()).trim();
/** Waits until an element's text is as a function wants it. */
async function until(id, wanted) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const now = await textOf(id);
    if (wanted(now)) return now;
    assert.ok(Date.now() < deadline, `${id} is still ${JSON.stringify(now.slice(0, 300))}`);
    await page.waitForTimeout(50);
  }
}
const number = (text) => Number(text.replaceAll(",", ""));

async function run() {
  await step("it loads, offline", async () => {
    await page.goto(served.url);
    await until("state", (it) => it === "live");
    assert.equal(await textOf("process"), "shop");
    await until("alive", (it) => number(it) >= 15);
  });
  await step("numbers change while threads start", async () => {
    const before = number(await textOf("alive"));
    await target.tell("customers 2000");
    await until("alive", (it) => number(it) === before + 2000);
  });
  await step("groups: the largest first, with its stack", groups);
  await step("a filter chooses groups", filter);
  await step("one thread, with its stack", thread);
  await step("search finds by name and by number", search);
  await step("the tree of scopes", scopes);
  await step("a circle is noticed", circle);
  await step("pictures for docs/images", pictures);
  await step("carriers, and a recording", carriers);
  await step("hostile names are text", hostile);
  await step("the keyboard is enough", keyboard);
  await step("pause, and going on", pause);
  await step("others get nothing", others);
  await step("it can be saved", save);
  await step("each view in both themes, wide and narrow", screenshots);
  await step("the console goes, and comes back", comeback);
  await step("the process ends, the data stay", end);
}

async function groups() {
  await go("groups");
  await until("count", (it) => number(it) === 1000);
  const first = byId("group").first();
  await first.getByTestId("group-open").click();
  await first.getByTestId("stack").waitFor();
  assert.match(await first.getByTestId("stack").textContent(), /shop::customers/);
  await page.waitForTimeout(2500); // It stays open while dumps come.
  assert.ok(await first.getByTestId("stack").isVisible());
  await until("groups-total", (it) => /^2,0\d\d threads in \d+ groups/.test(it));
}

async function filter() {
  await byId("filter").fill("state=waiting,wait=sleep");
  await byId("filter").press("Enter");
  await until("groups-total", (it) => /^1,0\d\d threads/.test(it));
  await byId("filter").fill("name=cook*");
  await byId("filter").press("Enter");
  await until("groups-total", (it) => /^3 threads/.test(it));
  await byId("filter").fill("colour=red");
  await byId("filter").press("Enter");
  await until("groups-error", (it) => /there is no condition "colour"/.test(it));
  await page.goto(`${served.url}#/groups`);
  await until("groups-total", (it) => /^2,0\d\d threads/.test(it));
}

async function thread() {
  await byId("search").fill("cashier");
  await byId("search").press("Enter");
  await byId("thread-row").first().waitFor();
  await byId("thread-row").first().getByRole("link").first().click();
  await byId("thread-title").waitFor();
  await until("thread-name", (it) => it === "cashier");
  await until("stack", (it) => /count_money/.test(it));
  await page.goto(`${served.url}#/thread?id=999999`);
  await until("thread-gone", (it) => /no thread #999999/.test(it));
}

async function search() {
  await page.keyboard.press("/");
  await page.keyboard.type("accountant");
  await page.keyboard.press("Enter");
  await until("threads-total", (it) => /^1 thread$/.test(it));
  const id = (await byId("thread-row").getByRole("link").first().textContent()).split(" ")[0];
  await byId("search").fill(id);
  await byId("search").press("Enter");
  await until("thread-name", (it) => it === "accountant");
}

async function scopes() {
  await go("scopes");
  await until("scope-tree", (it) => /shop .*order 1 .*order 3/s.test(it));
  const names = await byId("scope-name").allTextContents();
  assert.equal(names.filter((it) => it.startsWith("order ")).length, 3);
  await byId("scope-tree").getByText(/^order 2/).locator("xpath=..").getByTestId("scope-threads").click();
  await until("threads-total", (it) => /^2 threads$/.test(it));
  const list = await byId("threads-body").textContent();
  assert.match(list, /part-1.*sleep|part-2.*read/s);
}

async function circle() {
  await target.tell("circle");
  await page.goto(`${served.url}#/`);
  await until("findings", (it) => /circle|cycle/.test(it) && /first of a circle/.test(it));
}

/** Taken before there are threads with hostile names. */
async function pictures() {
  await page.setViewportSize({ width: 1250, height: 780 });
  const opened = page.locator("[data-testid=group-open][aria-expanded=true]");
  while ((await opened.count()) > 0) await opened.first().click();
  await page.screenshot({ path: path.join(output, "docs-overview.png") });
  await go("groups");
  await byId("filter").fill("state=waiting,wait=futex|scope|join");
  await byId("filter").press("Enter");
  await until("groups-total", (it) => /^1,0\d\d threads/.test(it));
  const first = byId("group").first();
  await first.getByTestId("group-open").click();
  await first.getByTestId("stack").waitFor();
  await page.setViewportSize({ width: 1250, height: 560 });
  await page.mouse.move(0, 0);
  await page.screenshot({ path: path.join(output, "docs-groups.png") });
  await page.setViewportSize({ width: 1280, height: 860 });
}

async function carriers() {
  await go("carriers");
  await byId("carrier").first().waitFor();
  assert.ok((await byId("strip").first().locator("rect").count()) > 5);
  await byId("record").click();
  await until("recorded", (it) => /[1-9][\d,]* turns/.test(it));
  const bars = byId("lanes").locator("rect");
  assert.ok((await bars.count()) > 50, "there are bars");
  await bars.nth(20).click({ force: true });
  await until("bar", (it) => /^carrier \d+, at .*#\d+/.test(it));
}

async function hostile() {
  await target.tell("hostile");
  await byId("search").fill("broken");
  await byId("search").press("Enter");
  await until("threads-total", (it) => /^[4-9] threads/.test(it));
  for (const view of ["groups", "threads", "scopes", "carriers", "overview"]) {
    await go(view);
    await page.waitForTimeout(300);
  }
  await go("threads");
  await until("threads-body", (it) => it.includes("<script>window.broken = true</script>"));
  const list = await textOf("threads-body");
  for (const name of ["<img src=x onerror=\"window.broken = true\">", "\\x1b[31mred", "\\u{202e}txt.exe", "two\\nlines\\r\\ndata: broken"]) {
    assert.ok(list.includes(name), `${name} is not in the list`);
  }
  assert.ok(!/[\u202a-\u202e\u2066-\u2069\u200b\x1b]/u.test(list), "characters with an effect");
  await page.screenshot({ path: path.join(output, "hostile-threads.png") });
  await byId("threads-body").getByText(/^longlong/).first().locator("xpath=..").click();
  await until("thread-name", (it) => it.length >= 4_000);
  await page.screenshot({ path: path.join(output, "hostile-long.png") });
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  assert.equal(await wide(), false, "the page is wider than its window");
  await go("scopes");
  await until("scope-tree", (it) => it.includes("<script>window.broken = true</script>"));
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await page.locator("main script, main img, main iframe, main [onload], main [onerror]").count(), 0);
}

async function keyboard() {
  await go("groups");
  const first = byId("group").first();
  await first.waitFor();
  const before = await byId("stack").count();
  await first.getByTestId("group-open").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction((count) => document.querySelectorAll("[data-testid=stack]").length !== count
    || [...document.querySelectorAll(".detail")].every((it) => it.hidden), before);
  await page.waitForTimeout(2500);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), "group-open", "the focus stays");
}

async function pause() {
  await page.goto(`${served.url}#/`);
  await until("alive", (it) => number(it) > 2000);
  await byId("pause").click();
  await until("state", (it) => it === "paused");
  const before = await textOf("alive");
  await target.tell("customers 500");
  await page.waitForTimeout(1500);
  assert.equal(await textOf("alive"), before);
  await byId("pause").click();
  await until("alive", (it) => number(it) === number(before) + 500);
  await until("state", (it) => it === "live");
}

async function others() {
  const { host } = new URL(served.url);
  assert.equal(await status(served.url), 200);
  assert.equal(await status(served.url.replace(/\/[0-9a-f]{32}\//, `/${"0".repeat(32)}/`)), 403);
  assert.equal(await status(`http://${host}/`), 403);
  assert.equal(await status(served.url, { host: "evil.example" }), 403);
  assert.equal(await status(served.url, { origin: "http://evil.example" }), 403);
  // A page of another origin in the same browser, which even knows the address.
  const evil = http.createServer((_, response) => response.end("<!doctype html><title>evil</title>"));
  await new Promise((ready) => evil.listen(0, "127.0.0.1", ready));
  const other = await (await browser.newContext()).newPage();
  await other.goto(`http://127.0.0.1:${evil.address().port}/`);
  const answer = await other.evaluate(async (url) => {
    const read = await fetch(`${url}groups`).then(() => "read", () => "refused");
    const sent = await fetch(`${url}groups`, { mode: "no-cors" }).then((it) => it.type, () => "refused");
    const frame = document.createElement("iframe");
    frame.src = url;
    document.body.append(frame);
    await new Promise((loaded) => { frame.onload = loaded; });
    const framed = (() => { try { return frame.contentDocument?.title ?? "opaque"; } catch { return "opaque"; } })();
    const script = await new Promise((done) => {
      const element = document.createElement("script");
      element.src = `${url}main.js`;
      element.onload = () => done("loaded");
      element.onerror = () => done("refused");
      document.body.append(element);
    });
    return { read, sent, framed, script };
  }, served.url);
  assert.equal(answer.read, "refused");
  assert.equal(answer.script, "refused");
  assert.notEqual(answer.framed, "shop – pirn console");
  await other.context().close();
  evil.close();
}

async function save() {
  await byId("save").click();
  const [download] = await Promise.all([page.waitForEvent("download"), byId("save-dump").click()]);
  const file = path.join(output, "saved.pirndump");
  await download.saveAs(file);
  assert.match(download.suggestedFilename(), /^pirn-\d+\.pirndump$/);
  assert.equal(fs.readFileSync(file).subarray(0, 8).toString(), "PIRNDUMP");
  const shown = start(pirn, "dump", file);
  assert.match(await shown.line(), /^pirn .* of process \d+/);
}

/** Pictures for people: no test compares them. */
async function screenshots() {
  const ids = await fetch(`${served.url}threads?where=name=cashier`).then((it) => it.json());
  const stack = `thread?id=${ids.threads[0].id}`;
  for (const [theme, size, name] of [
    ["light", { width: 1280, height: 860 }, "light"], ["dark", { width: 1280, height: 860 }, "dark"],
    ["light", { width: 1000, height: 800 }, "light-1000"], ["dark", { width: 400, height: 800 }, "dark-400"],
  ]) {
    const other = await newPage(size, theme);
    await other.goto(served.url);
    const background = await other.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(background === "rgb(245, 246, 248)", theme === "light", background);
    for (const view of ["", "groups", "threads", "scopes", "carriers", stack]) {
      await other.goto(`${served.url}#/${view}`);
      await other.getByTestId("made").filter({ hasText: "dump" }).waitFor({ state: "attached" });
      if (view === "groups") await other.getByTestId("group-open").nth(1).click();
      if (view === "threads") await other.getByTestId("thread-row").first().waitFor();
      if (view === "carriers" && size.width === 1280) {
        await other.getByTestId("record").click();
        await other.getByTestId("recorded").filter({ hasText: "turns" }).waitFor();
      }
      await other.waitForTimeout(700);
      const wide = await other.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${view} is ${wide} pixels wider than ${size.width}`);
      const file = `${name}-${view.split("?")[0] || "overview"}.png`;
      await other.screenshot({ path: path.join(output, file), fullPage: size.width < 1280 });
      if (view === "groups") await other.getByTestId("group-open").nth(1).click();
    }
    if (theme === "light" && size.width === 1280) {
      await other.getByTestId("theme").click();
      await other.getByTestId("theme").click();
      const switched = await other.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.notEqual(switched, background, "the switch does nothing");
    }
    await other.context().close();
  }
}

async function comeback() {
  // A failed connection is an error to the browser, and nothing else may be one.
  const known = wrong.length;
  await page.route("**/events", (route) => route.abort("connectionreset"));
  await page.reload();
  await until("state", (it) => it === "lost");
  assert.match(await textOf("banner"), /does not answer/);
  await page.unroute("**/events");
  await until("state", (it) => it === "live");
  assert.equal(await byId("banner").isVisible(), false);
  const others = wrong.slice(known).filter((it) => !/ERR_CONNECTION_RESET/.test(it));
  wrong.splice(known, Infinity, ...others);
}

async function end() {
  const alive = await textOf("alive");
  target.child.stdin.end();
  await until("state", (it) => it === "ended");
  assert.match(await textOf("banner"), /^Process \d+ .*has ended\. What is shown stays\.$/);
  assert.ok(number(await textOf("alive")) > 0, `it was ${alive}`);
  await go("groups");
  await byId("group").first().waitFor();
  await page.screenshot({ path: path.join(output, "ended.png") });
}

try {
  await run();
  assert.deepEqual(wrong, [], "errors, warnings and requests to others");
  console.log("the console works in a browser");
} catch (error) {
  await page.screenshot({ path: path.join(output, "failed.png") }).catch(() => {});
  console.error(error, wrong);
  process.exitCode = 1;
} finally {
  await browser.close();
  for (const child of started) child.kill("SIGKILL");
}
process.exit();
