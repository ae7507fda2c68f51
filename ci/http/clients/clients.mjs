// The list of requests by Node's fetch, which is undici: `clients.mjs URL`.

import assert from "node:assert";
import { readFileSync } from "node:fs";

const ROUNDS = 3;
const AT_ONCE = 20;
const url = process.argv[2];
const list = readFileSync(new URL("requests", import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split(" "));

// A body of unknown length is sent in chunks.
function stream(size) {
    let left = size;
    return new ReadableStream({
        pull(controller) {
            if (left === 0) return controller.close();
            const piece = new Uint8Array(Math.min(left, 50_000)).fill(120);
            left -= piece.length;
            controller.enqueue(piece);
        },
    });
}

async function ask([method, target, size, framing, status, answer]) {
    const options = { method };
    if (framing === "chunked") Object.assign(options, { body: stream(Number(size)), duplex: "half" });
    else if (size !== "0") options.body = "x".repeat(Number(size));
    const response = await fetch(url + target, options);
    const text = Buffer.from(await response.arrayBuffer()).toString("latin1");
    const what = `${method} ${target} ${size} ${framing}: ${text.slice(0, 200)}`;
    assert.equal(response.status, Number(status), what);
    if (answer === "echo") {
        for (const part of [`"length":${size},`, `"method":"${method}"`, `"target":"${target}"`]) {
            assert.ok(text.includes(part), what);
        }
    } else assert.equal(text.length, Number(answer), what);
}

async function all() {
    for (let round = 0; round < ROUNDS; round++) for (const row of list) await ask(row);
}

await Promise.all(Array.from({ length: AT_ONCE }, all));
console.log(`fetch of Node ${process.version}: ${list.length * ROUNDS * AT_ONCE} requests`);
