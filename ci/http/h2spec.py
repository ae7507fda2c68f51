"""What h2spec finds: h2spec.py NAME REPORT. Cases that fail need a reason here, and no others have one.

h2spec's cases come from RFC 7540 and RFC 7541.
"""

import sys
import xml.etree.ElementTree as tree

REASONS = {
    "h2spec-plain": {
        "http2/3.5: Sends invalid connection preface": "it is no HTTP/1.1 either, and is answered by 400 of that",
    },
    "h2spec-tls": {},
}


def main():
    name, report = sys.argv[1:]
    reasons = REASONS[name]
    failed, total = {}, 0
    for case in tree.parse(report).getroot().iter("testcase"):
        total += 1
        key = case.get("package") + ": " + case.get("classname")
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        if problem is not None:
            failed[key] = " ".join((problem.text or "").split())
    for key, text in failed.items():
        if key not in reasons:
            print(f"FAILED: {name}: {key}: {text[:300]}")
    for key in reasons:
        if key not in failed:
            print(f"FAILED: {name}: {key}: it passes, and needs no reason any more")
    print(f"{name}: {total} cases, {len(failed)} failed")
    sys.exit(set(failed) != set(reasons) or total < 140)


main()
