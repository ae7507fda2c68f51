// The list of requests, for clients in Node.

import assert from "node:assert";
import { readFileSync } from "node:fs";

const ROUNDS = 3;
const AT_ONCE = 20;
const list = readFileSync(new URL("requests", import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split(" "));

export const count = list.length * ROUNDS * AT_ONCE;

/** Compares an answer with what the list says of it. */
export function check([method, target, size, framing, status, answer], got, body) {
    const text = body.toString("latin1");
    const what = `${method} ${target} ${size} ${framing}: ${text.slice(0, 200)}`;
    assert.equal(got, Number(status), what);
    if (answer === "echo") {
        for (const part of [`"length":${size},`, `"method":"${method}"`, `"target":"${target}"`]) {
            assert.ok(text.includes(part), what);
        }
    } else assert.equal(text.length, Number(answer), what);
}

/** Has `ask` make all requests, several at once. */
export function all(ask) {
    const one = async () => {
        for (let round = 0; round < ROUNDS; round++) for (const row of list) await ask(row);
    };
    return Promise.all(Array.from({ length: AT_ONCE }, one));
}
