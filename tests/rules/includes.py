# SPDX-License-Identifier: Apache-2.0
"""Rules of #include lines: floors, rings, and one library in one folder."""

import posixpath
import re

# Folder (or single file) -> what it may include, by prefix. A folder may
# always include itself. Includes point down or sideways, never up. The
# longest matching key is a file's own.
CORE = ("core/",)
USERS = ("daemon/user_list.h", "daemon/unix_peer.h")
SUBJECT = ("daemon/subject.h", "daemon/log.h") + USERS
FLOOR_2A = ("daemon/log.h",) + CORE
FLOOR_2B = SUBJECT + ("daemon/pool/", "daemon/host/",
                      "daemon/keeper/") + CORE
FLOOR_3 = ("daemon/change/", "daemon/access/", "daemon/tls/",
           "daemon/sampler.h") + FLOOR_2B
FLOOR_4 = ("daemon/rpc/", "daemon/metrics/") + FLOOR_3
PROTO = ("memtuned/v1/",)

MAY_INCLUDE = {
    "core/base/": (),
    "core/mm/": ("core/base/",),
    "core/": ("core/mm/", "core/base/"),
    "daemon/unix_peer.": (),
    "daemon/user_list.": ("daemon/unix_peer.h",),
    "daemon/subject.h": USERS + CORE,
    "daemon/log.": CORE,
    "daemon/sampler.": SUBJECT + CORE,
    "daemon/keeper/": FLOOR_2A,
    "daemon/pool/": FLOOR_2B,
    "daemon/host/": FLOOR_2B,
    "daemon/whatif/": FLOOR_2B,
    "daemon/change/": FLOOR_3,
    "daemon/tls/": ("daemon/log.h",) + CORE,
    "daemon/access/": ("daemon/log.h", "daemon/unix_peer.h") + CORE,
    "daemon/metrics/": FLOOR_4,
    "daemon/rpc/": FLOOR_4 + PROTO,
    "daemon/": ("daemon/",) + CORE + PROTO,
    "client/attach/": CORE,
    "client/load/": ("client/attach/",) + CORE,
    "client/examples/": (),
    # Tables of names and help, and plain values, are all it takes of the core.
    "client/ctl/": PROTO + ("core/base/mutex.h", "core/tunables.h",
                            "core/stats.h",
                            "core/base/topology.h"),
}

# Library -> the only places that may include it.
LIBRARIES = {
    r"hwloc(\.h|/)": ("daemon/host/topology_probe.cc",),
    r"systemd/": ("daemon/service_manager.cc",
                  "daemon/keeper/service_shelf.cc"),
    r"prometheus/": ("daemon/metrics/", "daemon/daemon.cc"),
    r"(grpcpp|grpc)/|.*\.grpc\.pb\.h": (
        "daemon/rpc/", "daemon/daemon.cc", "daemon/daemon.h", "client/ctl/"),
    r"memtuned/v1/|google/(protobuf|rpc)/": (
        "daemon/rpc/", "daemon/daemon.cc", "client/ctl/", "proto/"),
    r"memtuned/(?!v1/)": ("client/attach/", "client/load/",
                          "client/examples/"),
    r"yaml-cpp/": ("daemon/", "client/ctl/"),
    r"openssl/": ("daemon/tls/certificate_check.cc",),
    r"spdlog/": ("daemon/",),
    r"nlohmann/": ("daemon/", "client/ctl/", "client/load/"),
}

# Costs many seconds to compile: one translation unit a binary.
ONE_FILE_A_FOLDER = r"CLI/"

_include = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
_roots = ("core/", "daemon/", "client/", "proto/", "tests/")


def includes_of(tree, path):
    """(line number, target) of each include."""
    found = []
    for number, line in enumerate(tree.lines(path), 1):
        if match := _include.match(line):
            found.append((number, match.group(2)))
    return found


def product_code(tree):
    return [path for path in tree.code()
            if path.startswith(("core/", "daemon/", "client/"))]


def floor_of(path):
    keys = [key for key in MAY_INCLUDE if path.startswith(key)]
    return max(keys, key=len) if keys else None


