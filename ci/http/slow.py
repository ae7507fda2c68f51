"""Slow clients: slowhttptest against the example `probe`, whose time limits are short.

    slow.py WORK URL

1,000 attackers send heads or bodies byte by byte, read slowly, or ask for many ranges. Meanwhile an
ordinary client gets all its answers. Each attacker is closed by a limit, and the server gets back
to where it was.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

ATTACKERS = 1000
# What slowhttptest says about its connections, at the end of its report.
COUNT = re.compile(r"(initializing|pending|connected|error|closed|available)[:\s]+(\d+)")
ATTACKS = {
    # -H: heads without an end, a field every second; the server's limit is 3 seconds.
    "slow head": ["-H", "-i", "1", "-u", "/probe/hello"],
    # -B: a body that comes byte by byte.
    "slow body": ["-B", "-i", "1", "-s", "8192", "-x", "10", "-u", "/slow"],
    # -X: the client's window is small, and it reads 32 bytes every second.
    "slow read": ["-X", "-w", "512", "-y", "1024", "-n", "1", "-z", "32", "-k", "1", "-u", "/probe/large/10000000"],
    # -R: a head that asks for many overlapping ranges of a file.
    "ranges": ["-R", "-a", "5", "-b", "3000", "-u", "/probe/files/random"],
}


class Ordinary(threading.Thread):
    """A client that asks and gets its answer, again and again, on a new connection each time."""

    def __init__(self, host, port):
        super().__init__(daemon=True)
        self.host, self.port, self.stopped = host, port, threading.Event()
        self.times, self.errors = [], []

    def run(self):
        while not self.stopped.is_set():
            start = time.monotonic()
            try:
                client = http.client.HTTPConnection(self.host, self.port, timeout=60)
                client.request("POST", "/any", b"x" * 10000)
                answer = json.load(client.getresponse())
                if answer["length"] != 10000:
                    self.errors.append(str(answer))
                client.close()
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.errors.append(repr(error))
            self.times.append(time.monotonic() - start)
            self.stopped.wait(0.01)

    def finish(self):
        self.stopped.set()
        self.join(120)
        return self


def established(port):
    """Returns how many connections the server has."""
    command = ["ss", "-Htn", "state", "established", f"( sport = :{port} )"]
    return len(subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.splitlines())


def most_and_left(process, port):
    """Returns the most connections while a process runs, and how many are left after its end."""
    most, end = 0, time.monotonic() + 120
    while process.poll() is None and time.monotonic() < end:
        most = max(most, established(port))
        time.sleep(0.2)
    while (left := established(port)) > 0 and time.monotonic() < end:
        time.sleep(0.2)
    return most, left


def attack(name, arguments, url, host, port, work):
    """Attacks, and returns what is wrong."""
    target = arguments[arguments.index("-u") + 1]
    arguments = arguments[: arguments.index("-u")] + ["-u", url + target]
    client = Ordinary(host, port)
    client.start()
    path = os.path.join(work, name.replace(" ", "-"))
    command = ["slowhttptest", "-c", str(ATTACKERS), "-r", "500", "-l", "90", "-p", "60", *arguments]
    with open(path, "w") as report:
        process = subprocess.Popen(["timeout", "150", *command], stdout=report, stderr=report)
        most, left = most_and_left(process, port)
        process.wait()
    client.finish()
    with open(path, errors="replace") as report:
        text = re.sub(r"\x1b\[[0-9;]*m", "", report.read())
    counts = dict(COUNT.findall(text[text.rfind("initializing") :]))
    exit_reason = re.findall(r"Exit status: (.*)", text)
    longest = max(client.times, default=0)
    print(f"{name}: at most {most} connections at once, {counts}, {exit_reason}; {len(client.times)} ordinary "
          f"requests, {len(client.errors)} errors, the longest {longest:.2f} s")
    if client.errors:
        yield f"{name}: errors of the ordinary client: {client.errors[:3]}"
    if len(client.times) < 10:
        yield f"{name}: the ordinary client got only {len(client.times)} answers"
    if left:
        yield f"{name}: {left} connections are left"
    if exit_reason != ["No open connections left"]:
        yield f"{name}: not all attackers have been closed by the server: {exit_reason}, {counts}"


def main():
    work, url = sys.argv[1:]
    parts = urlsplit(url)
    wrong = []
    for name, arguments in ATTACKS.items():
        wrong += attack(name, arguments, url, parts.hostname, parts.port, work)
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)


main()
