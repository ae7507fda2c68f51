// The list of requests by Node's http2, and a WebSocket (RFC 8441), all on one connection:
// `http2.mjs URL CERTIFICATE`.

import assert from "node:assert";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { all, check, count } from "./list.mjs";

const [url, certificate] = process.argv.slice(2);
// What all streams queue is more than Node allows a session by default, 10 MB.
const session = http2.connect(url, { ca: readFileSync(certificate), maxSessionMemory: 1000 });

function ask(row) {
    const [method, target, size, framing] = row;
    return new Promise((done, failed) => {
        const fields = { ":method": method, ":path": target };
        if (framing === "length" && size !== "0") fields["content-length"] = size;
        const stream = session.request(fields, { endStream: size === "0" });
        const pieces = [];
        let got;
        stream.on("response", (head) => (got = head[":status"]));
        stream.on("data", (piece) => pieces.push(piece));
        stream.on("error", failed);
        stream.on("end", () => {
            try {
                check(row, got, Buffer.concat(pieces));
                done();
            } catch (error) {
                failed(error);
            }
        });
        if (size !== "0") stream.end("x".repeat(Number(size)));
    });
}

// A frame with "hello", and an empty mask, comes back without one.
async function socket() {
    if (!session.remoteSettings?.enableConnectProtocol) {
        const [settings] = await once(session, "remoteSettings");
        assert.ok(settings.enableConnectProtocol);
    }
    const fields = { ":method": "CONNECT", ":protocol": "websocket", ":path": "/probe/socket" };
    const stream = session.request({ ...fields, "sec-websocket-version": "13" });
    const [head] = await once(stream, "response");
    assert.equal(head[":status"], 200);
    for (let round = 0; round < 100; round++) {
        stream.write(Buffer.from("818500000000" + Buffer.from("hello").toString("hex"), "hex"));
        const [frame] = await once(stream, "data");
        assert.equal(frame.toString("hex"), "8105" + Buffer.from("hello").toString("hex"));
    }
    stream.end();
    stream.resume();
    await once(stream, "end");
}

await Promise.all([socket(), all(ask)]);
session.close();
console.log(`http2 of Node ${process.version}: ${count} requests, and a WebSocket`);
