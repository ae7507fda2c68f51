"""A program that knows nothing of virtual threads: `python3 FOLDER WORKLOAD [key=value]...`"""

import platform
import sys

import workloads
from protocol import params, rounds, say

say(peer="run-python", version=f"Python {platform.python_version()}")
given = params(sys.argv[2:])
match sys.argv[1]:
    case "run-sleepers":
        rounds(lambda: workloads.sleepers(given["threads"], given["ms"]))
    case "run-queue":
        rounds(lambda: workloads.ping_pong(given["trips"]))
    case name:
        say(error=f"no workload {name}")
        sys.exit(2)
