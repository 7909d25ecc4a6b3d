"""The table of verbs, which imports none, so that `maskedlm --help` is quick.

`fill-mask` is the class FillMask of fill_mask.py, `plot run` Run of plot.py.
"""

import importlib
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence

from maskedlm.core.errors import ConfigError, did_you_mean

VERBS = {
  "pretrain": "pretrain a masked language model on text",
  "prepare": "turn text into a corpus on disk, or verify one",
  "tokenizer": "train tokenizers, show rows, compare, replace a model's",
  "inspect": "show what a config will train, before it does",
  "plan": "predict a run's memory and speed on TPUs or GPUs",
  "status": "show how far runs are, and their checkpoints",
  "average": "average the weights of several checkpoints",
  "finetune": "fine-tune an encoder on labelled data",
  "mine": "find hard negatives for retrieval and rerankers",
  "evaluate": "measure a model on text or on labelled data",
  "predict": "label raw text with a fine-tuned checkpoint",
  "embed": "write vectors of tokens, words or sentences",
  "vectors": "search vectors, compare words, measure isotropy",
  "word-senses": "word senses: train, evaluate, predict",
  "static": "write word vectors: by word2vec, or of a model",
  "plot": "draw instances, attention, isotropy, training curves",
  "fill-mask": "fill the masks of a text with a checkpoint",
  "score": "how probable texts are, and whether one follows another",
  "demo": "serve a page that shows what a model does",
  "import": "turn a Hugging Face model, or word vectors, into a workdir",
  "export": "write a checkpoint for transformers, or for serving",
}
# Those that have verbs of their own.
GROUPS = {
  "tokenizer": {
    "train": "train a tokenizer on a config's text",
    "show": "show the row of a text, or of a pair",
    "report": "measure how well vocabularies fit languages",
    "replace": "give a model another vocabulary",
  },
  "vectors": {
    "search": "find the nearest sentences to a query",
    "similarity": "compare two words in context; score WiC",
    "isotropy": "measure how alike a model's vectors are, by layer",
  },
  "word-senses": {
    "train": "train sense embeddings",
    "evaluate": "score them on labelled words",
    "predict": "predict the senses of words in a text",
  },
  "static": {
    "train": "train word2vec's CBOW on raw text",
    "average": "average a model's vectors of each word",
  },
  "plot": {
    "instances": "a word's instances, by sense or language",
    "vectors": "the vectors of texts, by label",
    "senses": "a word among its sense embeddings",
    "row": "a text with its label, tags, spans or vectors above",
    "attention": "which tokens attend to which, by head",
    "masks": "the probability of the words that a text hides",
    "isotropy": "how alike vectors are, by layer",
    "run": "the training curves of one or several workdirs",
  },
}
# What verbs were called in earlier versions -> what stands for it.
OLD_NAMES = {
  "wsd": ("word-senses",),
  "runs": ("status", "--checkpoints"),
  "transfer": ("evaluate",),
  "search": ("vectors", "search"),
  "similarity": ("vectors", "similarity"),
  "isotropy": ("vectors", "isotropy"),
  "retokenize": ("tokenizer", "replace"),
}


def each() -> Iterator[str]:
  """Yields how each verb is called: "embed", "plot run"."""
  for name in VERBS:
    yield from (f"{name} {verb}".strip() for verb in GROUPS.get(name, [""]))


def find(argv: Sequence[str]) -> tuple[str, list[str]]:
  """Returns (how the verb or group is called, its arguments).

  Raises:
    ConfigError: there is no such verb.
  """
  argv = [*OLD_NAMES.get(argv[0], argv[:1]), *argv[1:]]
  # Before it had verbs of its own.
  if re.match(r"tokenizer --(config|out|try)\b", " ".join(argv[:2])):
    tries = any(token.partition("=")[0] == "--try" for token in argv)
    argv.insert(1, "show" if tries else "train")
  name, *argv = argv
  _check(name, VERBS, "")
  if name in GROUPS and argv and not argv[0].startswith("-"):
    subverb, *argv = argv
    _check(subverb, GROUPS[name], f"maskedlm {name}: ")
    name = f"{name} {subverb}"
  return name, argv


def _check(name: str, known: Mapping[str, str], of: str) -> None:
  if name not in known:
    near = did_you_mean(name, known)
    raise ConfigError(f"{of}unknown verb {name!r}{near}; --help lists them.")


def load(called: str) -> type:
  """Imports and returns the class of a verb."""
  first, *_, last = called.split() * 2
  place = first.replace("-", "_") + "_" * keyword.iskeyword(first)
  module = importlib.import_module(f"maskedlm.cli.{place}")
  return getattr(module, "".join(map(str.capitalize, last.split("-"))))


def usage(called: str) -> str:
  """Returns the help of the program, "", or of a group of verbs."""
  verbs = GROUPS[called] if called else VERBS
  width = max(map(len, verbs)) + 2
  command = f"maskedlm {called}".strip()
  lines = [
    f"usage: {command} VERB [options]",
    "",
    *(f"  {name:<{width}}{about}" for name, about in verbs.items()),
    "",
    f"`{command} VERB --help` prints its options.",
  ]
  if not called:
    lines += [
      "`maskedlm --version` prints what a report of a bug needs,",
      "`maskedlm --print-completion bash` (or zsh) completes them in a shell.",
    ]
  return "\n".join(lines)
