#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs, builds, and shows memtuned's main job on this machine, measured:
# a pool whose zones are still being initialised has small pageset limits and
# a busy zone lock; when initialisation ends the limits grow by themselves
# and the lock falls quiet; then two factors are set remotely, the pagesets
# drained and the metrics scraped. Everything lives in a private folder.
#   deploy/quickstart.sh [--keep]      --keep leaves the daemon running
# Environment: MEMTUNED_BUILD_DIR (build), MEMTUNED_NO_INSTALL=1.
set -euo pipefail

root=$(readlink -f "$(dirname "$0")/..")
build=${MEMTUNED_BUILD_DIR:-$root/build}
bin=$build/bin
keep=0
daemon=
dir=

case ${1:-} in
  "") ;;
  --keep) keep=1 ;;
  *)
    sed -n '3,9s/^# \{0,1\}//p' "$0"
    [ "$1" = --help ] || [ "$1" = -h ] && exit 0
    exit 2
    ;;
esac

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

ctl() {
  "$bin/memtunectl" --target "unix:$dir/run/memtuned.sock" \
    --subject pools/default "$@"
}

stop_daemon() {
  [ -n "$daemon" ] || return 0
  kill -TERM "$daemon" 2>/dev/null || true
  wait "$daemon" || true
  daemon=
}

on_exit() {
  local code=$?
  if [ "$code" -ne 0 ] && [ -n "$dir" ] && [ -s "$dir/memtuned.log" ]; then
    printf '\nquickstart failed; the end of %s:\n' "$dir/memtuned.log" >&2
    tail -n 20 "$dir/memtuned.log" >&2
  fi
  if [ "$code" -ne 0 ] || [ "$keep" -eq 0 ]; then
    stop_daemon
    [ "$code" -ne 0 ] || rm -rf "$dir"
  fi
}
trap on_exit EXIT

build_all() {
  [ -n "${MEMTUNED_NO_INSTALL:-}" ] ||
    "$root/deploy/install-packages.sh" build run
  mkdir -p "$build"
  local log=$build/quickstart-build.log
  echo "building in $build (log: $log)"
  {
    cmake -G Ninja -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
      ninja -C "$build" bin/memtuned bin/memtunectl bin/memtune-load
  } >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    exit 1
  }
}

