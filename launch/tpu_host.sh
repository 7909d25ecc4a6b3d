#!/usr/bin/env bash
# Installs Python and maskedlm and mounts the bucket on one host of a slice.
# `tpu_vm.sh install` runs it on all hosts.
#
#   launch/tpu_host.sh BUCKET [--dry-run]
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/lib.sh
parse "$@"
set -- ${args[@]+"${args[@]}"}
case $#${1:-} in
  1[a-z0-9]*) ;;
  *) fail "usage: tpu_host.sh BUCKET" ;;
esac
# The images have Python 3.10; uv installs a newer one.
run bash -c "curl -LsSf https://astral.sh/uv/install.sh | sh"
run ~/.local/bin/uv venv --clear --python=3.12 ~/venv
run ~/.local/bin/uv pip install --python ~/venv/bin/python ".[gcs,tpu]"
# https://cloud.google.com/storage/docs/cloud-storage-fuse/install
run bash -c "echo \"deb [signed-by=/usr/share/keyrings/cloud.google.asc] \
https://packages.cloud.google.com/apt gcsfuse-\$(lsb_release -c -s) main\" | \
sudo tee /etc/apt/sources.list.d/gcsfuse.list"
run bash -c "curl -sSf https://packages.cloud.google.com/apt/doc/apt-key.gpg | \
sudo tee /usr/share/keyrings/cloud.google.asc >/dev/null"
run sudo apt-get update
run sudo apt-get install --yes gcsfuse
run mkdir -p ~/bucket
# No caching of metadata, so that all hosts see a rename at once.
run bash -c "mountpoint -q ~/bucket || gcsfuse --implicit-dirs \
--metadata-cache-ttl-secs=0 --metadata-cache-negative-ttl-secs=0 \
--rename-dir-limit=100000 $1 ~/bucket"
