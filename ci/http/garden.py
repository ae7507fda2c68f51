"""The garden: the same bytes to pirn-http and to other servers, and what each makes of them.

    garden.py [--without NAMES] PROBE WORK PYTHON [CASE...]

PROBE is the example's binary, PYTHON one with h11, NAMES servers that are not
there, with commas between them.

1. pirn-http sees exactly the requests that a case says, and answers with these statuses.
2. Each other server gets the same bytes. Where pirn-http sees a request that the other one does
   not, or another one, mismatches.py has a reason. So pirn-http is nowhere laxer by accident.
3. Each proxy in front of pirn-http gets them. pirn-http sees no request there but those that the
   proxy meant to send: the proxy adds a field to each, which a smuggled request has not.
"""

import json
import os
import re
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import cases_bodies
import cases_heads
import mismatches
import peers
from case import Case, req

# A server that has sent nothing for so long has nothing more to send. Then the client says that it
# will not either. Sooner does no harm: no server here gives up a request for that.
QUIET = 0.2
PATIENCE = 20 * float(os.environ.get("PIRN_TEST_SLOWNESS", 1))
# A request that every server sees.
LAST = Case("/last", "all before it has been seen", req(b"GET", b"/last", b"Connection: close\r\n"))
ABSOLUTE = re.compile(r" http://[^/ ]*/?")
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


def exchange(port, data):
    """Sends bytes. Returns what comes back until the end; None: there is no end."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        client.settimeout(QUIET)
        half_closed, end = False, time.monotonic() + PATIENCE
        try:
            client.sendall(data)
        except OSError:
            pass  # It has been refused already; the answer is still to be read.
        while time.monotonic() < end:
            try:
                piece = client.recv(65536)
            except TimeoutError:
                if not half_closed:
                    half_closed = True
                    try:
                        client.shutdown(socket.SHUT_WR)
                    except OSError:
                        return received
                continue
            except ConnectionError:
                return received
            if not piece:
                return received
            received += piece
    return None


def requests_until_last(peer):
    """Returns the requests that a server has logged, up to LAST."""
    found, end = [], time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found += [json.loads(line) for line in peer.new_lines()]
        last = [request for request in found if request["target"] == LAST.name]
        if last:
            return [request for request in found if request not in last]
        time.sleep(0.01)
    raise RuntimeError(f"{peer.name} serves no more")


def play(peer, case):
    """Sends a case to a server. Returns what that sees, its statuses, and what it sees but did not mean."""
    answer = exchange(peer.port, case.sends)
    # What is still on its way comes before this one.
    exchange(peer.port, LAST.sends)
    seen, smuggled = [], []
    for request in requests_until_last(peer):
        words = " ".join(filter(None, (request["method"], request["target"], request["start"])))
        if request["whole"]:
            seen.append(words)
        if request.get("meant") != peers.MEANT:
            smuggled.append(words)
    statuses = None if answer is None else [int(status) for status in STATUS.findall(answer)]
    return seen, statuses, smuggled


def play_all(peer, cases):
    """Sends all cases to a server, which is stopped then."""
    try:
        return {case.name: play(peer, case) for case in cases}
    finally:
        peer.stop()


def relation(ours, theirs):
    """Says how what pirn-http sees is to what another server sees. Proxies forward absolute targets as paths."""
    ours, theirs = ([ABSOLUTE.sub(" /", one) for one in seen] for seen in (ours, theirs))
    if ours == theirs:
        return "same"
    if ours == theirs[: len(ours)]:
        return "stricter"
    if theirs == ours[: len(theirs)]:
        return "laxer"
    return "other"


def start_all(probe, work, python, without):
    """Returns a server for each part of the garden, as pairs of what it is for and the server."""
    folder = lambda *names: os.path.join(work, *names)
    started = {"pirn": peers.probe(probe)(folder("pirn"))}
    for name, start in peers.origins(python).items():
        if name not in without.split(","):
            started[name] = start(folder(name))
    for name, start in peers.PROXIES.items():
        started[name] = start(folder(name), peers.RECORDER(folder(name, "origin")))
        started[f"{name}, pirn"] = start(folder(name + "-pirn"), peers.probe(probe)(folder(name + "-pirn", "origin")))
    return started


def check_ours(cases, results):
    for case in cases:
        seen, statuses, _ = results[case.name]
        if seen != case.sees or statuses != case.status:
            yield f"{case.name} ({case.why}): sees {seen}, answers {statuses}; {case.sees}, {case.status} are right"


def check_peer(name, cases, ours, theirs):
    """Compares with a server; returns the differences without reason, and counts."""
    counts, wrong = dict.fromkeys(("same", "stricter", "laxer", "other"), 0), []
    for case in cases:
        found = relation(ours[case.name][0], theirs[case.name][0])
        counts[found] += 1
        has_reason = mismatches.reason(name, case.name) is not None
        if has_reason != (found in ("laxer", "other")):
            wrong.append(f"{name}, {case.name} ({case.why}): pirn-http is {found}: it sees {ours[case.name][0]}, "
                         f"{name} sees {theirs[case.name][0]}" + has_reason * "; there is a reason for a difference")
    return counts, wrong


def check_behind(name, cases, results):
    for case in cases:
        if results[case.name][2]:
            yield f"{name}, {case.name} ({case.why}): smuggled {results[case.name][2]}"


def main():
    arguments, without = sys.argv[1:], ""
    if arguments[0] == "--without":
        _, without, *arguments = arguments
    probe, work, python, *names = arguments
    cases = [case for case in cases_heads.CASES + cases_bodies.CASES if not names or case.name in names]
    assert len({case.name for case in cases}) == len(cases), "two cases have the same name"
    started = start_all(probe, work, python, without)
    with ThreadPoolExecutor(len(started)) as pool:
        running = {name: pool.submit(play_all, peer, cases) for name, peer in started.items()}
        results = {name: one.result() for name, one in running.items()}
    with open(os.path.join(work, "results.json"), "w") as out:
        json.dump(results, out, indent=1)
    wrong = list(check_ours(cases, results["pirn"]))
    print(f"pirn-http: {len(cases)} cases, {len(wrong)} not as they should be")
    for name in started:
        if name.endswith(", pirn"):
            found = list(check_behind(name, cases, results[name]))
            print(f"behind {name.split(',')[0]}: {len(found)} cases with a smuggled request")
            wrong += found
        elif name != "pirn":
            counts, found = check_peer(name, cases, results["pirn"], results[name])
            print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in counts.items())
                  + f"; {len(found)} without reason")
            wrong += found
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
