#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# quickstart runs to its end with what was built, and what it measured tells
# the story: limits grow by themselves, the zone lock falls quiet.
set -euo pipefail
output=$(mktemp)
trap 'rm -f "$output"' EXIT

MEMTUNED_NO_INSTALL=1 MEMTUNED_BUILD_DIR=$MEMTUNED_BUILD_DIR \
  "$MEMTUNED_SOURCE_DIR/deploy/quickstart.sh" | tee "$output"

# cells TITLE: the three numbers of one row of the table.
cells() { sed -n "s/^$1  *//p" "$output" | tail -n 1; }

fail() {
  echo "quickstart_test: $*" >&2
  exit 1
}

read -r small large tuned < <(cells 'pageset batch, pages')
[ "$small" -eq 7 ] || fail "batch while initialising is $small, not 7"
[ "$large" -gt "$small" ] || fail "batch did not grow: $small to $large"
[ "$tuned" -gt "$large" ] || fail "the factor did not count: $large to $tuned"
read -r before after _ < <(cells 'zone-lock holds per 1000 pages, burst 300')
awk -v before="$before" -v after="$after" \
  'BEGIN { exit !(before > 10 * after) }' ||
  fail "zone-lock holds fell from $before to $after only"
grep -q '^stopped in [0-9]* ms$' "$output" || fail "did not stop cleanly"
