# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Steps, builds and counting for tests/run.sh. Sourced, not run.
# shellcheck disable=SC2034  # tests/run.sh reads some of these

root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/..")
build=${MEMTUNED_BUILD_DIR:-$root/build}
jobs=${MEMTUNED_JOBS:-$(nproc)}
# A fresh clone in another folder finds what the last one compiled.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
passed=0
failed=0
step_start=0
step_name=
ctest_prefix=()  # a command that runs ctest, such as setarch -R

# Ends the step before and starts one; prints how long the last one took.
step() {
  end_step
  step_name=$*
  step_start=$SECONDS
  printf '\n== %s\n' "$step_name"
}

end_step() {
  [ -n "$step_name" ] &&
    printf -- '-- %s: %d s\n' "$step_name" $((SECONDS - step_start))
  step_name=
}

# Runs a command as one check: it counts as one passed or one failed.
check() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    printf 'ok      %s\n' "$name"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s\n' "$name"
    return 1
  fi
}

# log_of DIR NAME: where a step on that build folder keeps its output. Inside
# the folder: what lies beside it belongs to the source tree.
log_of() {
  mkdir -p "$1/logs" && printf '%s\n' "$1/logs/$2.log"
}

# configure DIR CMAKE-ARGUMENT...
configure() {
  local dir=$1 log
  shift
  log=$(log_of "$dir" configure) || return
  cmake -G Ninja -S "$root" -B "$dir" "$@" >"$log" 2>&1 || {
    tail -n 40 "$log"
    return 1
  }
}

# compile DIR [TARGET...]: quiet unless it fails.
compile() {
  local dir=$1 log
  shift
  log=$(log_of "$dir" compile) || return
  ninja -C "$dir" -j "$jobs" "$@" >"$log" 2>&1 || {
    grep -E -A 12 'FAILED|error:|CMake Error' "$log" | head -n 80
    return 1
  }
}

# build_variant NAME DIR CMAKE-ARGUMENT... : one check.
build_variant() {
  local name=$1
  shift
  check "$name" configure_and_compile "$@"
}

configure_and_compile() {
  configure "$@" && compile "$1"
}

# run_ctest DIR LABEL [CTEST-ARGUMENT...]: adds up what ctest says.
run_ctest() {
  local dir=$1 label=$2 log
  shift 2
  log=$(log_of "$dir" "ctest-$label") || return
  "${ctest_prefix[@]}" ctest --test-dir "$dir" -L "^($label)\$" \
    --output-on-failure --no-tests=error "$@" 2>&1 | tee "$log"
  local result=${PIPESTATUS[0]} summary
  summary=$(grep -E 'tests? failed out of' "$log" | tail -n 1)
  if [[ $summary =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1]))
  elif [ "$result" -ne 0 ]; then
    failed=$((failed + 1))
  fi
  return "$result"
}

# The last line of every run; the exit code says the same.
summary() {
  end_step
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
