#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Doubles the batch factor of a subject whose zone locks are contended.
#   tune-contended.sh SUBJECT [PERCENT]
# PERCENT: how many of the zone lock acquisitions of the next seconds may wait,
# 10 without one. Environment: MEMTUNED_TARGET, as memtunectl reads it;
# SECONDS_WATCHED (5), LARGEST_FACTOR (8). Needs memtunectl and jq.
# Exit status: 0 fine or doubled, else memtunectl's: 5 when somebody else
# changed the subject meanwhile.
set -euo pipefail

[ $# -ge 1 ] || {
  sed -n '3,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
}
subject=$1
percent=${2:-10}

ctl() { memtunectl --subject "$subject" -o json "$@"; }

# proto JSON has 64-bit numbers as strings, hence tonumber.
locks() {
  ctl zones | jq -c '[.zones[].zone_lock] | {
    taken: (map(.acquisitions | tonumber) | add),
    waited: (map(.contended | tonumber) | add)}'
}

before=$(locks)
sleep "${SECONDS_WATCHED:-5}"
after=$(locks)
waited=$(jq -n --argjson b "$before" --argjson a "$after" '
  ($a.taken - $b.taken) as $taken |
  if $taken == 0 then 0 else 100 * ($a.waited - $b.waited) / $taken end')
printf '%s: %.1f %% of zone lock acquisitions waited\n' "$subject" "$waited"
jq -ne "$waited > $percent" >/dev/null || exit 0

tunables=$(ctl tunables)
etag=$(jq -r .etag <<<"$tunables")
factor=$(jq '.tunables[] | select(.name | endswith("/pageset.batch_factor"))
  | .value.real' <<<"$tunables")
wanted=$(jq -n "[$factor * 2, ${LARGEST_FACTOR:-8}] | min")
jq -ne "$wanted > $factor" >/dev/null || {
  echo "pageset.batch_factor is at its largest, $factor"
  exit 0
}
# The etag: refused if anybody changed anything since it was read.
ctl set "pageset.batch_factor=$wanted" --etag "$etag" \
  --reason "$waited % of zone lock acquisitions waited" |
  jq -r '.change | "generation \(.generation): \(.values[0].tunable) " +
    "\(.values[0].before.real) -> \(.values[0].after.real)"'
