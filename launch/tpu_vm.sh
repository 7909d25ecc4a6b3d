#!/usr/bin/env bash
# A Cloud TPU slice by a queued resource, from the request to its end.
#
#   NAME=... ZONE=... launch/tpu_vm.sh [--dry-run] STEP [arguments]
#
#   create [gcloud flags]   ask for the slice: ACCELERATOR=v5litepod-256
#                           RUNTIME=v2-alpha-tpuv5-lite ... create --spot
#   wait                    until it is there (the queue may take hours)
#   install                 this checkout (git HEAD), Python and JAX, on all
#                           hosts; mounts BUCKET at ~/bucket
#   copy                    gs://BUCKET/$CORPUS -> ~/corpus on each host's disk
#   run pretrain ...        `maskedlm pretrain ...` on all hosts, in ~/maskedlm;
#                           it outlives this shell, and a crash of one host
#   logs                    of host 0, as they come
#   stop                    all save the same step and end
#   restart pretrain ...    after a preemption: delete, create with $CREATE,
#                           wait, install, copy, run; CREATE="--spot"
#   delete                  the slice; from here on it costs nothing
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/lib.sh
if [ "${1:-}" = --dry-run ]; then export DRY_RUN=1; shift; fi
need NAME ZONE
step=${1:-help}
shift || true
queue=(gcloud compute tpus queued-resources)
at=("--zone=$ZONE" ${PROJECT:+"--project=$PROJECT"})

on_all() {  # COMMAND: on every host of the slice.
  run gcloud compute tpus tpu-vm ssh "$NAME" "${at[@]}" --worker=all \
    --command="$1"
}

case $step in
  create)
    need ACCELERATOR RUNTIME
    run "${queue[@]}" create "$NAME" --node-id="$NAME" "${at[@]}" \
      --accelerator-type="$ACCELERATOR" --runtime-version="$RUNTIME" "$@"
    ;;
  wait)
    run bash -c "until ${queue[*]} describe $NAME ${at[*]} \
--format='value(state.state)' | tee /dev/stderr | grep -qx ACTIVE; \
do sleep 30; done"
    ;;
  install)
    need BUCKET
    run git archive --prefix=maskedlm/ --output=/tmp/maskedlm.tar.gz HEAD
    run gcloud compute tpus tpu-vm scp /tmp/maskedlm.tar.gz "$NAME:" \
      "${at[@]}" --worker=all
    on_all "tar xzf maskedlm.tar.gz && bash maskedlm/launch/tpu_host.sh $BUCKET"
    ;;
  copy)
    need BUCKET CORPUS
    on_all "gcloud storage rsync --recursive gs://$BUCKET/$CORPUS corpus"
    ;;
  run)
    # Restarted, with all others, when any host fails or the storage does (74),
    # 50 times a day at most: a disk may stay full. Not when the input is wrong
    # (2), training diverged (3) or it was stopped and saved (75). It has ten
    # minutes to save, and may map as many files as the corpus has.
    on_all "sudo systemctl reset-failed maskedlm 2>/dev/null; \
sudo systemd-run --unit=maskedlm --uid=\$USER --setenv=HOME=\$HOME \
--working-directory=\$HOME/maskedlm --property=Restart=on-failure \
--property=RestartSec=20 --property='RestartPreventExitStatus=2 3 75' \
--property=StartLimitIntervalSec=1d --property=StartLimitBurst=50 \
--property=TimeoutStopSec=600 --property=LimitNOFILE=1048576 \
\$HOME/venv/bin/maskedlm $(quote "$@")"
    ;;
  logs)
    run gcloud compute tpus tpu-vm ssh "$NAME" "${at[@]}" --worker=0 \
      --command="journalctl --unit=maskedlm --output=cat --lines=100 --follow"
    ;;
  stop)
    on_all "sudo systemctl stop maskedlm"
    ;;
  restart)
    for each in delete "create ${CREATE:-}" wait install copy; do
      # shellcheck disable=SC2086 # CREATE is several flags.
      launch/tpu_vm.sh $each
    done
    launch/tpu_vm.sh run "$@"
    ;;
  delete)
    run "${queue[@]}" delete "$NAME" "${at[@]}" --force --quiet
    ;;
  *)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
