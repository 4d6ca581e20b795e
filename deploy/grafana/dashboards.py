# SPDX-License-Identifier: Apache-2.0
"""What the two dashboards show. Nothing is summed over subject: a pool's pages
are also the host's."""

from panels import Dashboard, Panel

ZONE = "{{instance}} {{subject}} {{node}}/{{zone}}"
SUBJECT = "{{instance}} {{subject}}"
_BY = "sum by (job, instance, subject) "
_RATE = "[$__rate_interval]"


def rate(metric, selector="*"):
    return f"rate({metric}{{{selector}}}{_RATE})"


CONTENDED = (rate("memtuned_zone_lock_contended_total") + " / "
             + rate("memtuned_zone_lock_acquisitions_total"))
PAGES_PER_REFILL = (rate("memtuned_pageset_refilled_pages_total") + " / "
                    + rate("memtuned_pageset_refills_total"))
HOLDS_PER_BLOCK = (
    _BY + "(" + rate("memtuned_zone_lock_acquisitions_total") + ") / "
    + _BY + "(" + rate("memtuned_allocations_total") + ")")
PARKED = (_BY + "(memtuned_pageset_stored_bytes{*}) / "
          + _BY + "(memtuned_zone_managed_bytes{*})")
CERTIFICATE_LEFT = "memtuned_certificate_expiry_timestamp_seconds{@} - time()"
FAILED_CALLS = ("sum by (job, instance, code) "
                "(" + rate("memtuned_rpc_requests_total", "@") + ")")


def plain(title, unit, metric, legend, **more):
    return Panel(title, unit, [(metric + "{*}", legend)], **more)


def rates(title, unit, metric, legend, **more):
    return Panel(title, unit, [(rate(metric), legend)], **more)


FLEET = Dashboard(
    "memtuned-fleet", "memtuned / fleet contention",
    "Where in the fleet zone locks are contended, and whether limits, factors "
    "or memory explain it.", many_instances=True, rows=[
        ("At a glance", [
            Panel("Daemons up", "none", [('sum(up{@})', "up")], kind="stat",
                  note="Daemons that Prometheus reached at its last scrape."),
            Panel("Daemons down", "none",
                  [('count(up{@} == 0) or vector(0)', "down")], kind="stat",
                  note="Daemons that it did not reach."),
            Panel("Subjects not ready", "none",
                  [("count(memtuned_subject_ready{*} == 0) or vector(0)",
                    "not ready")], kind="stat"),
            Panel("Zones with stale limits", "none",
                  [("count(memtuned_pageset_limits_stale{*} == 1) or "
                    "vector(0)", "stale")], kind="stat"),
            Panel("Oldest sample", "s",
                  [("max(memtuned_sample_age_seconds{*})", "age")],
                  kind="stat"),
            Panel("Most contended zone", "percentunit",
                  [(f"max({CONTENDED})", "contended")], kind="stat"),
        ]),
        ("Contention: the 20 worst", [
            Panel("Zone lock acquisitions that wait", "percentunit",
                  [(f"topk(20, {CONTENDED})", ZONE)],
                  note="Share of acquisitions that found the lock taken."),
            Panel("Zone lock holds per block allocated", "none",
                  [(f"topk(20, {HOLDS_PER_BLOCK})", SUBJECT)],
                  note="Near 0: pagesets serve nearly every block. 1/batch "
                       "and more: each batch costs a hold."),
            Panel("Time waited for zone locks", "s",
                  [("topk(20, " + rate("memtuned_zone_lock_wait_seconds_sum")
                    + ")", ZONE)],
                  note="Seconds of waiting in each second, over all threads."),
            Panel("Pages per refill, the 20 smallest", "suffix: pages",
                  [(f"bottomk(20, {PAGES_PER_REFILL})", ZONE)]),
            rates("Refills", "ops", "memtuned_pageset_refills_total", ZONE),
            rates("Operations past a busy pageset", "ops",
                  "memtuned_pageset_trylock_misses_total", ZONE),
        ]),
        ("Limits and factors", [
            plain("Pageset batch", "suffix: pages",
                  "memtuned_pageset_batch_pages", ZONE),
            Panel("Batch factor", "none",
                  [('memtuned_tunable_value{*,tunable="pageset.batch_factor"}',
                    SUBJECT)]),
            plain("Limits stale", "bool_yes_no",
                  "memtuned_pageset_limits_stale", ZONE),
            Panel("Recalculations", "none",
                  [("increase(memtuned_pageset_recalculations_total{*}"
                    + _RATE + ")", SUBJECT + " {{trigger}}")]),
            plain("Generation", "none", "memtuned_subject_generation",
                  SUBJECT, note="Steps are changes, also those of others."),
            Panel("Initialised share of the pool", "percentunit",
                  [("memtuned_pool_initialised_bytes{*} / "
                    "memtuned_pool_size_bytes{*}", SUBJECT)]),
        ]),
        ("Memory", [
            Panel("Memory parked in pagesets", "percentunit",
                  [(f"topk(20, {PARKED})", SUBJECT)],
                  note="Share of a subject's memory, the 20 largest."),
            rates("Allocation failures", "ops",
                  "memtuned_allocation_failures_total",
                  SUBJECT + " {{reason}}"),
            plain("A stopped process holds a lock since", "s",
                  "memtuned_lock_holder_stopped_seconds", SUBJECT),
            Panel("Free memory unusable for order 9", "percentunit",
                  [('memtuned_zone_unusable_free_ratio{*,order="9"}', ZONE)]),
        ]),
        ("Daemons", [
            plain("Sample age", "s", "memtuned_sample_age_seconds", SUBJECT),
            Panel("Calls by status", "reqps",
                  [(FAILED_CALLS, "{{instance}} {{code}}")]),
            Panel("Denied calls", "reqps",
                  [(rate("memtuned_denied_calls_total", "@"),
                    "{{instance}}")]),
            Panel("Certificates expire in", "s",
                  [(CERTIFICATE_LEFT, "{{instance}} {{kind}}")]),
            Panel("Certificates refused", "none",
                  [("increase(memtuned_certificate_reload_failures_total{@}"
                    + _RATE + ")", "{{instance}} {{kind}}")]),
            Panel("Versions", "none",
                  [("count by (version, revision) (memtuned_build_info{@})",
                    "{{version}} {{revision}}")]),
        ]),
    ])

