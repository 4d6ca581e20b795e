#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every rule on the tree, and each rule on a small bad tree that it has
to find fault with."""

import os
import sys
import tempfile
import unittest

import includes
import sources
from tree import Tree

ROOT = os.environ.get("MEMTUNED_SOURCE_DIR") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
SPDX = "// " + sources.LICENCE + "\n"


def problems_of(check, files):
    """What the check says of a tree with these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)),
                        exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return check(Tree(root))


def paths_of(files):
    """What a tree with these files, without git, takes for its own."""
    return problems_of(lambda tree: tree.paths, files)


class TreeTest(unittest.TestCase):
    """The real tree keeps every rule."""

    def test_is_not_empty(self):
        self.assertIn("CMakeLists.txt", Tree(ROOT).paths)
        self.assertGreater(len(Tree(ROOT).code()), 20)

    def test_keeps_every_rule(self):
        tree = Tree(ROOT)
        for check in sources.CHECKS + includes.CHECKS:
            with self.subTest(check.__name__):
                problems = check(tree)
                self.assertFalse(problems, "\n" + "\n".join(problems))

    def test_without_git_leaves_out_what_gitignore_names(self):
        kept = [".gitignore", "build.log", "core/a.cc", "core/build/a.cc",
                "deploy/out"]
        left_out = ["build/a.cc", "build-tsan/logs/a.log", "core/a.pyc",
                    "out/a", "core/__pycache__/a"]
        files = {path: "" for path in kept + left_out}
        files[".gitignore"] = "/build*/\n\n# x\n*.pyc\n/out\n__pycache__/\n"

        self.assertEqual(paths_of(files), kept)

    def test_without_git_refuses_a_gitignore_it_cannot_read(self):
        for pattern in ("!core", "a/**/b"):
            with self.assertRaises(ValueError):
                paths_of({".gitignore": pattern})


class SourcesTest(unittest.TestCase):
    def test_finds_a_missing_licence(self):
        bad = {"core/a.cc": "int x;\n", "deploy/run": "#!/bin/sh\ntrue\n",
               "core/b.cc": SPDX}
        self.assertEqual(len(problems_of(sources.licence, bad)), 2)

    def test_finds_a_long_file(self):
        bad = {"core/a.cc": "int x;\n" * 501, "core/b.cc": "int x;\n" * 500}
        self.assertEqual(problems_of(sources.length, bad),
                         ["core/a.cc:501: longer than 500 lines"])

    def test_finds_a_wide_line_but_lets_addresses_be(self):
        wide = "// " + "word " * 20 + "\n"
        address = "// https://example.org/" + "x" * 90 + "\n"
        self.assertEqual(len(problems_of(
            sources.columns, {"core/a.cc": wide, "core/b.cc": address})), 1)

    def test_finds_a_todo_without_issue(self):
        todo = "TO" + "DO"
        bad = {"core/a.cc": f"// {todo}: later\n",
               "core/b.cc": f"// {todo}(#12): later\n"}
        self.assertEqual(len(problems_of(sources.todos, bad)), 1)

    def test_finds_words_and_places(self):
        word = sources.WORDS[2]
        place = sources.PLACES[0] + "x"
        self.assertEqual(
            len(problems_of(sources.words, {"a.md": f"by {word}\n"})), 1)
        self.assertEqual(
            len(problems_of(sources.places, {"a.md": f"in {place}\n"})), 1)

    def test_leaves_captured_data_alone(self):
        kept = {"tests/data/a.sh": "x" * 100 + " " + sources.PLACES[0]}
        for check in sources.CHECKS:
            if check is not sources.licence:
                self.assertEqual(problems_of(check, kept), [])


