# SPDX-License-Identifier: Apache-2.0
"""Rules of single files: licence line, size, columns, to-dos, words. Each
check returns a list of "path:line: what is wrong"."""

import codecs
import os
import re

MAX_LINES = 500
MAX_COLUMNS = 80
LICENCE = "SPDX-License-Identifier: Apache-2.0"

# Captured and generated inputs are kept as they came.
KEPT_AS_THEY_ARE = ("tests/data/", "tests/fuzz/corpus/", "LICENSE")

# Spelled in rot13, so that this file passes its own check: the tools and
# places of work that have no business in the product.
WORDS = [codecs.decode(word, "rot13") for word in (
    r"nffvfgnagf?", r"nv[- ]trarengrq", r"punggcg", r"pynhqr", r"bcranv",
    r"naguebcvp", r"pbcvybg", r"ynathntr zbqry", r"ynetr ynathntr",
    r"(guvf|cerivbhf|arkg|rneyvre|ynfg|nabgure|zl) frffvba")]
PLACES = [codecs.decode(place, "rot13") for place in (
    r"/jbex/", r"/ubzr/[n-m]+/", r"/ebbg/")]

_words = re.compile(r"\b(" + "|".join(WORDS) + r")\b", re.IGNORECASE)
_places = re.compile("|".join(PLACES))
_todo = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b(?!\(#\d+\))")


def ours(tree):
    return [path for path in tree.paths
            if not path.startswith(KEPT_AS_THEY_ARE)]


def _is_source(path):
    name = os.path.basename(path)
    return path.endswith(
        (".h", ".cc", ".c", ".proto", ".sh", ".py", ".cmake")) \
        or name == "CMakeLists.txt"


def licence(tree):
    """Each source, script and CMake file says its licence at its top."""
    sources = {path for path in ours(tree) if _is_source(path)}
    sources |= set(tree.scripts()) & set(ours(tree))
    return [f"{path}:1: no line \"{LICENCE}\" among the first three"
            for path in sorted(sources)
            if not any(LICENCE in line for line in tree.lines(path)[:3])]


def length(tree):
    """Files that people read stay short."""
    problems = []
    for path in ours(tree):
        if not _is_source(path):
            continue
        lines = len(tree.lines(path))
        if lines > MAX_LINES:
            problems.append(f"{path}:{lines}: longer than {MAX_LINES} lines")
    return problems


def columns(tree):
    """80 columns; a line that is one unbreakable word (a URL) may be
    longer, CMake files are free."""
    problems = []
    for path in ours(tree):
        if not path.endswith((".h", ".cc", ".c", ".proto", ".sh", ".py")):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            text = line.strip().lstrip("/#").strip()
            if len(line) > MAX_COLUMNS and " " in text:
                problems.append(
                    f"{path}:{number}: {len(line)} columns, allowed "
                    f"{MAX_COLUMNS}")
    return problems


def _grep(tree, pattern, what):
    problems = []
    for path in ours(tree):
        try:
            lines = tree.lines(path)
        except UnicodeDecodeError:
            continue  # not text
        for number, line in enumerate(lines, 1):
            if match := pattern.search(line):
                problems.append(f"{path}:{number}: {what}: {match.group(0)}")
    return problems


def todos(tree):
    """Every to-do names its issue."""
    return _grep(tree, _todo, "to-do without (#issue)")


def words(tree):
    return _grep(tree, _words, "word that does not belong here")


def places(tree):
    return _grep(tree, _places, "path of one machine")


CHECKS = (licence, length, columns, todos, words, places)
