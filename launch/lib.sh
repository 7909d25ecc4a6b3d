# shellcheck shell=bash
# Functions sourced by the scripts here.

fail() {  # MESSAGE: exits with an error, code 2 as of the command.
  echo "error: $1" >&2
  exit 2
}

usage() {  # Prints the comment at the top of the script.
  sed -nE '2,/^set/s/^#( |$)//p' "$0"
}

# parse WORD ...: sets `args` to the words without --dry-run, which may stand
# anywhere. With --help anywhere, prints the usage and exits. A misspelt
# --dry-run is an error: it must not run the commands.
parse() {
  local word
  args=()
  for word in "$@"; do
    case $word in
      --dry-run) export DRY_RUN=1 ;;
      --dry* | -n) fail "unknown option $word: a dry run is --dry-run" ;;
      -h | --help)
        usage
        exit 0
        ;;
      *) args+=("$word") ;;
    esac
  done
}

quote() {  # WORD ...: prints the words quoted for a shell.
  local word line=""
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./:=,@%+~-]* | "") word="'${word//\'/\'\\\'\'}'" ;;
    esac
    line+="$word "
  done
  printf '%s\n' "${line% }"
}

run() {  # WORD ...: prints a command as one would type it, and runs it.
  quote "$@"
  [ -n "${DRY_RUN:-}" ] || "$@"
}

wait_for() {  # PID: returns its exit code; signals don't end the wait.
  local code=0
  until wait "$1" && code=0 || code=$?; ! kill -0 "$1" 2>/dev/null; do
    :  # A signal ended the wait, not the process.
  done
  return "$code"
}

# may_succeed_later CODE: whether the same command can continue a run that ended
# so: 74 and 75 (docs/guides/pretrain/running.md), or killed by a signal. Not
# if the input is wrong (2), training diverged (3), or nobody reads (130, 141).
may_succeed_later() {
  case $1 in
    74 | 75) ;;
    130 | 141) return 1 ;;
    *) [ "$1" -gt 128 ] ;;
  esac
}

# back_off SECONDS WHY FIRST MOST: sleeps before another try: FIRST seconds, then
# twice as long each time, at most MOST. Fails after RETRIES tries in a row, of
# which none lasted an hour (SECONDS: the last one's duration).
tries=0
back_off() {
  local delay limit=${RETRIES:-20}
  if [ "$1" -ge 3600 ]; then tries=0; fi
  if [ "$tries" -ge "$limit" ]; then
    echo "error: $2, after $tries tries; RETRIES=$limit is the limit" >&2
    return 1
  fi
  delay=$(($3 << (tries < 20 ? tries : 20)))
  if [ "$delay" -gt "$4" ]; then delay=$4; fi
  tries=$((tries + 1))
  echo "$2: try $tries of $limit in $delay s" >&2
  sleep "$delay" & wait $! || true  # So that a signal ends it.
}

need() {  # NAME ...: exits with an error if a variable is not set.
  local variable
  for variable in "$@"; do
    [ -n "${!variable:-}" ] || fail "$variable is not set; see $0 --help"
  done
}

nothing_else() {  # STEP WORD ...: exits with an error if there is a word.
  [ $# = 1 ] || fail "$1 takes no arguments, but '$2' is given"
}

only_flags() {  # STEP WORD ...: exits with an error if the first is no flag.
  case ${2:--} in
    -*) ;;
    *) fail "$1 takes flags alone, such as --spot, but '$2' is given" ;;
  esac
}

check_verb() {  # WORD ...: exits with an error if the first is no verb.
  local verbs
  verbs=$(sed -n 's/^  "\([a-z-]*\)": [("].*/\1/p' \
    "$(dirname "${BASH_SOURCE[0]}")/../maskedlm/cli/verbs.py")
  case $'\n'$verbs$'\n' in
    *$'\n'"${1:-}"$'\n'*) ;;
    *) fail "expected a verb of maskedlm, such as pretrain, not '${1:-}'" ;;
  esac
}
