#!/usr/bin/env bash
# Runs maskedlm on this machine, on all its GPUs or TPU chips, and again after
# an interruption, until it is done.
#
#   launch/machine.sh pretrain --config=... --workdir=... [--dry-run]
#
# It runs again if the storage failed (74), if it was saved and stopped, or lost
# another host (75), or if a signal killed it (above 128), after 10 s, 20 s, 40 s,
# ..., 10 minutes. RETRIES=20 runs in a row that each lasted less than an hour
# are the limit. Ctrl-C, and `kill` of this script, save the run and end both.
set -euo pipefail
# shellcheck source=launch/lib.sh
. "$(dirname "$0")/lib.sh"
parse "$@"
set -- ${args[@]+"${args[@]}"}
check_verb "$@"
command=(maskedlm "$@")
pid="" stopped=""
# Passed on, as bash makes background processes ignore Ctrl-C.
trap 'stopped=1; [ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null || true' \
  TERM INT HUP
while :; do
  quote "${command[@]}"
  [ -z "${DRY_RUN:-}" ] || exit 0
  began=$SECONDS
  "${command[@]}" & pid=$!
  # A signal that came before there was a process to pass it on to.
  [ -z "$stopped" ] || kill -TERM "$pid" 2>/dev/null || true
  code=0
  wait_for "$pid" || code=$?
  pid=""
  if [ -n "$stopped" ] || ! may_succeed_later "$code"; then exit "$code"; fi
  back_off "$((SECONDS - began))" "exit code $code" 10 600 || exit "$code"
  [ -z "$stopped" ] || exit "$code"
done
