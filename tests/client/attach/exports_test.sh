#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library shows the functions of its C header and nothing else.
# Usage: exports_test.sh LIBRARY HEADER
set -eu
shown=$(nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' |
  sed 's/@.*//' | sort)
declared=$(grep -o 'memtuned_[a-z_]*(' "$2" | tr -d '(' | sort -u)
missing=$(printf '%s\n' "$shown" | while read -r name; do
  printf '%s\n' "$declared" | grep -qx "$name" || echo "$name"
done)
if [ -n "$missing" ]; then
  echo "shown, but not in $2: $missing" >&2
  exit 1
fi
test "$(printf '%s\n' "$shown" | wc -l)" -ge 20
