// The list of requests by Node's fetch, which is undici: `clients.mjs URL`.

import { all, check, count } from "./list.mjs";

const url = process.argv[2];

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

async function ask(row) {
    const [method, target, size, framing] = row;
    const options = { method };
    if (framing === "chunked") Object.assign(options, { body: stream(Number(size)), duplex: "half" });
    else if (size !== "0") options.body = "x".repeat(Number(size));
    const response = await fetch(url + target, options);
    check(row, response.status, Buffer.from(await response.arrayBuffer()));
}

await all(ask);
console.log(`fetch of Node ${process.version}: ${count} requests`);
