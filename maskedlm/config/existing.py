"""Fits config.tokenizer to a tokenizer or a corpus that exists already.

Its options describe how a vocabulary is trained. If one is given, by
tokenizer.path, init_from or corpus.path, they are those of the given one. An
option on the command line that contradicts it is an error; the values of a
config file yield to it.
"""

from collections.abc import Callable, Collection

from ml_collections import ConfigDict

from maskedlm.core import options
from maskedlm.core.errors import ConfigError
from maskedlm.data.corpus import integrity
from maskedlm.data.options import TokenizerOptions
from maskedlm.data.prepare.options import DEFAULTS, TOKENIZER_HASH
from maskedlm.data.prepare.vocabulary_sample import load_given
from maskedlm.data.sources import same_files
from maskedlm.runtime import buckets, console

Started = Callable[[], bool]

# Options that say what tokens mean, which a given vocabulary decides.
_OF_TOKENS = ("normalization", "byte_fallback")


def fit_to_tokenizer(
  config: ConfigDict,
  given: Collection[str],
  *,
  started: Started,
) -> None:
  """Sets kind, size, k and stride in config.tokenizer to those of its path.

  tokenizer.lowercase decides how a vocab.txt is read if it is given by the
  command line, or by the config file that gives the path. Options that have no
  effect are printed.

  Args:
    config: the config of pretraining, changed in place if it has tokenizer.path
      (which init_from sets).
    given: the options on the command line, such as "tokenizer.kind".
    started: returns whether the run is there already: options that contradict
      its tokenizer are then printed, since the same command must continue it.

  Raises:
    ConfigError: an option on the command line contradicts the tokenizer.
    CorpusError: the tokenizer can't be read, or contradicts
      tokenizer.lowercase.
  """
  section = config.tokenizer
  if not section.path:
    return
  names = ("init_from", "continue_from", "teacher")
  outside = "tokenizer.path" in given or any(config[n] for n in names)
  ignored = None  # A tokenizer.lowercase that has no effect.
  if outside and "tokenizer.lowercase" not in given:
    ignored, section.lowercase = section.lowercase, None
  tokenizer = load_given(section)
  if ignored == ("A" not in tokenizer.normalize("A")):
    ignored = None  # It agrees.
  wrong = [name for name in _OF_TOKENS if f"tokenizer.{name}" in given]
  if "tokenizer.kind" in given and section.kind != tokenizer.kind:
    wrong.insert(0, "kind")
  if wrong and not started():
    raise ConfigError(
      f"{_values(section, wrong)}: the vocabulary of tokenizer.path="
      f"{section.path} is a {tokenizer.kind} that is trained already; leave "
      f"out {'these options' if len(wrong) > 1 else 'this option'}, or "
      "tokenizer.path to train one."
    )
  size = "tokenizer.vocab_size" in given
  if size and section.vocab_size != tokenizer.vocab_size:
    wrong.append("vocab_size")
  shown = [_values(section, [name]) for name in wrong]
  if ignored is not None:
    shown.append(f"tokenizer.lowercase={ignored}")
  if shown:
    console.warn(
      f"{', '.join(shown)} without effect: {section.path} has a vocabulary of "
      f"{tokenizer.vocab_size:,} tokens"
    )
  section.kind, section.vocab_size = tokenizer.kind, tokenizer.vocab_size
  if tokenizer.kind == "kmers":
    section.k, section.stride = tokenizer.k, tokenizer.stride


def fit_to_corpus(
  config: ConfigDict,
  given: Collection[str],
  *,
  started: Started,
) -> None:
  """Sets config.tokenizer to the options that corpus.path was prepared with.

  Those on the command line are left; opening the corpus compares them. Values
  of the config file that are replaced are printed, and so are options of
  config.corpus on the command line, which describe how a corpus is prepared.

  Args:
    config: the config of pretraining, changed in place if it has corpus.path
      and no tokenizer.path.
    given, started: as for fit_to_tokenizer.
  """
  section, meta = config.tokenizer, _read_meta(config.corpus.path)
  if meta:
    _print_unused(config, given, meta["options"])
  if section.path or not meta:
    return
  if TOKENIZER_HASH in meta["options"]:
    if not buckets.is_address(config.corpus.path):
      folder = str(buckets.folder(config.corpus.path))
      integrity.check_files(folder, meta, under="tokenizer/")
    if "tokenizer.path" not in given:
      # The file, as an address need not list its folders.
      names = [n for n in meta["files"] if n.startswith("tokenizer/")]
      section.path = f"{config.corpus.path.rstrip('/')}/{names[0]}"
      given = [*given, "tokenizer.path"]
      fit_to_tokenizer(config, given, started=started)
    return
  usual = options.to_config(TokenizerOptions)
  replaced = []
  for name in usual:
    option = f"tokenizer.{name}"
    recorded = meta["options"].get(option, DEFAULTS.get(option))
    if recorded is None or option in given:
      continue
    if section[name] not in (recorded, usual[name]):
      replaced.append((name, section[name], recorded))
    section[name] = recorded
  if replaced:
    console.warn(
      ", ".join(f"tokenizer.{n}={old!r} is {x!r}" for n, old, x in replaced)
      + f": corpus.path={config.corpus.path} was prepared so"
    )


def _print_unused(config: ConfigDict, given, recorded: dict) -> None:
  """Prints the options on the command line that a corpus leaves unused."""
  path = config.corpus.path
  unused = [
    f"{name}={config.corpus[key]!r}"
    for name in given
    if (key := name.removeprefix("corpus.")) not in (name, "path", "cache_gb")
    and not same_files.is_same(name, config.corpus[key], recorded.get(name))
  ]
  if unused:
    console.warn(
      f"{', '.join(unused)} without effect: {path} is prepared already"
    )
  if "data.alpha" in given and "corpus.parts" not in recorded:
    console.warn(
      f"data.alpha={config.data.alpha} without effect: {path} has one part"
    )


def _read_meta(path: str) -> dict:
  """Returns meta.json of a corpus; {} if there is none.

  Raises:
    CorpusError, ConfigError, StorageError: it is there, but damaged.
  """
  if not path:
    return {}
  if buckets.is_address(path):
    try:
      file = buckets.local_copy(f"{buckets.normalize(path)}/meta.json")
      return integrity.read_meta(str(file.parent))
    except (OSError, ValueError):  # Copying the corpus says what is wrong.
      return {}
  folder = buckets.folder(path)
  return (
    integrity.read_meta(str(folder)) if integrity.is_complete(folder) else {}
  )


def _values(section: ConfigDict, names: Collection[str]) -> str:
  return ", ".join(f"tokenizer.{name}={section[name]!r}" for name in names)