HZONE = "{{subject}} {{node}}/{{zone}}"
HSUBJECT = "{{subject}}"

HOST = Dashboard(
    "memtuned-host", "memtuned / one host",
    "Every figure of one daemon: its subjects, zones, pagesets and tunables.",
    many_instances=False, rows=[
        ("At a glance", [
            plain("Ready", "bool_yes_no", "memtuned_subject_ready", HSUBJECT,
                  kind="stat"),
            plain("Degraded", "bool_yes_no", "memtuned_subject_degraded",
                  HSUBJECT, kind="stat"),
            plain("Write locked", "bool_yes_no",
                  "memtuned_subject_write_locked", HSUBJECT, kind="stat"),
            plain("Generation", "none", "memtuned_subject_generation",
                  HSUBJECT, kind="stat"),
            plain("Policy", "none", "memtuned_pageset_policy_info",
                  "{{policy}}", kind="stat", legend_only=True),
            Panel("Build", "none", [("memtuned_build_info{@}",
                                     "{{version}} {{revision}}")],
                  kind="stat", legend_only=True),
        ]),
        ("Zone lock", [
            rates("Acquisitions", "ops",
                  "memtuned_zone_lock_acquisitions_total", HZONE),
            Panel("Acquisitions that wait", "percentunit",
                  [(CONTENDED, HZONE)]),
            Panel("Holds per block allocated", "none",
                  [(HOLDS_PER_BLOCK, HSUBJECT)],
                  note="Near 0: pagesets serve nearly every block."),
            Panel("Waits by length", "s",
                  [("sum by (job, instance, subject, le) (increase("
                    "memtuned_zone_lock_wait_seconds_bucket{*}" + _RATE
                    + "))", "{{le}}")], kind="heatmap"),
            plain("Most pages moved in one hold", "suffix: pages",
                  "memtuned_zone_lock_hold_pages_max", HZONE),
            rates("Locks taken over", "ops", "memtuned_lock_takeovers_total",
                  "{{subject}} {{lock}}"),
        ]),
        ("Pagesets", [
            plain("Batch", "suffix: pages", "memtuned_pageset_batch_pages",
                  HZONE),
            Panel("High and its bounds", "suffix: pages",
                  [("memtuned_pageset_limit_pages{*}", HZONE + " {{limit}}"),
                   ("memtuned_pageset_high_pages{*}",
                    HZONE + " {{stat}} over CPUs")]),
            plain("Filling over CPUs", "suffix: pages",
                  "memtuned_pageset_pages", HZONE + " {{stat}}"),
            Panel("Pages per refill", "suffix: pages",
                  [(PAGES_PER_REFILL, HZONE)]),
            rates("Flushes by cause", "ops", "memtuned_pageset_flushes_total",
                  HZONE + " {{cause}}"),
            rates("Pages flushed by cause", "suffix: pages/s",
                  "memtuned_pageset_flushed_pages_total",
                  HZONE + " {{cause}}"),
            rates("Operations past a busy pageset", "ops",
                  "memtuned_pageset_trylock_misses_total", HZONE),
            plain("Limits stale", "bool_yes_no",
                  "memtuned_pageset_limits_stale", HZONE),
            Panel("Recalculations", "none",
                  [("increase(memtuned_pageset_recalculations_total{*}"
                    + _RATE + ")", "{{subject}} {{trigger}}")]),
        ]),
        ("Memory of the zones", [
            Panel("Managed and free", "bytes",
                  [("memtuned_zone_managed_bytes{*}", HZONE + " managed"),
                   ("memtuned_zone_free_bytes{*}", HZONE + " free")]),
            Panel("Watermarks", "bytes",
                  [("memtuned_zone_watermark_bytes{*}", HZONE + " {{level}}"),
                   ("memtuned_zone_watermark_boost_bytes{*}",
                    HZONE + " boost")]),
            Panel("Parked in pagesets and depot", "bytes",
                  [("memtuned_pageset_stored_bytes{*}", HZONE + " pagesets"),
                   ("memtuned_depot_stored_bytes{*}", HZONE + " depot")],
                  stacked=True),
            plain("Free blocks by order", "none", "memtuned_zone_free_blocks",
                  HZONE + " {{order}}"),
            plain("Unusable free memory", "percentunit",
                  "memtuned_zone_unusable_free_ratio", HZONE + " {{order}}"),
            rates("Whole batches through the depot", "ops",
                  "memtuned_depot_batches_total", "{{subject}} {{direction}}"),
        ]),
        ("Allocations", [
            rates("Blocks allocated by order", "ops",
                  "memtuned_allocations_total", HZONE + " {{order}}"),
            rates("Blocks freed by order", "ops", "memtuned_frees_total",
                  HZONE + " {{order}}"),
            rates("Allocation failures", "ops",
                  "memtuned_allocation_failures_total",
                  "{{subject}} {{reason}}"),
            rates("Frees refused", "ops", "memtuned_refused_frees_total",
                  "{{subject}} {{reason}}"),
            rates("Pages by NUMA event", "suffix: pages/s",
                  "memtuned_numa_pages_total",
                  "{{subject}} {{node}} {{event}}"),
            rates("Retries: allowed nodes changed", "ops",
                  "memtuned_mems_allowed_retries_total", HSUBJECT),
        ]),
        ("Pools and tunables", [
            Panel("Size and initialised", "bytes",
                  [("memtuned_pool_size_bytes{*}", HSUBJECT + " size"),
                   ("memtuned_pool_initialised_bytes{*}",
                    HSUBJECT + " initialised")]),
            Panel("Attached processes and observers", "none",
                  [("memtuned_pool_processes{*}", "{{subject}} {{state}}"),
                   ("memtuned_pool_observers{*}", "{{subject}} observers")]),
            rates("Refused attaches", "ops", "memtuned_refused_attaches_total",
                  "{{subject}} {{reason}}",
                  note="By whom: attach-refused in the daemon's log."),
            Panel("Held by processes, by order", "bytes",
                  [("memtuned_pool_allocated_bytes{*}",
                    "{{subject}} {{order}}")], stacked=True),
            plain("A stopped process holds a lock since", "s",
                  "memtuned_lock_holder_stopped_seconds", HSUBJECT,
                  note="Others cannot use what the lock protects."),
            plain("Largest holder", "bytes",
                  "memtuned_pool_largest_holder_bytes", HSUBJECT,
                  note="Who it is: memtunectl processes."),
            plain("Tunables, each in its own unit", "none",
                  "memtuned_tunable_value", "{{subject}} {{tunable}}"),
            plain("Set by somebody else", "bool_yes_no",
                  "memtuned_tunable_foreign", "{{subject}} {{tunable}}"),
        ]),
        ("Daemon", [
            Panel("Sample", "s",
                  [("memtuned_sample_age_seconds{*}", HSUBJECT + " age"),
                   ("memtuned_sample_duration_seconds{*}",
                    HSUBJECT + " took")]),
            Panel("Calls", "reqps",
                  [(rate("memtuned_rpc_requests_total", "@"),
                    "{{method}} {{code}}")]),
            Panel("Call duration, 99 %", "s",
                  [("histogram_quantile(0.99, sum by (job, instance, method, "
                    "le) (" + rate("memtuned_rpc_duration_seconds_bucket", "@")
                    + "))", "{{method}}")]),
            Panel("Watchers that fell behind", "ops",
                  [(rate("memtuned_watch_fell_behind_total", "@"),
                    "fell behind")]),
            Panel("Denied calls", "reqps",
                  [(rate("memtuned_denied_calls_total", "@"), "denied")]),
            Panel("Certificates expire in", "s",
                  [(CERTIFICATE_LEFT, "{{kind}}")]),
            Panel("Certificates refused", "none",
                  [("increase(memtuned_certificate_reload_failures_total{@}"
                    + _RATE + ")", "{{kind}}")]),
        ]),
    ])
