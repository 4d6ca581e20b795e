# SPDX-License-Identifier: Apache-2.0
"""The files of the source tree, as the rules see them: what git tracks or
would track, and without git everything that .gitignore leaves."""

import os
import pathlib
import subprocess

CODE = (".h", ".cc", ".c")


class Tree:
    """A checkout at `root`. Paths are relative to it, with slashes."""

    def __init__(self, root):
        self.root = root
        self.paths = sorted(_list_files(root))

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as file:
            return file.read()

    def lines(self, path):
        return self.read(path).splitlines()

    def code(self):
        """C and C++ sources and headers."""
        return [path for path in self.paths if path.endswith(CODE)]

    def scripts(self):
        """Shell and Python, by name or by first line."""
        return [
            path for path in self.paths
            if path.endswith((".sh", ".py")) or self._has_shebang(path)
        ]

    def _has_shebang(self, path):
        if "." in os.path.basename(path):
            return False
        with open(os.path.join(self.root, path), "rb") as file:
            return file.read(2) == b"#!"


def _list_files(root):
    if os.path.exists(os.path.join(root, ".git")):
        try:
            listed = subprocess.run(
                ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z",
                 "--cached", "--others", "--exclude-standard"],
                capture_output=True, check=True).stdout.decode()
            return [path for path in set(listed.split("\0"))
                    if path and os.path.isfile(os.path.join(root, path))]
        except (OSError, subprocess.CalledProcessError):
            pass  # no git here: walk instead
    return _walk(root)


def _walk(root):
    ignored = _read_gitignore(root)
    paths = []
    for folder, folders, files in os.walk(root):
        def path_of(name, folder=folder):
            path = os.path.relpath(os.path.join(folder, name), root)
            return path.replace(os.sep, "/")

        folders[:] = [name for name in folders
                      if name != ".git" and not ignored(path_of(name), True)]
        paths += [path_of(name) for name in files
                  if not ignored(path_of(name), False)]
    return paths


def _read_gitignore(root):
    """ignored(path, is_folder) after the root's .gitignore, as far as plain
    patterns go: no exceptions (!) and no **."""
    try:
        with open(os.path.join(root, ".gitignore"), encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        lines = []
    patterns = [line for line in lines if line and not line.startswith("#")]
    for pattern in patterns:
        if pattern.startswith("!") or "**" in pattern:
            raise ValueError(f".gitignore: cannot read {pattern}")

    def ignored(path, is_folder):
        return any(_matches(path, pattern) for pattern in patterns
                   if is_folder or not pattern.endswith("/"))
    return ignored


def _matches(path, pattern):
    pattern = pattern.rstrip("/")
    if "/" in pattern:  # counts from the root
        pattern = "/" + pattern.lstrip("/")
    return pathlib.PurePosixPath("/" + path).match(pattern)
