#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sets a pool's batch factor and drains its pagesets, as an automation should:
with an etag, so that nobody's change is overwritten unseen; with a request id,
so that a call may be repeated; with a deadline and a reason.

    automation.py [--target unix:PATH | --target HOST:PORT --tls-ca FILE
        --tls-certificate FILE --tls-key FILE] SUBJECT FACTOR REASON

Needs python3-grpcio and the messages, generated once by
    protoc -I proto --python_out=DIR --grpc_python_out=DIR \\
        --plugin=protoc-gen-grpc_python=$(command -v grpc_python_plugin) \\
        proto/memtuned/v1/*.proto
with DIR in PYTHONPATH."""

import argparse
import sys
import time
import uuid

import grpc
from memtuned.v1 import stats_pb2, stats_pb2_grpc, tuning_pb2, tuning_pb2_grpc

DEADLINE_SECONDS = 10
ATTEMPTS = 5
FACTOR = "pageset.batch_factor"
# Nothing is known of such a call: it is repeated with the same request id.
UNCERTAIN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def connect(options):
    if options.target.startswith("unix:"):
        return grpc.insecure_channel(options.target)
    return grpc.secure_channel(options.target, grpc.ssl_channel_credentials(
        read(options.tls_ca), read(options.tls_key),
        read(options.tls_certificate)))


def zones(stats, subject):
    """Every zone of the subject, page by page."""
    token = ""
    while True:
        reply = stats.ListZones(
            stats_pb2.ListZonesRequest(parent=subject, page_token=token),
            timeout=DEADLINE_SECONDS)
        yield from reply.zones
        token = reply.next_page_token
        if not token:
            return


def print_zones(stats, subject):
    for zone in zones(stats, subject):
        lock = zone.zone_lock
        waited = lock.contended / lock.acquisitions if lock.acquisitions else 0
        print(f"{zone.name}: batch {zone.pagesets.batch}, pageset high "
              f"{zone.pagesets.high.max}, {zone.pagesets.pages_sum} pages in "
              f"pagesets, {waited:.1%} of zone lock acquisitions waited")


def repeat(call, request):
    """The reply. Repeats a call of which nothing is known; the request id
    makes the repetitions harmless."""
    for attempt in range(ATTEMPTS):
        try:
            return call(request, timeout=DEADLINE_SECONDS)
        except grpc.RpcError as error:
            if error.code() not in UNCERTAIN or attempt + 1 == ATTEMPTS:
                raise
            time.sleep(0.1 * 2 ** attempt)


def set_factor(tuning, subject, factor, reason):
    """The Change, or None when the factor was that already."""
    for attempt in range(ATTEMPTS):
        tunables = tuning.ListTunables(
            tuning_pb2.ListTunablesRequest(parent=subject),
            timeout=DEADLINE_SECONDS)
        [present] = [tunable for tunable in tunables.tunables
                     if tunable.name == f"{subject}/tunables/{FACTOR}"]
        if present.value.real == factor:
            return None
        request = tuning_pb2.SetTunablesRequest(
            parent=subject, reason=reason, etag=tunables.etag,
            request_id=str(uuid.uuid4()), assignments=[tuning_pb2.Assignment(
                tunable=FACTOR, value=tuning_pb2.Value(real=factor))])
        try:
            return repeat(tuning.SetTunables, request).change
        except grpc.RpcError as error:
            # Somebody changed the subject since it was read: look again.
            if error.code() != grpc.StatusCode.ABORTED or \
                    attempt + 1 == ATTEMPTS:
                raise


def drain(tuning, subject, reason):
    """Pages that left the pagesets."""
    reply = repeat(tuning.Drain, tuning_pb2.DrainRequest(
        parent=subject, reason=reason, request_id=str(uuid.uuid4())))
    return sum(zone.pages_before - zone.pages_after
               for zone in reply.result.zones)


def main():
    parser = argparse.ArgumentParser(
        description="Sets a pool's batch factor and drains its pagesets.")
    parser.add_argument("--target", default="unix:/run/memtuned/memtuned.sock")
    parser.add_argument("--tls-ca")
    parser.add_argument("--tls-certificate")
    parser.add_argument("--tls-key")
    parser.add_argument("subject", help="as pools/default")
    parser.add_argument("factor", type=float)
    parser.add_argument("reason")
    options = parser.parse_args()
    with connect(options) as channel:
        stats = stats_pb2_grpc.StatsServiceStub(channel)
        tuning = tuning_pb2_grpc.TuningServiceStub(channel)
        try:
            print_zones(stats, options.subject)
            change = set_factor(tuning, options.subject, options.factor,
                                options.reason)
            if change is None:
                print(f"{FACTOR} was {options.factor:g} already")
            else:
                print(f"generation {change.generation}: {FACTOR} "
                      f"{change.values[0].before.real:g} -> "
                      f"{change.values[0].after.real:g}")
            pages = drain(tuning, options.subject, options.reason)
            print(f"{pages} pages left pagesets")
            print_zones(stats, options.subject)
        except grpc.RpcError as error:
            sys.exit(f"{error.code().name}: {error.details()}")


if __name__ == "__main__":
    main()
