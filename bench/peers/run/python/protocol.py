"""The protocol of bench/PROTOCOL.md, for programs in Python."""

import json
import os
import sys
import time


def say(**line):
    print(json.dumps(line), flush=True)


def params(arguments):
    return {key: int(value) for key, _, value in (a.partition("=") for a in arguments)}


def now():
    """The time on the clock, and the time that all processors spent on this process."""
    return time.monotonic(), time.process_time()


def since(start):
    end = now()
    return end[0] - start[0], end[1] - start[1]


def report(metric, taken, unit, done, due, scale=1):
    """Reports a metric and its share of the processors."""
    for name, value in zip((metric, f"{metric}, processor"), taken):
        say(metric=name, value=value * scale, unit=unit, done=done, due=due)


def fail(error):
    """Reports an error and ends the process, whatever its other threads do."""
    say(error=f"{type(error).__name__}: {error}")
    os._exit(1)


def rounds(work):
    """Does the work in each round, until the harness has no more to say."""
    for line in sys.stdin:
        if line.strip() != "round":
            say(error=f"expected round, got {line.strip()!r}")
            sys.exit(2)
        try:
            work()
        except Exception as error:
            fail(error)
        say(end=True)
