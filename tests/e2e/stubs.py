# SPDX-License-Identifier: Apache-2.0
"""Python messages and stubs, generated from the product's protos by the stock
tools the first time this is imported."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile

from harness import SOURCE

PROTOS = ("memtuned/v1/topology.proto", "memtuned/v1/tuning.proto",
          "memtuned/v1/stats.proto", "google/rpc/status.proto",
          "google/rpc/error_details.proto", "grpc/health/v1/health.proto")


def _generate():
    folder = tempfile.mkdtemp(prefix="memtuned-stubs.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = os.path.join(SOURCE, "proto")
    subprocess.run(
        ["protoc", "-I", root, "--python_out", folder,
         "--grpc_python_out", folder, "--plugin",
         "protoc-gen-grpc_python=" + shutil.which("grpc_python_plugin"),
         *PROTOS], check=True)
    return folder


FOLDER = _generate()
sys.path.insert(0, FOLDER)
# google/ and grpc/ are also installed packages: let them continue here.
import google  # noqa: E402
import grpc  # noqa: E402
google.__path__.append(os.path.join(FOLDER, "google"))
grpc.__path__.append(os.path.join(FOLDER, "grpc"))

from google.protobuf import duration_pb2  # noqa: E402,F401
from google.rpc import error_details_pb2, status_pb2  # noqa: E402,F401
from grpc.health.v1 import health_pb2, health_pb2_grpc  # noqa: E402,F401
from memtuned.v1 import (  # noqa: E402,F401
    stats_pb2, stats_pb2_grpc, topology_pb2, topology_pb2_grpc, tuning_pb2,
    tuning_pb2_grpc)


class Client:
    """Channel and stubs to one daemon; calls take `timeout`."""

    def __init__(self, daemon):
        self.channel = grpc.insecure_channel("unix:" + daemon.socket)
        self.topology = topology_pb2_grpc.TopologyServiceStub(self.channel)
        self.stats = stats_pb2_grpc.StatsServiceStub(self.channel)
        self.tuning = tuning_pb2_grpc.TuningServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()


def details_of(error):
    """The messages packed in a failed call's google.rpc.Status."""
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            return status_pb2.Status.FromString(value).details
    return []


def detail(error, kind):
    """The first detail of a kind, unpacked, or None."""
    for packed in details_of(error):
        message = kind()
        if packed.Unpack(message):
            return message
    return None
