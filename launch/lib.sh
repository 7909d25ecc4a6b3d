# shellcheck shell=bash
# Functions sourced by the scripts here, in the root of the checkout.

fail() {  # MESSAGE: exits with an error, code 2 as of the command.
  echo "error: $1" >&2
  exit 2
}

usage() {  # Prints the comment at the top of the script.
  sed -nE '2,/^set/s/^#( |$)//p' "$0"
}

# parse WORD ...: sets `args` to the words without --dry-run, which may stand
# anywhere. With --help anywhere, prints the usage and exits. A misspelt --dry-run is an error: it must not run the commands.
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
  verbs=$(sed -n 's/^  "\([a-z-]*\)": (.*/\1/p' maskedlm/cli/main.py)
  case $'\n'$verbs$'\n' in
    *$'\n'"${1:-}"$'\n'*) ;;
    *) fail "expected a verb of maskedlm, such as pretrain, not '${1:-}'" ;;
  esac
}
