// An origin that understands requests as Node does, and logs them: `origin.mjs PORT LOG`.

import { openSync, writeSync } from "node:fs";
import { createServer } from "node:http";

const log = openSync(process.argv[3], "a");

function serve(request, response) {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
        const start = Buffer.concat(pieces).subarray(0, 64).toString("latin1");
        const understood = { method: request.method, target: request.url, start, whole: request.complete };
        writeSync(log, JSON.stringify(understood) + "\n");
        response.end();
    });
    request.on("error", () => {});
}

const server = createServer({ requestTimeout: 3000, headersTimeout: 3000, keepAliveTimeout: 3000 }, serve);
server.on("connect", (request, socket) => {
    const understood = { method: request.method, target: request.url, start: "", whole: true };
    writeSync(log, JSON.stringify(understood) + "\n");
    socket.end("HTTP/1.1 200 OK\r\n\r\n");
});
server.listen(Number(process.argv[2]), "127.0.0.1");
