// Messages by the package ws, which is in the present folder's node_modules: `websocket.mjs URL WORK`.

import assert from "node:assert";
import { once } from "node:events";
import { createRequire } from "node:module";

const [address, work] = process.argv.slice(2);
const WebSocket = createRequire(`${work}/`)("ws");

const socket = new WebSocket(address);
await once(socket, "open");
assert.equal(socket.extensions, "", "no extension has been agreed on");
const sent = ["", "hello", "é".repeat(1000), Buffer.alloc(0), Buffer.alloc(70_000), "x".repeat(5_000_000)];
for (const message of sent) {
    socket.send(message);
    const [data, isBinary] = await once(socket, "message");
    assert.equal(isBinary, Buffer.isBuffer(message));
    assert.ok(data.equals(Buffer.from(message)), "the message comes back");
}
socket.send("frag", { fin: false });
socket.send("ment", { fin: true });
assert.equal((await once(socket, "message"))[0].toString(), "fragment");
socket.ping("data");
assert.equal((await once(socket, "pong"))[0].toString(), "data");
socket.close(4000, "reason");
const [code, reason] = await once(socket, "close");
assert.deepEqual([code, reason.toString()], [4000, "reason"], "the code comes back");

// A message beyond the server's limit: the client is told.
const large = new WebSocket(address);
await once(large, "open");
large.on("error", () => {});
large.send(Buffer.alloc(40_000_000));
const [status] = await once(large, "close");
assert.ok([1009, 1006].includes(status), `closed with ${status}`);
console.log(`ws: ${sent.length + 3} messages; one that is too large is answered with ${status}`);
