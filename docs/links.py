#!/usr/bin/env python3
"""A preprocessor of mdBook: links that lead out of `docs` lead to the repository, and links to a
README.md to the page that mdBook makes of it, index.html.

mdBook calls it with `supports RENDERER`, and then with the book as JSON on standard input.
"""

import json
import os
import re
import sys

LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)#:\s]+)(#[^)\s]*)?", re.MULTILINE)


def outwards(chapter, repository):
    folder = os.path.dirname(chapter["path"] or "")

    def replaced(link):
        target = os.path.normpath(os.path.join(folder, link[2]))
        if target.startswith("../"):
            return f"{link[1]}{repository}/blob/main/{target[3:]}{link[3] or ''}"
        return re.sub(r"\bREADME\.md", "index.md", link[0])

    chapter["content"] = LINK.sub(replaced, chapter["content"])
    for item in chapter["sub_items"]:
        if "Chapter" in item:
            outwards(item["Chapter"], repository)


if sys.argv[1:2] == ["supports"]:
    sys.exit(0)
context, book = json.load(sys.stdin)
repository = context["config"]["output"]["html"]["git-repository-url"]
for item in book.get("items") or book["sections"]:
    if "Chapter" in item:
        outwards(item["Chapter"], repository)
json.dump(book, sys.stdout)
