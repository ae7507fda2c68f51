"""Checks a dump in JSON: check.py SCHEMA DUMP [FURTHER DUMPS].

Each must be valid by the schema, and the members of each object must come in the order that the
JDK writes them in (for its formats), which no schema can say.
"""

import json
import sys

import jsonschema

ORDER = [
    "threadDump formatVersion processId time runtimeVersion threadContainers",
    "container parent owner threads threadCount",
    "tid time virtual name state parkBlocker blockedOn waitingOn stack monitorsOwned carrier",
    "object owner",
    "depth locks",
]


def check_order(value, where):
    if isinstance(value, list):
        for index, item in enumerate(value):
            check_order(item, f"{where}[{index}]")
    if isinstance(value, dict):
        members = list(value)
        known = [order.split() for order in ORDER if members[0] in order.split()[:3]]
        orders = [order for order in known if set(members) <= set(order)]
        if not any(members == [name for name in order if name in members] for order in orders):
            sys.exit(f"{where} has members in another order than the JDK's: {members}")
        for name, item in value.items():
            check_order(item, f"{where}.{name}")


schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for file in sys.argv[2:]:
    dump = json.load(open(file, encoding="utf-8"))
    for error in validator.iter_errors(dump):
        sys.exit(f"{file}: {error.json_path}: {error.message}")
    if "threadDump" in dump:
        check_order(dump, "$")
print("valid")
