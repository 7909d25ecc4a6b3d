#!/usr/bin/env bash
# A pod in small, on this machine's CPU: HOSTS processes of DEVICES virtual
# devices each, that talk over 127.0.0.1.
#
#   HOSTS=2 DEVICES=4 launch/local.sh [--dry-run] pretrain --config=... ...
#
# Ctrl-C or `kill` of any one: all save the same step and stop.
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/lib.sh
if [ "${1:-}" = --dry-run ]; then DRY_RUN=1; shift; fi
hosts=${HOSTS:-1} port=${PORT:-45678}
pids=()
for ((i = 0; i < hosts; i++)); do
  command=(env JAX_PLATFORMS=cpu
    XLA_FLAGS=--xla_force_host_platform_device_count="${DEVICES:-2}"
    JAX_COORDINATOR_ADDRESS="127.0.0.1:$port" JAX_NUM_PROCESSES="$hosts"
    JAX_PROCESS_ID="$i" maskedlm "$@")
  quote "${command[@]}"
  if [ -z "${DRY_RUN:-}" ]; then "${command[@]}" & pids+=($!); fi
done
# Ctrl-C too: bash has what is in the background ignore it, until it trains.
trap 'kill -TERM "${pids[@]}" 2>/dev/null' TERM INT
code=0
for pid in ${pids[@]+"${pids[@]}"}; do
  status=0
  until wait "$pid" && status=0 || status=$?; ! kill -0 "$pid" 2>/dev/null; do
    :  # A signal has ended the waiting, not the process.
  done
  [ "$status" = 0 ] || code=$status
done
exit "$code"