def floors(tree):
    """No include points up, and every folder has its floor."""
    problems = []
    for path in product_code(tree):
        key = floor_of(path)
        if key is None:
            problems.append(f"{path}:1: folder has no floor in includes.py")
            continue
        allowed = (key,) + MAY_INCLUDE[key]
        for number, target in includes_of(tree, path):
            inside = target.startswith(_roots + PROTO)
            if inside and not _allowed(target, key, allowed):
                problems.append(
                    f"{path}:{number}: {key} must not include {target}")
    return problems


def _allowed(target, own_key, allowed):
    # A file of core/base/ also starts with core/: what counts is its own
    # floor, unless a whole tree is allowed.
    if floor_of(target) == own_key:
        return True
    return any(target.startswith(prefix) for prefix in allowed
               if prefix != own_key or own_key == "daemon/")


def rings(tree):
    """No file includes itself through others."""
    known = set(tree.code())
    graph = {path: [target for _, target in includes_of(tree, path)
                    if target in known]
             for path in tree.code()}
    problems = []
    done = set()
    for start in graph:
        _walk(graph, start, [], done, problems)
    return problems


def _walk(graph, path, trail, done, problems):
    if path in trail:
        ring = trail[trail.index(path):] + [path]
        problems.append(f"{path}:1: ring of includes: {' -> '.join(ring)}")
        return
    if path in done:
        return
    for target in graph[path]:
        _walk(graph, target, trail + [path], done, problems)
    done.add(path)


def libraries(tree):
    """One library, one folder."""
    problems = []
    for path in product_code(tree):
        for number, target in includes_of(tree, path):
            for library, places in LIBRARIES.items():
                if re.match(library, target) and \
                        not path.startswith(places):
                    problems.append(
                        f"{path}:{number}: {target} belongs in "
                        f"{', '.join(places)} only")
    return problems


def core_alone(tree):
    """The core takes Abseil and the C and C++ libraries, nothing else."""
    problems = []
    for path in tree.code():
        if not path.startswith("core/"):
            continue
        for number, target in includes_of(tree, path):
            if target.startswith(("core/", "absl/", "sys/", "linux/",
                                  "sanitizer/", "netinet/", "arpa/")):
                continue
            if "/" in target:
                problems.append(f"{path}:{number}: the core includes {target}")
    return problems


def one_translation_unit(tree):
    """CLI11 is compiled once per folder."""
    users = {}
    for path in product_code(tree):
        for number, target in includes_of(tree, path):
            if re.match(ONE_FILE_A_FOLDER, target):
                users.setdefault(posixpath.dirname(path), []).append(
                    (path, number))
    return [f"{path}:{number}: {folder}/ includes CLI11 in more than one file"
            for folder, places in users.items() if len(places) > 1
            for path, number in places]


def own_header_first(tree):
    """foo.cc includes foo.h before anything else: so it shows that foo.h
    compiles alone, and tests/rules/CMakeLists.txt need not."""
    known = set(tree.code())
    problems = []
    for path in product_code(tree):
        header = path.removesuffix(".cc") + ".h"
        if not path.endswith(".cc") or header not in known:
            continue
        included = includes_of(tree, path)
        if not included or included[0][1] != header:
            problems.append(f"{path}:1: does not include {header} first")
    return problems


def guards(tree):
    """A header may be included twice: its guard is named after its path, and
    that of one that programs include after their path to it."""
    problems = []
    for path in product_code(tree):
        if not path.endswith(".h"):
            continue
        name = path.removeprefix("client/attach/include/memtuned/")
        guard = "MEMTUNED_" + re.sub("[^A-Z0-9]", "_", name.upper()) + "_"
        directives = [line.split() for line in tree.lines(path)
                      if line.startswith("#")]
        if directives[:2] != [["#ifndef", guard], ["#define", guard]]:
            problems.append(f"{path}:1: no include guard {guard}")
    return problems


CHECKS = (floors, rings, libraries, core_alone, one_translation_unit,
          own_header_first, guards)
