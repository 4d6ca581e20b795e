#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The container recipe and the Kubernetes manifest, as far as they can be
judged without a container engine and a cluster."""

import copy
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

import kubernetes_schema
from certificates import Authority
from harness import SOURCE, binary, run

RECIPE = os.path.join(SOURCE, "deploy", "container", "Containerfile")
MANIFEST = os.path.join(SOURCE, "deploy", "kubernetes", "memtuned.yaml")
PROGRAMS = ("memtuned", "memtunectl", "memtune-load")
# What every Debian image has: apt needs them.
BASE = {"libc6", "libgcc-s1", "libstdc++6"}
BYTES = {"Mi": 2 ** 20, "Gi": 2 ** 30, "MiB": 2 ** 20, "GiB": 2 ** 30}


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def section(name):
    """Packages of a section of packages.txt."""
    text = read("deploy", "packages.txt").split(f"[{name}]\n")[1]
    lines = text.split("\n[")[0].splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def to_bytes(text):
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()
    return int(number) * BYTES[unit]


def instructions():
    """[(instruction, rest)] of the recipe."""
    text = re.sub(r"^#.*\n", "", read(RECIPE), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [line.split(maxsplit=1) for line in lines if line.strip()]


class RecipeTest(unittest.TestCase):
    def rest(self, name):
        return [rest for word, rest in instructions() if word == name]

    def test_copies_only_what_there_is(self):
        ignored = read(".dockerignore").split()
        for rest in self.rest("COPY"):
            words = rest.split()
            if words[0].startswith("--from="):
                self.assertIn("AS " + words[0].split("=")[1],
                              "\n".join(self.rest("FROM")))
                continue
            for source in words[:-1]:
                self.assertTrue(os.path.exists(os.path.join(SOURCE, source)))
                self.assertFalse([pattern for pattern in ignored
                                  if fnmatch.fnmatch("/" + source, pattern)])

    def test_builds_what_it_installs(self):
        [build] = [rest for rest in self.rest("RUN") if "ninja" in rest]
        built = re.findall(r"bin/([\w-]+)", build.split("&&")[1])
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["cmake", "--install", os.environ["MEMTUNED_BUILD_DIR"],
                 "--component", "service", "--prefix", folder],
                check=True, capture_output=True)
            installed = os.listdir(os.path.join(folder, "bin"))
        self.assertEqual(set(built), set(installed))
        self.assertEqual(set(built), set(PROGRAMS))
        self.assertEqual(json.loads(self.rest("ENTRYPOINT")[0]),
                         ["/usr/bin/memtuned"])

    def test_installs_the_libraries_that_the_programs_load(self):
        paths = set()
        for program in PROGRAMS:
            needed = set(re.findall(
                r"NEEDED.*\[(.*)\]",
                run("readelf", "-d", binary(program)).stdout))
            for name, path in re.findall(
                    r"(\S+) => (/\S+)", run("ldd", binary(program)).stdout):
                if name in needed:
                    paths.add(os.path.realpath(path))
        # Packages know their files by where /lib was before it was a link.
        asked = paths | {path.removeprefix("/usr") for path in paths}
        owners = run("dpkg", "-S", *sorted(asked)).stdout.splitlines()
        self.assertEqual(len(owners), len(paths))
        packages = {line.split(":")[0] for line in owners}
        self.assertEqual(packages - BASE, section("libraries"))

    def test_runs_as_nobody_special(self):
        uid, gid = self.rest("USER")[-1].split(":")
        self.assertGreater(int(uid) * int(gid), 0)
        self.assertIn(f"--gid {gid}", " ".join(self.rest("RUN")))
        self.assertIn(f"--uid {uid}", " ".join(self.rest("RUN")))


class ManifestTest(unittest.TestCase):
    def setUp(self):
        self.documents = list(yaml.safe_load_all(read(MANIFEST)))
        self.config_map, self.daemon_set, self.policy = self.documents
        self.pod = self.daemon_set["spec"]["template"]["spec"]
        [self.container] = self.pod["containers"]
        self.settings = self.config_map["data"]["memtuned.yaml"]

    def test_keeps_the_schemas(self):
        for document in self.documents:
            self.assertEqual(kubernetes_schema.check_document(document), [])

    def test_schemas_find_mistakes(self):
        def spoiled(change):
            document = copy.deepcopy(self.daemon_set)
            change(document["spec"]["template"]["spec"])
            return len(kubernetes_schema.check_document(document))
        for change in (
                lambda pod: pod.update(hostPid=True),
                lambda pod: pod.update(hostPID="true"),
                lambda pod: pod["containers"][0].pop("image"),
                lambda pod: pod["containers"][0].update(args="--config"),
                lambda pod: pod["containers"][0]["resources"]["limits"]
                .update(memory="1.5GB")):
            self.assertEqual(spoiled(change), 1)

    def test_parts_fit_together(self):
        labels = self.daemon_set["spec"]["template"]["metadata"]["labels"]
        for selector in (self.daemon_set["spec"]["selector"],
                         self.policy["spec"]["podSelector"]):
            self.assertLessEqual(selector["matchLabels"].items(),
                                 labels.items())
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        mounted = {mount["name"] for container in
                   self.pod["containers"] + self.pod["initContainers"]
                   for mount in container["volumeMounts"]}
        self.assertEqual(mounted, set(volumes))
        self.assertEqual(volumes["config"]["configMap"]["name"],
                         self.config_map["metadata"]["name"])
        self.assertEqual({document["metadata"]["namespace"]
                          for document in self.documents}, {"memtuned"})

    def test_ports_are_those_of_the_settings(self):
        settings = yaml.safe_load(self.settings)
        ports = {port["name"]: str(port["containerPort"])
                 for port in self.container["ports"]}
        self.assertEqual(ports, {
            "api": settings["listen-tls"].split(":")[1],
            "metrics": settings["metrics-listen"].split(":")[1]})
        allowed = {port["port"] for rule in self.policy["spec"]["ingress"]
                   for port in rule["ports"]}
        self.assertEqual(allowed, set(ports))
        notes = self.daemon_set["spec"]["template"]["metadata"]["annotations"]
        self.assertEqual(notes["prometheus.io/port"], ports["metrics"])

    def test_the_daemon_accepts_the_settings(self):
        with tempfile.TemporaryDirectory() as folder:
            authority = Authority(folder)
            server = authority.issue("server")
            names = {"tls.crt": server.certificate_path,
                     "tls.key": server.key_path,
                     "ca.crt": authority.certificate_path}
            text = self.settings
            for name, path in names.items():
                mounted = "/etc/memtuned/tls/" + name
                self.assertIn(mounted, text)
                text = text.replace(mounted, path)
            path = os.path.join(folder, "memtuned.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            result = run(binary("memtuned"), "--check", "--config", path)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_daemon_finds_them(self):
        mounts = {mount["mountPath"]: mount["name"]
                  for mount in self.container["volumeMounts"]}
        config = self.container["args"][1]
        self.assertEqual(self.container["args"][0], "--config")
        self.assertEqual(mounts[config], "config")
        self.assertEqual(mounts["/etc/memtuned/tls"], "tls")
        self.assertEqual(mounts["/run/memtuned"], "run")

    def test_its_memory_is_more_than_its_pools(self):
        pools = sum(to_bytes(pool["size"]) for pool in
                    yaml.safe_load(self.settings)["pool"].values())
        limit = self.container["resources"]["limits"]["memory"]
        self.assertGreater(to_bytes(limit), pools + 256 * 2 ** 20)

    def test_it_may_do_little(self):
        [user] = [rest for word, rest in instructions() if word == "USER"]
        context = self.pod["securityContext"]
        self.assertEqual(f"{context['runAsUser']}:{context['runAsGroup']}",
                         user)
        self.assertTrue(context["runAsNonRoot"])
        self.assertTrue(self.pod["hostPID"])  # or nobody could attach
        self.assertFalse(self.pod["automountServiceAccountToken"])
        self.assertEqual(self.container["securityContext"], {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["SYS_NICE"]}})


if __name__ == "__main__":
    sys.exit(unittest.main())
