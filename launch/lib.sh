# shellcheck shell=bash
# Functions sourced by the scripts here. `run COMMAND ...` prints a command as
# one would type it, and runs it unless DRY_RUN is set.

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

run() {
  quote "$@"
  [ -n "${DRY_RUN:-}" ] || "$@"
}

need() {  # NAME ...: exits with an error if a variable is not set.
  local variable
  for variable in "$@"; do
    if [ -z "${!variable:-}" ]; then
      echo "error: $variable is not set; see the comment at the top of $0" >&2
      exit 2
    fi
  done
}
