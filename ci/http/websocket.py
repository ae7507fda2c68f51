"""WebSockets: Autobahn's cases by kosoku, and the libraries of Python and Node.

    websocket.py WORK URL          (with the Python that has kosoku and websockets)

Cases 1 to 10 must be OK or informational. 12 and 13 are about permessage-deflate, which is not
offered. NON_STRICT are the two cases that tungstenite alone does not pass strictly either, by the
results in its repository: text that is no UTF-8 is refused at the end of its frame, not within it.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import websockets

HERE = os.path.dirname(os.path.abspath(__file__))
NON_STRICT = {"6.4.3", "6.4.4"}
AGAIN = 3
FINE = {"OK", "INFORMATIONAL"}


def run_cases(address, work, chosen):
    """Runs cases of Autobahn, and returns for each its behaviour, and that at the close."""
    reports = Path(work, "reports")
    shutil.rmtree(reports, ignore_errors=True)
    kosoku = os.path.join(os.path.dirname(sys.executable), "kosoku")
    with open(os.path.join(work, "kosoku"), "a") as out:
        subprocess.run([kosoku, "-m", "fuzzingclient", *chosen, "-o", reports, address], stdout=out, stderr=out,
                       timeout=1500)
    (agent,) = json.loads(Path(reports, "index.json").read_text()).values()
    return {name: (case["behavior"], case["behaviorClose"]) for name, case in agent.items()}


def is_fine(name, results):
    behaviour, at_close = results
    return (behaviour == "NON-STRICT" if name in NON_STRICT else behaviour in FINE) and at_close in FINE


def autobahn(address, work):
    """Runs the cases, and returns what is wrong.

    Some cases give the server half a second, which a busy machine may not have: a case that fails is
    run again, alone.
    """
    results = run_cases(address, work, ["-p", "4", "-x", "12.*", "-x", "13.*"])
    for _ in range(AGAIN):
        failed = [name for name, result in results.items() if not is_fine(name, result)]
        if failed:
            print(f"kosoku: once more, {failed}")
            results |= run_cases(address, work, [part for name in failed for part in ("-i", name)])
    print(f"kosoku: {len(results)} cases: {dict(Counter(results.values()))}")
    yield from (f"case {name}: {result}" for name, result in results.items() if not is_fine(name, result))
    if len(results) < 300:
        yield f"only {len(results)} cases"


async def python(address):
    """Sends what the websockets package can send, and returns what is wrong."""
    async with websockets.connect(address, max_size=None, compression="deflate") as socket:
        for message in ["", "hello", "é" * 1000, b"", b"\0" * 70_000, "x" * 5_000_000]:
            await socket.send(message)
            if await socket.recv() != message:
                yield f"websockets: another message comes back for one of {len(message)}"
        await socket.send([b"frag", b"ment", b"ed"])
        if await socket.recv() != b"fragmented":
            yield "websockets: a message in fragments comes back differently"
        await asyncio.wait_for(await socket.ping(), 30)
    if socket.close_code != 1000:
        yield f"websockets: the socket is closed with {socket.close_code}"
    sockets = await asyncio.gather(*[websockets.connect(address) for _ in range(200)])
    for number, socket in enumerate(sockets):
        await socket.send(str(number))
    answers = [await socket.recv() for socket in sockets]
    if answers != [str(number) for number in range(200)]:
        yield "websockets: 200 sockets at once get other messages"
    await asyncio.gather(*[socket.close() for socket in sockets])
    print("websockets: 208 messages on 201 sockets")


async def collect(items):
    return [item async for item in items]


def main():
    work, url = sys.argv[1:]
    address = url.replace("http", "ws", 1) + "/probe/socket"
    wrong = list(autobahn(address, work)) + asyncio.run(collect(python(address)))
    node = subprocess.run(["node", os.path.join(HERE, "websocket.mjs"), address, work], timeout=300)
    if node.returncode:
        wrong.append("Node's sockets: see above")
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


main()
