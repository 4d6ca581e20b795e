#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# First process of a small machine in namespaces of its own: systemd with the
# unit that deploy/ ships, and nothing else.
#   systemd_boot.sh BIN-DIR UNIT WORK-DIR
# WORK-DIR has memtuned.yaml and gets memtuned.log; it is /mnt/files there.
set -euo pipefail
bin=$1 unit=$2 work=$3
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /mnt
mount -t tmpfs tmpfs /var/lib
mkdir -p /run/systemd/system/memtuned.service.d /mnt/bin /mnt/files
mount --bind "$bin" /mnt/bin
mount --bind "$work" /mnt/files
# The user that a package would add.
cp /etc/passwd /etc/group /run/
echo 'memtuned:x:978:978::/nonexistent:/usr/sbin/nologin' >>/run/passwd
echo 'memtuned:x:978:' >>/run/group
mount --bind /run/passwd /etc/passwd
mount --bind /run/group /etc/group
cp "$unit" /run/systemd/system/memtuned.service
cat >/run/systemd/system/memtuned.service.d/test.conf <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
ExecStart=
ExecStart=/mnt/bin/memtuned --config /mnt/files/memtuned.yaml
StandardOutput=append:/mnt/files/memtuned.log
StandardError=append:/mnt/files/memtuned.log
UNIT
cat >/run/systemd/system/test.target <<'UNIT'
[Unit]
DefaultDependencies=no
Wants=memtuned.service
UNIT
export container=memtuned-test
exec /lib/systemd/systemd --system --unit=test.target --log-target=console \
  --show-status=no
