#!/usr/bin/env bash
# Runs maskedlm on a TPU slice of a GKE cluster, with xpk (`pip install xpk`; it
# needs gcloud, kubectl and kueuectl:
# https://github.com/AI-Hypercomputer/xpk).
#
#   CLUSTER=... ZONE=... PROJECT=... launch/gke_xpk.sh STEP ... [--dry-run]
#
#   cluster [xpk flags]   create it: TPU_TYPE=v5litepod-256 ... cluster --spot
#   storage               attach BUCKET as /bucket
#   image                 build and push IMAGE=REGION-docker.pkg.dev/P/R/maskedlm
#   run pretrain ...      run `maskedlm pretrain ...` as the workload NAME; it is
#                         restarted, at most 50 times, if a host or storage fails
#   status                list workloads and what they wait for
#   logs                  follow the log of its first host
#   stop                  delete the workload, which saves first
#   delete                delete the cluster, which then costs nothing
set -euo pipefail
cd "$(dirname "$0")/.."
. launch/lib.sh
parse "$@"
set -- ${args[@]+"${args[@]}"}
[ $# != 0 ] || { usage; exit 2; }
step=$1
shift
need CLUSTER ZONE PROJECT
at=("--cluster=$CLUSTER" "--zone=$ZONE" "--project=$PROJECT")

case $step in
  cluster)
    only_flags "$step" "$@"
    need TPU_TYPE
    run xpk cluster create "${at[@]}" --tpu-type="$TPU_TYPE" --num-slices=1 \
      --enable-workload-identity --enable-gcsfuse-csi-driver "$@"
    ;;
  storage)
    nothing_else "$step" "$@"
    need BUCKET
    run xpk storage attach maskedlm "${at[@]}" --type=gcsfuse \
      --bucket="$BUCKET" --size=1 --mount-point=/bucket --readonly=false \
      --auto-mount=false \
      --mount-options=implicit-dirs,uid=1000,gid=1000,metadata-cache:ttl-secs:0,metadata-cache:negative-ttl-secs:0
    ;;
  image)
    nothing_else "$step" "$@"
    need IMAGE
    run docker build --target=tpu --tag="$IMAGE" --file=launch/Dockerfile .
    run docker push "$IMAGE"
    ;;
  run)
    check_verb "$@"
    need NAME TPU_TYPE IMAGE
    run xpk workload create "${at[@]}" --workload="$NAME" \
      --tpu-type="$TPU_TYPE" --num-slices=1 --docker-image="$IMAGE" \
      --storage=maskedlm --max-restarts=50 --restart-on-exit-codes=74,75 \
      --termination-grace-period-seconds=120 \
      --command="maskedlm $(quote "$@")"
    ;;
  status)
    nothing_else "$step" "$@"
    run xpk workload list "${at[@]}"
    ;;
  logs)
    nothing_else "$step" "$@"
    need NAME
    run kubectl logs --follow --container=jax-tpu --selector="\
xpk.google.com/workload=$NAME,batch.kubernetes.io/job-completion-index=0"
    ;;
  stop)
    nothing_else "$step" "$@"
    need NAME
    run xpk workload delete "${at[@]}" --workload="$NAME"
    ;;
  delete)
    nothing_else "$step" "$@"
    run xpk cluster delete "${at[@]}"
    ;;
  *)
    fail "unknown step '$step'; $0 --help lists the steps"
    ;;
esac
