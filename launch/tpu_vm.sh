#!/usr/bin/env bash
# Manages a Cloud TPU slice as a queued resource, from request to deletion.
#
#   NAME=... ZONE=... launch/tpu_vm.sh STEP [arguments] [--dry-run]
#
#   create [gcloud flags]   request the slice: ACCELERATOR=v5litepod-256
#                           RUNTIME=v2-alpha-tpuv5-lite ... create --spot
#   wait                    wait until it is active (may take hours), or failed
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
#   keep pretrain ...       run it, look every minute, and after a preemption or a
#                           failure restart it, until it is done; at most
#                           RETRIES=20 times in a row that each lasted less
#                           than an hour. Ctrl-C ends the watch, not the run
#   status                  the state of the slice and of the run
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

in_turn() {  # STEP [pretrain ...]: does this step and those that follow it.
  local first=$1 started="" words
  shift
  for words in delete "create ${CREATE:-}" wait install copy; do
    [ "${words%% *}" != "$first" ] || started=1
    # shellcheck disable=SC2086 # CREATE may be several flags.
    [ -z "$started" ] || launch/tpu_vm.sh $words || return
  done
  launch/tpu_vm.sh run "$@"
}

slice_state() {  # Prints ACTIVE, ...; nothing if gcloud doesn't answer.
  local answer
  if answer=$("${queue[@]}" describe "$NAME" "${at[@]}" \
    --format='value(state.state)' 2>&1); then
    echo "$answer"
  elif [[ $answer == *NOT_FOUND* ]]; then
    echo NOT_FOUND
  fi
}

# Keys and values of the run on host 0.
show="systemctl show maskedlm --property=LoadState --property=ActiveState \
--property=SubState --property=ExecMainStatus"

next_step() {  # Prints the step that the run needs next; done, or nothing.
  local unit code
  case $(slice_state) in
    ACTIVE) ;;
    FAILED | SUSPEND*) echo delete; return ;;
    NOT_FOUND) echo create; return ;;
    *) return ;;  # In the queue.
  esac
  unit=$(gcloud compute tpus tpu-vm ssh "$NAME" "${at[@]}" --worker=0 \
    --command="$show" 2>/dev/null) || return 0
  code=${unit##*ExecMainStatus=}
  code=${code%%[!0-9]*}
  case $unit in
    *LoadState=not-found*) echo install ;;
    *SubState=exited*) echo "done" ;;
    *ActiveState=failed*)
      case $code in
        2 | 3) echo "exit $code" ;;
        *) echo run ;;
      esac
      ;;
  esac
}

case $step in
  create)
    only_flags "$step" "$@"
    need ACCELERATOR RUNTIME
    [[ $ACCELERATOR != tpu7x* ]] ||
      fail "ACCELERATOR=$ACCELERATOR: TPU7x is for GKE: use launch/gke_xpk.sh"
    run "${queue[@]}" create "$NAME" --node-id="$NAME" "${at[@]}" \
      --accelerator-type="$ACCELERATOR" --runtime-version="$RUNTIME" "$@"
    ;;
  wait)
    nothing_else "$step" "$@"
    run bash -c "while state=\$(${queue[*]} describe $NAME ${at[*]} \
--format='value(state.state)'); echo \"\$state\"; [ \"\$state\" != ACTIVE ]; do \
case \$state in FAILED | SUSPEND*) exit 1 ;; esac; sleep 30; done"
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
    # leave ten minutes for saving, and a file handle for each corpus file. The
    # unit of a run that is done remains, so that `keep` sees it.
    on_all "systemctl show maskedlm --property=SubState | grep -q exited && \
sudo systemctl stop maskedlm; sudo systemctl reset-failed maskedlm 2>/dev/null; \
sudo systemd-run --unit=maskedlm --remain-after-exit --uid=\$USER \
--setenv=HOME=\$HOME \
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
    in_turn delete "$@"
    ;;
  keep)
    check_verb "$@"
    need ACCELERATOR RUNTIME BUCKET CORPUS
    if [ -n "${DRY_RUN:-}" ]; then
      launch/tpu_vm.sh status
      in_turn delete "$@"
      exit
    fi
    began=$SECONDS
    while :; do
      next=$(next_step)
      case $next in
        "") sleep 60 ;;
        "done") exit 0 ;;
        exit*) exit "${next#exit }" ;;
        *)
          back_off "$((SECONDS - began))" "next: $next" 30 1800
          began=$SECONDS
          if [ "$next" = run ]; then
            launch/tpu_vm.sh run "$@" || true
          else
            in_turn "$next" "$@" || true
          fi
          ;;
      esac
    done
    ;;
  status)
    nothing_else "$step" "$@"
    run "${queue[@]}" describe "$NAME" "${at[@]}" --format='value(state.state)'
    run gcloud compute tpus tpu-vm ssh "$NAME" "${at[@]}" --worker=0 \
      --command="$show"
    ;;
  delete)
    nothing_else "$step" "$@"
    run "${queue[@]}" delete "$NAME" "${at[@]}" --force --quiet
    ;;
  *)
    fail "unknown step '$step'; $0 --help lists the steps"
    ;;
esac