free_port() {
  python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

start_daemon() {
  dir=$(mktemp -d "${TMPDIR:-/tmp}/memtuned-quickstart.XXXXXX")
  mkdir -p "$dir/run" "$dir/state"
  port=$(free_port)
  local available_kib size=2GiB
  available_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  [ "$available_kib" -ge $((4 << 20)) ] || size=1GiB
  "$bin/memtuned" --runtime-dir "$dir/run" --state-dir "$dir/state" \
    --topology live --metrics-listen "127.0.0.1:$port" \
    --pool "default=$size,policy=fixed,sections_per_second=1" \
    >"$dir/memtuned.log" 2>&1 &
  daemon=$!
  echo "daemon $daemon: a pool of $size on this machine's own topology," \
    "one section of 128 MiB initialised a second"
  for _ in $(seq 100); do
    ctl --timeout 1s zones >/dev/null 2>&1 && return
    kill -0 "$daemon" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

# Writes a sample taken after this call to the file.
fresh_stats() {
  local now
  now=$(date +%s)
  for _ in $(seq 100); do
    ctl stats -o json >"$1"
    jq -e --argjson now "$now" '.snapshot.sample.time
      | sub("[.][0-9]+Z$"; "Z") | fromdateiso8601 > $now' "$1" \
      >/dev/null && return
    sleep 0.1
  done
  echo "no new sample in 10 s" >&2
  return 1
}

# sum FILE NAME [LABEL VALUE]: a statistic summed over zones.
sum() {
  jq --arg name "$2" --arg key "${3:-}" --arg value "${4:-}" '
    [.snapshot.stats[] | select(.name == $name)
     | select($key == "" or .labels[$key] == $value) | .value]
    | add // 0' "$1"
}

# greatest FILE NAME [LABEL VALUE]: the largest over zones.
greatest() {
  jq --arg name "$2" --arg key "${3:-}" --arg value "${4:-}" '
    [.snapshot.stats[] | select(.name == $name)
     | select($key == "" or .labels[$key] == $value) | .value]
    | max // 0' "$1"
}

# delta BEFORE AFTER NAME [LABEL VALUE]
delta() {
  local before after
  before=$(sum "$1" "${@:3}")
  after=$(sum "$2" "${@:3}")
  jq -n "$after - $before"
}

# load PHASE SHAPE...: runs it and leaves PHASE.SHAPE.{before,after,load}.
load() {
  local phase=$1 name
  shift
  name=$dir/$phase.$(tr ' ' - <<<"$*")
  fresh_stats "$name.before"
  "$bin/memtune-load" --socket "$dir/run/pools/default.sock" \
    --processes 1 --threads 1 --seconds 2 -o json "$@" >"$name.load" \
    2>"$name.progress" || {
    cat "$name.progress" >&2
    return 1
  }
  fresh_stats "$name.after"
}

shapes=("burst 300" "burst 1000")

measure() {
  local shape
  for shape in "${shapes[@]}"; do
    # shellcheck disable=SC2086
    load "$1" $shape
  done
}

wait_until_initialised() {
  local whole done=0
  whole=$(ctl stats -o json memtuned_pool_size_bytes |
    jq '.snapshot.stats[0].value')
  for _ in $(seq 300); do
    done=$(ctl stats -o json memtuned_pool_initialised_bytes |
      jq '.snapshot.stats[0].value')
    [ ! -t 1 ] ||
      printf '\r  initialised %5d of %d MiB' $((done >> 20)) $((whole >> 20))
    [ "$done" -eq "$whole" ] && break
    sleep 0.5
  done
  printf '\r  initialised %5d of %d MiB\n' $((done >> 20)) $((whole >> 20))
  [ "$done" -eq "$whole" ]
}

# One row of the table: a title and a function applied to each phase.
row() {
  local title=$1 phase
  shift
  printf '%-44s' "$title"
  for phase in initialising initialised tuned; do
    printf '%15s' "$("$@" "$phase")"
  done
  printf '\n'
}

managed() {
  local bytes
  bytes=$(sum "$dir/$1.burst-300.before" memtuned_zone_managed_bytes)
  printf '%d MiB' $((bytes >> 20))
}
batch() { greatest "$dir/$1.burst-300.before" memtuned_pageset_batch_pages; }
high() {
  greatest "$dir/$1.burst-300.before" memtuned_pageset_limit_pages \
    limit high_max
}
# holds_per_page SHAPE PHASE: zone-lock holds per 1000 pages allocated.
holds_per_page() {
  local name=$dir/$2.$1 holds pages
  holds=$(delta "$name.before" "$name.after" \
    memtuned_zone_lock_acquisitions_total)
  pages=$(delta "$name.before" "$name.after" memtuned_allocations_total \
    order 0)
  jq -nr "if $pages == 0 then \"-\" else
    ($holds * 1000 / $pages * 100 | round / 100 | tostring) end"
}
rate() {
  jq -r '.operations_per_second / 1e6 * 100 | round / 100
    | tostring + " M"' "$dir/$2.$1.load"
}

show_table() {
  printf '%-44s%15s%15s%15s\n' '' initialising initialised tuned
  row 'memory of the zones' managed
  row 'pageset batch, pages' batch
  row 'pageset high, pages' high
  row 'zone-lock holds per 1000 pages, burst 300' holds_per_page burst-300
  row 'zone-lock holds per 1000 pages, burst 1000' holds_per_page burst-1000
  row 'operations a second, burst 300' rate burst-300
  row 'operations a second, burst 1000' rate burst-1000
}

say "1  install and build"
build_all

say "2  start a daemon with a pool under initialisation"
start_daemon
ctl topology

say "3  load while the limits are small"
measure initialising
ctl pagesets

say "4  initialisation ends; limits are recalculated without a command"
wait_until_initialised
measure initialised
ctl pagesets

say "5  set two factors from outside"
ctl set pageset.batch_factor=2 pageset.free_high_factor=8 \
  --reason "quickstart: fewer zone-lock holds on large bursts"
measure tuned
ctl pagesets

say "6  drain the pagesets"
ctl drain --reason "quickstart"

say "7  scrape the metrics on 127.0.0.1:$port"
fresh_stats "$dir/last"
curl -fsS "http://127.0.0.1:$port/metrics" >"$dir/metrics"
shown='zone_lock_acquisitions_total|pageset_batch_pages|pageset_limit_pages'
grep -E "^memtuned_($shown)" "$dir/metrics"
echo "$(grep -c '^[^#]' "$dir/metrics") series in all"

say "before and after, measured"
show_table

if [ "$keep" -eq 1 ]; then
  say "the daemon keeps running"
  cat <<END
  memtunectl   $bin/memtunectl --target unix:$dir/run/memtuned.sock zones
  load         $bin/memtune-load --socket $dir/run/pools/default.sock burst 300
  metrics      http://127.0.0.1:$port/metrics
  stop         kill $daemon && rm -r $dir
END
  disown "$daemon"
  exit 0
fi

say "8  stop"
start=$(date +%s%N)
stop_daemon
echo "stopped in $((($(date +%s%N) - start) / 1000000)) ms"
