#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What clang finds in the product's sources without linking any of them.

analyse.py alone BUILD-DIR OUT-DIR   each source and each header by itself:
                                     warnings are errors, -Wthread-safety, and
                                     an include of ours that is missing shows
analyse.py tidy BUILD-DIR OUT-DIR    clang-tidy, a folder's sources at a time

BUILD-DIR is a configured and built tree: its generated headers, and the
folders that compile_commands.json names, are used. Prints what was found;
the exit code is 1 then.

Both spend their time in the headers of gRPC, Abseil and the standard library
unless these are read once: `alone` precompiles all of them, so one that a
source forgets to include is not seen; `tidy` reads them once a folder.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("core", "client", "daemon")
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wthread-safety",
            "-Wthread-safety-beta")
JOBS = int(os.environ.get("MEMTUNED_JOBS") or os.cpu_count())


def product(*patterns):
    return sorted(path for folder in FOLDERS for pattern in patterns
                  for path in (ROOT / folder).rglob(pattern))


def flags_of(build):
    """Folders of headers, and names of versions, of all targets."""
    commands = json.loads((build / "compile_commands.json").read_text())
    text = " ".join(entry["command"] for entry in commands)
    found = re.findall(
        r"-I(?:\S+)|-isystem \S+|-D\w+_(?:VERSION|REVISION)=\S+", text)
    flags = []
    for flag in dict.fromkeys(found):
        flags += flag.replace('\\"', '"').split()
    return flags


def is_virtual(path):
    return "env_virtual" in path.name


def run(command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, cwd=ROOT)
    return done.returncode, done.stdout


def run_all(commands):
    """Prints what the failing ones say. Returns: whether all succeeded."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(run, commands))
    for code, output in results:
        if code != 0:
            print(output, end="")
    print(f"{len(commands)} runs, {sum(code != 0 for code, _ in results)} "
          "with findings")
    return all(code == 0 for code, _ in results)


def precompile(build, out):
    """All headers of others, in the order of their names."""
    include = re.compile(r"^#include (<[^>]+>)", re.MULTILINE)
    ours = {path.name for path in product("*.h")}
    names = {name for path in product("*.h", "*.cc")
             for name in include.findall(path.read_text())
             if name[1:-1].rsplit("/", 1)[-1] not in ours}
    header = out / "others.h"
    header.write_text("".join(f"#include {name}\n" for name in sorted(names)))
    # Without the flag each user instantiates all templates again, which takes
    # longer than to read the headers.
    code, output = run(["clang++", "-std=c++20", *flags_of(build),
                        "-fpch-instantiate-templates", "-x", "c++-header",
                        header, "-o", out / "others.pch"])
    if code != 0:
        sys.exit(output)
    return out / "others.pch"


def alone(build, out):
    flags = [*flags_of(build), *WARNINGS, "-fsyntax-only"]
    cxx = ["clang++", "-std=c++20", *flags, "-include-pch",
           precompile(build, out)]
    commands = []
    for path in product("*.cc"):
        virtual = ["-DMEMTUNED_VIRTUAL"] if is_virtual(path) else []
        commands.append([*cxx, *virtual, path])
    for path in product("*.c"):
        commands.append(["clang", "-std=c11", *flags, path])
    # Twice: guards are looked at too. One whose own source includes it first
    # was seen alone there (rules_test sees to that).
    units = out / "headers"
    units.mkdir(exist_ok=True)
    for path in product("*.h"):
        twice = f'#include "{path}"\n' * 2
        unit = units / "_".join(path.relative_to(ROOT).parts)
        virtual = ["-DMEMTUNED_VIRTUAL"] if is_virtual(path) else []
        if not path.with_suffix(".cc").exists():
            unit.with_suffix(".cc").write_text(twice)
            commands.append([*cxx, *virtual, unit.with_suffix(".cc")])
        if 'extern "C"' in path.read_text():
            unit.with_suffix(".c").write_text(twice)
            commands.append(["clang", "-std=c11", *flags,
                             unit.with_suffix(".c")])
    return run_all(commands)


def tidy(build, out):
    flags = ["-std=c++20", *flags_of(build)]
    folders = {}
    for path in product("*.cc"):
        folders.setdefault(path.parent, []).append(path)
    commands = []
    for folder, paths in sorted(folders.items(), key=lambda f: -len(f[1])):
        unit = out / ("_".join(folder.relative_to(ROOT).parts) + ".cc")
        unit.write_text("".join(f'#include "{path}"  // NOLINT\n'
                                for path in paths if not is_virtual(path)))
        commands.append(["clang-tidy", f"--config-file={ROOT}/.clang-tidy",
                         "--quiet", unit, "--", *flags])
    return run_all(commands)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("alone", "tidy"):
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[3]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    todo = alone if sys.argv[1] == "alone" else tidy
    sys.exit(0 if todo(pathlib.Path(sys.argv[2]).resolve(), out) else 1)


if __name__ == "__main__":
    main()
