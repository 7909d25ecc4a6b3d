#!/usr/bin/env bash
# Manages a Cloud TPU slice as a queued resource, from request to deletion.
#
#   NAME=... ZONE=... launch/tpu_vm.sh STEP [arguments] [--dry-run]
#
#   create [gcloud flags]   request the slice: ACCELERATOR=v5litepod-256
#                           RUNTIME=v2-alpha-tpuv5-lite ... create --spot
#   wait                    wait until it is active (may take hours)
#   install                 install this checkout (git HEAD), Python and JAX on
#                           all hosts; mount BUCKET at ~/bucket
#   copy                    copy gs://BUCKET/$CORPUS to each host's ~/corpus
#   run pretrain ...        run `maskedlm pretrain ...` on all hosts, in
#                           ~/maskedlm; it survives this shell and the crash of
#                           a host
#   logs                    follow the log of host 0
#   stop                    stop the run: all hosts save the same step and end
#   restart pretrain ...    after a preemption: delete, create with $CREATE
#                           (such as --spot), wait, install, copy, run
#   delete                  delete the slice, which then costs nothing
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/lib.sh
parse "$@"
set -- ${args[@]+"${args[@]}"}
[ $# != 0 ] || { usage; exit 2; }
step=$1
shift
need NAME ZONE
queue=(gcloud compute tpus queued-resources)
at=("--zone=$ZONE" ${PROJECT:+"--project=$PROJECT"})

on_all() {  # COMMAND: runs it on every host of the slice.
  run gcloud compute tpus tpu-vm ssh "$NAME" "${at[@]}" --worker=all \
    --command="$1"
}

case $step in
  create)
    only_flags "$step" "$@"
    need ACCELERATOR RUNTIME
    run "${queue[@]}" create "$NAME" --node-id="$NAME" "${at[@]}" \
      --accelerator-type="$ACCELERATOR" --runtime-version="$RUNTIME" "$@"
    ;;
  wait)
    nothing_else "$step" "$@"
    run bash -c "until ${queue[*]} describe $NAME ${at[*]} \
--format='value(state.state)' | tee /dev/stderr | grep -qx ACTIVE; \
do sleep 30; done"
    ;;
  install)
    nothing_else "$step" "$@"
    need BUCKET
    run git archive --prefix=maskedlm/ --output=/tmp/maskedlm.tar.gz HEAD
    run gcloud compute tpus tpu-vm scp /tmp/maskedlm.tar.gz "$NAME:" \
      "${at[@]}" --worker=all
    on_all "tar xzf maskedlm.tar.gz && bash maskedlm/launch/tpu_host.sh $BUCKET"
    ;;
  copy)
    nothing_else "$step" "$@"
    need BUCKET CORPUS
    on_all "gcloud storage rsync --recursive gs://$BUCKET/$CORPUS corpus"
    ;;
  run)
    check_verb "$@"
    # All hosts restart if one fails or the storage does (74), at most 50 times a
    # day, as a disk may stay full. They don't if the input is wrong (2),
    # training diverged (3), or the run was stopped and saved (75). The limits
    # leave ten minutes for saving, and a file handle for each corpus file.
    on_all "sudo systemctl reset-failed maskedlm 2>/dev/null; \
sudo systemd-run --unit=maskedlm --uid=\$USER --setenv=HOME=\$HOME \
--working-directory=\$HOME/maskedlm --property=Restart=on-failure \
--property=RestartSec=20 --property='RestartPreventExitStatus=2 3 75' \
--property=StartLimitIntervalSec=1d --property=StartLimitBurst=50 \
--property=TimeoutStopSec=600 --property=LimitNOFILE=1048576 \
\$HOME/venv/bin/maskedlm $(quote "$@")"
    ;;
  logs)
    nothing_else "$step" "$@"
    run gcloud compute tpus tpu-vm ssh "$NAME" "${at[@]}" --worker=0 \
      --command="journalctl --unit=maskedlm --output=cat --lines=100 --follow"
    ;;
  stop)
    nothing_else "$step" "$@"
    on_all "sudo systemctl stop maskedlm"
    ;;
  restart)
    # Before the slice is deleted.
    check_verb "$@"
    need ACCELERATOR RUNTIME BUCKET CORPUS
    for each in delete "create ${CREATE:-}" wait install copy; do
      # shellcheck disable=SC2086 # CREATE may be several flags.
      launch/tpu_vm.sh $each
    done
    launch/tpu_vm.sh run "$@"
    ;;
  delete)
    nothing_else "$step" "$@"
    run "${queue[@]}" delete "$NAME" "${at[@]}" --force --quiet
    ;;
  *)
    fail "unknown step '$step'; $0 --help lists the steps"
    ;;
esac
