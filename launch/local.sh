#!/usr/bin/env bash
# Simulates a pod on this machine's CPU: HOSTS processes with DEVICES virtual
# devices each, which communicate over 127.0.0.1.
#
#   HOSTS=2 DEVICES=4 launch/local.sh pretrain ... [--dry-run]
#
# On Ctrl-C, or `kill` of any of them, all save the same step and stop.
set -euo pipefail
# shellcheck source=launch/lib.sh
. "$(dirname "$0")/lib.sh"
parse "$@"
set -- ${args[@]+"${args[@]}"}
check_verb "$@"
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
# Forwards Ctrl-C too, as bash makes background processes ignore it (until they
# train).
trap 'kill -TERM "${pids[@]}" 2>/dev/null' TERM INT
code=0
for pid in ${pids[@]+"${pids[@]}"}; do
  wait_for "$pid" || code=$?
done
exit "$code"
