#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown files that stand between
    <!-- memtunectl reference TABLE -->  and  <!-- end of reference -->
are what that command prints. With --write, puts them there."""

import os
import re
import subprocess
import sys

from tree import Tree

ROOT = os.environ.get("MEMTUNED_SOURCE_DIR") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("MEMTUNED_BUILD_DIR") or os.path.join(ROOT, "build")
IN_README = {"tunables", "metrics", "commands"}

_block = re.compile(
    r"(<!-- memtunectl reference ([a-z-]+) -->\n)(.*?)"
    r"(<!-- end of reference -->)", re.DOTALL)


def generated(table):
    return "\n" + subprocess.run(
        [os.path.join(BUILD, "bin", "memtunectl"), "reference", table],
        capture_output=True, check=True, text=True).stdout.strip() + "\n\n"


def markdown_files():
    return [path for path in Tree(ROOT).paths if path.endswith(".md")]


def main():
    write = "--write" in sys.argv[1:]
    problems = []
    in_readme = set()
    for short in markdown_files():
        path = os.path.join(ROOT, short)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if short == "README.md":
            in_readme = {match[1] for match in _block.findall(text)}
        fresh = _block.sub(
            lambda match: match[1] + generated(match[2]) + match[4], text)
        if fresh == text:
            continue
        if write:
            with open(path, "w", encoding="utf-8") as file:
                file.write(fresh)
        else:
            problems.append(f"{short}: a table is out of date; run "
                            "tests/rules/readme_test.py --write")
    if missing := IN_README - in_readme:
        problems.append(f"README.md: no table {sorted(missing)} between its "
                        "marks")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
