#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every shell script is clean for shellcheck, and each that is run directly
# may be run.
set -euo pipefail
command -v shellcheck >/dev/null || exit 77
cd "$MEMTUNED_SOURCE_DIR"
mapfile -t scripts < <(
  {
    find deploy tests client daemon -name '*.sh' -not -path 'tests/data/*'
    grep -rlE -m1 '^#!/bin/(ba)?sh' deploy tests client daemon .ci
  } | sort -u
)
[ ${#scripts[@]} -gt 0 ]
shellcheck -x "${scripts[@]}"

status=0
for script in "${scripts[@]}"; do
  if head -n 1 "$script" | grep -q '^#!' && [ ! -x "$script" ]; then
    echo "$script: has an interpreter line but is not executable"
    status=1
  fi
done
exit $status
