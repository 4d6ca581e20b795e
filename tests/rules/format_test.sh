#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every C and C++ file is as clang-format leaves it.
set -euo pipefail
command -v clang-format >/dev/null || exit 77
cd "$MEMTUNED_SOURCE_DIR"
find core client daemon tests -name '*.h' -o -name '*.cc' -o -name '*.c' |
  grep -v '^tests/data/' | sort |
  xargs -r clang-format --dry-run -Werror
