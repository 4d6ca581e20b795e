#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, tests. The last line is
# "N passed, N failed"; every build, fuzzer and clang-tidy run counts as one.
#   tests/run.sh [unit|e2e|rules|fuzz|bench|torture|all]      (default: all)
# Environment: MEMTUNED_BUILD_DIR (build), MEMTUNED_JOBS (number of CPUs),
# MEMTUNED_FUZZ_SECONDS (8 each), MEMTUNED_TORTURE_SECONDS (600 each, not
# in all), MEMTUNED_NO_INSTALL=1 (never call apt).
set -uo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"

usage() {
  sed -n '3,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

install() {
  [ -n "${MEMTUNED_NO_INSTALL:-}" ] && return
  "$root/deploy/install-packages.sh" "$@" || {
    failed=$((failed + 1))
    summary
    exit 1
  }
}

build_gcc() {
  build_variant "build with GCC, warnings are errors" "$build" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo
}

# Without a successful build there is nothing to run.
need() {
  "$@" && return
  summary
  exit 1
}

clang=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)

# clang_finds NAME alone|tidy: nothing is linked; see analyse.py.
clang_finds() {
  check "$1" "$root/tests/analyse.py" "$2" "$build" "$build-clang/$2"
}

# configure_sanitized DIR CMAKE-ARGUMENT...: the core without gRPC.
configure_sanitized() {
  configure "$@" "${clang[@]}" -DMEMTUNED_CORE_ONLY=ON \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1 -DNDEBUG"
}

build_sanitized() {
  configure_sanitized "$@" && compile "$1"
}

build_fuzzers() {
  configure_sanitized "$@" && compile "$1" memtuned_fuzzers
}

# shellcheck disable=SC2034  # ctest_prefix is read by run_ctest
# sanitized NAME DIR CMAKE-ARGUMENT...: the core's tests under a sanitizer.
sanitized() {
  local name=$1 dir=$2
  shift
  check "build core with $name" build_sanitized "$@" || return
  # Old sanitizer runtimes cannot live with much address randomisation.
  local ctest_prefix=()
  setarch -R true 2>/dev/null && ctest_prefix=(setarch -R)
  ASAN_OPTIONS=detect_stack_use_after_return=1 \
    UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1" \
    run_ctest "$dir" unit -j "$jobs"
}

fuzz_options=(-DMEMTUNED_FUZZ=ON
  -DMEMTUNED_FUZZ_SECONDS="${MEMTUNED_FUZZ_SECONDS:-8}")

# torture NAME FLAG...: one long run of memtuned-torture.
torture() {
  local name=$1
  shift
  check "torture: $name" "$build/bin/memtuned-torture" \
    --seconds "${MEMTUNED_TORTURE_SECONDS:-600}" "$@"
}

long_torture() {
  torture "kills"
  torture "kills, stopped processes" --stop
  torture "kills, daemon killed" --kill-daemon
  torture "kills, stopped processes, daemon killed" --stop --kill-daemon
  # With these workers two CPUs come to more than 1,000 attaches a second.
  torture "kills, attach storm" --storm 1500 --workers 4
  check "pages of the killed are back" \
    "$build/bin/memtuned-torture" --measure reap
  check "locks of the killed are taken over" \
    "$build/bin/memtuned-torture" --measure takeover
}

all() {
  install build run test bench-peers
  step "1 format and rules"
  configure "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
    run_ctest "$build" rules -j "$jobs"
  step "2 GCC, warnings are errors, unit tests"
  need build_gcc
  run_ctest "$build" unit -j "$jobs"
  step "3 clang, thread-safety, clang-tidy"
  clang_finds "clang's warnings, thread-safety, each source alone" alone
  clang_finds "clang-tidy" tidy
  step "4 ASan and UBSan on core, fuzzers over their kept corpora"
  sanitized "ASan, UBSan and fuzzers" "$build-asan" "${fuzz_options[@]}"
  run_ctest "$build-asan" fuzz -j "$jobs"
  step "5 TSan on core"
  sanitized TSan "$build-tsan" -DMEMTUNED_SANITIZE=thread
  step "6 end to end"
  # They sleep more than they work.
  run_ctest "$build" e2e -j $((2 * jobs))
  step "7 bench, for a moment; time is not judged here"
  MEMTUNED_BENCH_SHORT=1 run_ctest "$build" bench
  step "8 torture, short"
  run_ctest "$build" torture
}

case ${1:-all} in
  all) all ;;
  unit | e2e)
    install build run test
    step "build"
    need build_gcc
    step "$1"
    run_ctest "$build" "$1"
    ;;
  rules)
    install build test
    step "format and rules"
    need check configure configure "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo
    run_ctest "$build" rules -j "$jobs"
    ;;
  fuzz)
    install build test
    step "fuzzers"
    need check "build fuzzers" build_fuzzers "$build-asan" "${fuzz_options[@]}"
    run_ctest "$build-asan" fuzz -j "$jobs"
    ;;
  bench)
    install build test bench-peers
    step "build"
    need build_gcc
    step "bench"
    run_ctest "$build" bench --verbose
    ;;
  torture)
    install build test
    step "build"
    need build_gcc
    step "torture"
    long_torture
    ;;
  *) usage ;;
esac
summary
