"""Completion of `maskedlm ...` in a shell, made from the verbs' flags.

eval "$(maskedlm --print-completion bash)"  # In ~/.bashrc; or zsh.
"""

from collections.abc import Iterable

from maskedlm.cli import flags, verbs
from maskedlm.core.errors import check_name

_SCRIPT = """\
_maskedlm() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" words=""
  local before="${{COMP_WORDS[COMP_CWORD-1]}}"
  if [ "$cur" = "=" ]; then
    cur=""
  elif [ "$before" = "=" ]; then
    before="${{COMP_WORDS[COMP_CWORD-2]}}"
  fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{verbs}"
  else
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}} $before" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -o bashdefault -F _maskedlm maskedlm
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def script(shell: str) -> str:
  """Returns the script that completes verbs, flags and their choices.

  Where it knows no word, the shell completes names of files.

  Raises:
    ConfigError: the shell is neither bash nor zsh.
  """
  check_name("--print-completion", shell, ("bash", "zsh"))
  cases = []
  for called in verbs.each():
    verb_flags = list(flags.flags_of(verbs.load(called)))
    first, second, *_ = *called.split(), "*"
    cases += [
      _case(first, second, flag.spelling, flag.about["choices"])
      for flag in verb_flags
      if flag.about["choices"]
    ]
    names = [f.spelling for f in verb_flags if f.spelling.startswith("--")]
    cases.append(_case(first, second, "*", [*names, "--help"]))
  cases += [
    _case(name, "*", "*", subverbs) for name, subverbs in verbs.GROUPS.items()
  ]
  body = _SCRIPT.format(verbs=" ".join(verbs.VERBS), cases="\n".join(cases))
  return (_ZSH if shell == "zsh" else "") + body


def _case(first: str, second: str, before: str, words: Iterable[str]) -> str:
  return f'      {first}\\ {second}\\ {before}) words="{" ".join(words)}";;'
