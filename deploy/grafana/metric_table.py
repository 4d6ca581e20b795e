# SPDX-License-Identifier: Apache-2.0
"""Every metric of memtuned with its type and meaning: those of a subject from
`memtunectl reference metrics`, and the daemon's own few."""

import re
import subprocess
from typing import NamedTuple


class Metric(NamedTuple):
    kind: str  # counter, gauge, histogram
    help: str
    per_subject: bool
    per_cpu: bool = False  # only with --metrics-per-cpu


# daemon/metrics has them; a test compares these words with a real scrape.
_OF_THE_DAEMON = {
    "memtuned_rpc_requests_total": (
        "counter", "Finished RPCs by method and status code."),
    "memtuned_rpc_duration_seconds": (
        "histogram", "Time an RPC took in the daemon."),
    "memtuned_watch_fell_behind_total": (
        "counter", "Times a watcher was told that it missed snapshots."),
    "memtuned_build_info": (
        "gauge", "1, labelled with what was built."),
    "memtuned_certificate_expiry_timestamp_seconds": (
        "gauge", "When the first certificate in use of that kind expires."),
    "memtuned_certificate_reload_failures_total": (
        "counter", "Changed certificates that were refused."),
    "memtuned_denied_calls_total": (
        "counter", "Calls refused for who made them: role missing, or "
        "unknown."),
}
_OF_A_SUBJECT = {
    "memtuned_sample_age_seconds": (
        "gauge", "Age of the sample that this scrape shows."),
}
_row = re.compile(r"\| `(memtuned_\w+)` \| (\w+) \| (.*) \|")
_per_cpu = " (only with `--metrics-per-cpu`)"


def read(memtunectl):
    """{name: Metric}; `memtunectl` is the program's path."""
    text = subprocess.run([memtunectl, "reference", "metrics"], check=True,
                          capture_output=True, text=True).stdout
    table = {name: Metric(kind, words.removesuffix(_per_cpu), True,
                          words.endswith(_per_cpu))
             for name, kind, words in _row.findall(text)}
    for name, row in _OF_A_SUBJECT.items():
        table[name] = Metric(*row, per_subject=True)
    for name, row in _OF_THE_DAEMON.items():
        table[name] = Metric(*row, per_subject=False)
    return table


def family_of(name, table):
    """A histogram's samples are its name with an ending; None: unknown."""
    if name in table:
        return name
    family = re.sub("_(bucket|sum|count)$", "", name)
    known = family in table and table[family].kind == "histogram"
    return family if known else None
