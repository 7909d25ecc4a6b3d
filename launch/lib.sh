# shellcheck shell=bash
# What the scripts here share; sourced by them. `run COMMAND ...` prints a
# command, as one could type it, and runs it unless DRY_RUN is set.

quote() {  # WORD ...: as a shell would read them again.
  local word line=""
  for word in "$@"; do
    case $word in
      *[!A-Za-z0-9_./:=,@%+~-]* | "") word="'${word//\'/\'\\\'\'}'" ;;
    esac
    line+="$word "
  done
  printf '%s\n' "${line% }"
}

run() {
  quote "$@"
  [ -n "${DRY_RUN:-}" ] || "$@"
}

need() {  # NAME ...: variables that must be set.
  local variable
  for variable in "$@"; do
    if [ -z "${!variable:-}" ]; then
      echo "error: $variable is not set; the head of $0 says what it is" >&2
      exit 2
    fi
  done
}
