# SPDX-License-Identifier: Apache-2.0
"""The part of Kubernetes' schemas (v1, apps/v1, networking.k8s.io/v1) that
deploy/kubernetes uses: every field is known and of its type, and what is
required is there. An API server refuses the rest; strict clients too."""

import re

# A schema is a type, a pattern (text), a list of one schema, a dict of fields
# ("name!" is required), or Map of a schema for free keys.


class Map:
    def __init__(self, values):
        self.values = values


class Either:
    def __init__(self, *kinds):
        self.kinds = kinds


NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
QUANTITY = r"[0-9]+(m|[KMGT]i)?"
PERCENT = r"[0-9]+%"
TEXTS = Map(str)
RESOURCES = {"requests": Map(QUANTITY), "limits": Map(QUANTITY)}
META = {"name!": NAME, "namespace": NAME, "labels": TEXTS,
        "annotations": TEXTS}
SELECTOR = {"matchLabels": TEXTS}
SECCOMP = {"type!": "RuntimeDefault|Unconfined|Localhost"}
CONTAINER_SECURITY = {
    "runAsNonRoot": bool, "runAsUser": int, "runAsGroup": int,
    "allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool,
    "privileged": bool, "seccompProfile": SECCOMP,
    "capabilities": {"drop": ["[A-Z_]+"], "add": ["[A-Z_]+"]}}
PROBE = {"exec!": {"command!": [str]}, "initialDelaySeconds": int,
         "periodSeconds": int, "timeoutSeconds": int,
         "failureThreshold": int, "successThreshold": int}
CONTAINER = {
    "name!": NAME, "image!": str, "imagePullPolicy": "Always|IfNotPresent",
    "command": [str], "args": [str], "resources": RESOURCES,
    "ports": [{"name": NAME, "containerPort!": int,
               "protocol": "TCP|UDP|SCTP"}],
    "securityContext": CONTAINER_SECURITY, "startupProbe": PROBE,
    "livenessProbe": PROBE, "readinessProbe": PROBE,
    "volumeMounts": [{"name!": NAME, "mountPath!": str, "subPath": str,
                      "readOnly": bool}]}
VOLUME = {
    "name!": NAME, "emptyDir": {"sizeLimit": QUANTITY, "medium": str},
    "hostPath": {"path!": str, "type": "Directory|DirectoryOrCreate|File"},
    "configMap": {"name!": NAME, "defaultMode": int},
    "secret": {"secretName!": NAME, "defaultMode": int, "optional": bool}}
POD = {
    "containers!": [CONTAINER], "initContainers": [CONTAINER],
    "volumes": [VOLUME], "hostPID": bool, "hostNetwork": bool,
    "automountServiceAccountToken": bool, "serviceAccountName": NAME,
    "terminationGracePeriodSeconds": int, "priorityClassName": NAME,
    "nodeSelector": TEXTS,
    "tolerations": [{"operator": "Exists|Equal", "key": str, "value": str,
                     "effect": str}],
    "securityContext": {
        "runAsNonRoot": bool, "runAsUser": int, "runAsGroup": int,
        "fsGroup": int, "supplementalGroups": [int],
        "seccompProfile": SECCOMP}}
KINDS = {
    ("v1", "ConfigMap"): {
        "apiVersion!": str, "kind!": str, "metadata!": META, "data": TEXTS},
    ("apps/v1", "DaemonSet"): {
        "apiVersion!": str, "kind!": str, "metadata!": META, "spec!": {
            "selector!": SELECTOR,
            "updateStrategy": {
                "type": "RollingUpdate|OnDelete",
                "rollingUpdate": {"maxUnavailable": Either(int, PERCENT)}},
            "template!": {
                "metadata!": {"labels!": TEXTS, "annotations": TEXTS},
                "spec!": POD}}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {
        "apiVersion!": str, "kind!": str, "metadata!": META, "spec!": {
            "podSelector!": SELECTOR, "policyTypes": ["Ingress|Egress"],
            "ingress": [{
                "from": [{"namespaceSelector": SELECTOR,
                          "podSelector": SELECTOR}],
                "ports": [{"port": Either(int, NAME),
                           "protocol": "TCP|UDP|SCTP"}]}]}},
}


def _is(value, kind):
    """One type or pattern. In Python a bool is an int; here it is not."""
    if isinstance(kind, str):
        return isinstance(value, str) and re.fullmatch(kind, value) is not None
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _fields(value, schema, where):
    if not isinstance(value, dict):
        return [f"{where}: is not an object"]
    known = {key.rstrip("!"): kind for key, kind in schema.items()}
    found = [f"{where}: lacks {key[:-1]}" for key in schema
             if key.endswith("!") and key[:-1] not in value]
    for key, inner in value.items():
        if key not in known:
            found.append(f"{where}: there is no field {key}")
        else:
            found += check(inner, known[key], f"{where}.{key}")
    return found


def check(value, schema, where):
    """Complaints about a value."""
    if isinstance(schema, dict):
        return _fields(value, schema, where)
    if isinstance(schema, Map):
        if not isinstance(value, dict):
            return [f"{where}: is not an object"]
        return [complaint for key, inner in value.items()
                for complaint in check(inner, schema.values,
                                       f"{where}[{key}]")]
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [f"{where}: is not a list"]
        return [complaint for number, inner in enumerate(value)
                for complaint in check(inner, schema[0],
                                       f"{where}[{number}]")]
    kinds = schema.kinds if isinstance(schema, Either) else (schema,)
    if any(_is(value, kind) for kind in kinds):
        return []
    return [f"{where}: {value!r} is not allowed"]


def check_document(document):
    kind = (document.get("apiVersion"), document.get("kind"))
    if kind not in KINDS:
        return [f"no such kind: {kind}"]
    return check(document, KINDS[kind], kind[1])
