#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the named sections of packages.txt; without a name, all of them.
# Asks apt only for what is missing, and does nothing when nothing is.
#   deploy/install-packages.sh [build] [run] [test] [bench-peers]
set -euo pipefail

list=$(dirname "$(readlink -f "$0")")/packages.txt

# Prints the packages of one section.
section() {
  awk -v want="[$1]" '
    /^[[:space:]]*(#|$)/ { next }
    /^\[/ { current = $1; if ($1 == want) found = 1; next }
    current == want { print $1 }
    END { exit !found }' "$list" || {
    echo "install-packages: no section \"$1\"; packages.txt has:" \
      "$(sed -n 's/^\[\(.*\)\]$/\1/p' "$list" | tr '\n' ' ')" >&2
    return 2
  }
}

installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if [ $# -eq 0 ]; then
  mapfile -t names < <(sed -n 's/^\[\(.*\)\]$/\1/p' "$list")
  set -- "${names[@]}"
fi

missing=()
for name in "$@"; do
  packages=$(section "$name")
  for package in $packages; do
    installed "$package" || missing+=("$package")
  done
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "install-packages: not root and no sudo; missing: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi

echo "installing: ${missing[*]}" >&2
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
"${apt[@]}" update >&2
"${apt[@]}" install --no-install-recommends "${missing[@]}" >&2