class IncludesTest(unittest.TestCase):
    def expect(self, check, count, files):
        problems = problems_of(check, files)
        self.assertEqual(len(problems), count, problems)

    def test_finds_includes_that_point_up(self):
        for path, target in (
                ("core/base/a.h", "core/mm/b.h"),
                ("core/base/a.h", "core/b.h"),
                ("core/mm/a.h", "core/allocator.h"),
                ("core/a.cc", "daemon/subject.h"),
                ("daemon/subject.h", "daemon/pool/pool.h"),
                ("daemon/pool/a.cc", "daemon/change/journal.h"),
                ("daemon/change/a.cc", "daemon/rpc/b.h"),
                ("daemon/rpc/a.cc", "daemon/daemon.h"),
                ("daemon/metrics/a.cc", "daemon/config.h"),
                ("daemon/log.cc", "daemon/sampler.h"),
                ("daemon/sampler.cc", "daemon/rpc/b.h"),
                ("client/attach/a.cc", "daemon/subject.h"),
                ("client/attach/a.cc", "memtuned/v1/stats.pb.h"),
                ("client/load/a.cc", "client/ctl/b.h"),
                ("client/ctl/a.cc", "core/allocator.h"),
                ("client/ctl/a.cc", "client/attach/b.h"),
                ("core/a.cc", "tests/support/b.h")):
            with self.subTest(path=path, target=target):
                self.expect(includes.floors, 1,
                            {path: f'#include "{target}"\n'})

    def test_lets_includes_point_down_and_sideways(self):
        for path, target in (
                ("core/mm/a.h", "core/base/b.h"),
                ("core/a.cc", "core/mm/b.h"),
                ("core/a.cc", "core/b.h"),
                ("daemon/pool/a.cc", "core/allocator.h"),
                ("daemon/pool/a.cc", "daemon/host/b.h"),
                ("daemon/metrics/a.cc", "daemon/rpc/rpc_observer.h"),
                ("daemon/daemon.cc", "daemon/rpc/b.h"),
                ("client/ctl/a.cc", "memtuned/v1/stats.grpc.pb.h"),
                ("client/load/a.cc", "client/attach/pool.h")):
            with self.subTest(path=path, target=target):
                self.expect(includes.floors, 0,
                            {path: f'#include "{target}"\n'})

    def test_finds_a_folder_without_a_floor(self):
        self.expect(includes.floors, 1, {"client/other/a.h": "int x;\n"})

    def test_finds_a_ring_once(self):
        self.expect(includes.rings, 1, {
            "core/a.h": '#include "core/b.h"\n',
            "core/b.h": '#include "core/c.h"\n',
            "core/c.h": '#include "core/a.h"\n'})
        self.expect(includes.rings, 0, {
            "core/a.h": '#include "core/b.h"\n#include "core/c.h"\n',
            "core/b.h": '#include "core/c.h"\n', "core/c.h": ""})

    def test_finds_libraries_out_of_their_folder(self):
        for path, target in (("daemon/host/a.cc", "hwloc.h"),
                             ("daemon/rpc/a.cc", "prometheus/exposer.h"),
                             ("daemon/metrics/a.cc", "grpcpp/grpcpp.h"),
                             ("client/load/a.cc", "grpcpp/grpcpp.h"),
                             ("client/ctl/a.cc", "memtuned/pool.h"),
                             ("daemon/pool/a.cc", "memtuned/memtuned.h"),
                             ("client/ctl/a.cc", "spdlog/spdlog.h")):
            with self.subTest(path=path, target=target):
                self.expect(includes.libraries, 1,
                            {path: f"#include <{target}>\n"})

    def test_finds_a_core_that_is_not_alone(self):
        self.expect(includes.core_alone, 1, {
            "core/a.cc": "#include <google/protobuf/message.h>\n"
                         "#include <sys/mman.h>\n#include <vector>\n"})

    def test_finds_a_source_whose_own_header_is_not_first(self):
        for text, count in (('#include "core/a.h"\n#include <string>\n', 0),
                            ('#include <string>\n#include "core/a.h"\n', 1),
                            ('#include "core/b.h"\n', 1), ("", 1)):
            self.expect(includes.own_header_first, count, {
                "core/a.cc": text, "core/a.h": "", "core/main.cc": ""})

    def test_finds_a_header_without_its_guard(self):
        for guard, count in (("MEMTUNED_CORE_MM_A_H_", 0),
                             ("MEMTUNED_CORE_A_H_", 1)):
            text = f"// x\n#ifndef {guard}\n#define {guard}\n#endif\n"
            self.expect(includes.guards, count, {"core/mm/a.h": text})
        self.expect(includes.guards, 1, {"core/a.h": "#include <string>\n"})

    def test_finds_cli11_in_two_files(self):
        cli = "#include <CLI/CLI.hpp>\n"
        self.expect(includes.one_translation_unit, 2,
                    {"client/ctl/a.cc": cli, "client/ctl/b.cc": cli})
        self.expect(includes.one_translation_unit, 0,
                    {"client/ctl/a.cc": cli, "client/load/b.cc": cli})


if __name__ == "__main__":
    sys.exit(unittest.main())
