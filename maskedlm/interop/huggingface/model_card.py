"""Writes the README.md of an exported model: known facts only."""

import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax

from maskedlm.core.counts import counted
from maskedlm.interop.export_source import ExportSource
from maskedlm.runtime import hub_names, output_files

# Suffix of a class name -> pipeline tag.
PIPELINES = {
  "ForPreTraining": "fill-mask",
  "ForMaskedLM": "fill-mask",
  "ForSequenceClassification": "text-classification",
  "ForTokenClassification": "token-classification",
  "ForQuestionAnswering": "question-answering",
  "ForMultipleChoice": "multiple-choice",
}
# The options of EncoderConfig that the card lists.
SIZES = (
  "vocab_size",
  "num_layers",
  "width",
  "num_heads",
  "mlp_width",
  "max_positions",
  "position",
  "activation",
)

# Options of config.data that the card lists.
_DATA = {
  "train": "labelled data",
  "dev": "development set",
  "batch_size": "rows of a step",
  "length": "tokens of a row",
}
# Folders of this machine, which an uploaded card must not disclose.
_FOLDERS = re.compile(r"(^|[:,])[~./](?!/)[^,]*/")

_UNIGRAM = (
  "The tokens in `transformers` are those of training, but for halfwidth "
  "Katakana with a voicing mark, and a mark or joiner (U+200D) after a space."
)


def format_model_card(
  opened: ExportSource,
  class_name: str,
  own_use: Sequence[str] = (),
  *,
  path: str = "",
) -> str:
  """Returns the card of a model, which transformers loads as class_name.

  `own_use` are the lines of Python that use it, if not with transformers, from
  its path.
  """
  pipeline = next(
    (name for end, name in PIPELINES.items() if class_name.endswith(end)),
    "feature-extraction",
  )
  if class_name == "ElectraForPreTraining":  # Doesn't fill masks.
    pipeline = "feature-extraction"
  path = path or "PATH OF THIS DIRECTORY"
  library = "transformers"
  use: Sequence[str] = (
    f"from transformers import AutoTokenizer, {class_name}",
    "",
    f'path = "{path}"',
    f"model = {class_name}.from_pretrained(path)",
    "tokenizer = AutoTokenizer.from_pretrained(path)",
  )
  if "sentences" in opened.task:  # Makes text vectors.
    library, pipeline = "sentence-transformers", "sentence-similarity"
    prompts = opened.task["sentences"].get("prompts")
    use = (
      "from sentence_transformers import SentenceTransformer",
      "",
      f'model = SentenceTransformer("{path}")',
      *(_ENCODE_WITH if prompts else _ENCODE),
    )
  training = list(_training_facts(opened))
  named = [x for _, x in training if hub_names.is_name(str(x))]
  count = sum(x.size for x in jax.tree.leaves(opened.params))
  sizes = [(name, getattr(opened.cfg, name)) for name in SIZES]
  tokenizer = f"{opened.tokenizer.kind}, {opened.tokenizer.vocab_size:,} tokens"
  lines = [
    "---",
    f"library_name: {library}",
    f"pipeline_tag: {pipeline}",
    *(f"base_model: {hub_names.parse(name).model}" for name in named),
    "tags:",
    "- maskedlm",
    "---",
    "",
    f"# {class_name}, exported from maskedlm",
    "",
    "```python",
    *(own_use or use),
    "```",
    "",
    "## Architecture",
    "",
    *_table([("parameters", f"{count:,}"), *sizes, ("tokenizer", tokenizer)]),
    "",
    *([_UNIGRAM, ""] if opened.tokenizer.kind == "unigram" else []),
    "## Data and figures",
    "",
    *_table(training),
    "",
    "## Limits",
    "",
    *_limits(opened),
    "- Not stated here: license, intended use and biases. Please add them when "
    "publishing the model.",
    "",
  ]
  return "\n".join(lines)


_ENCODE = ('vectors = model.encode(["a text", "another"])',)
_ENCODE_WITH = (  # With prompts.
  'queries = model.encode_query(["a question"])',
  'passages = model.encode_document(["a text", "another"])',
)


def _limits(opened: ExportSource) -> Iterator[str]:
  length = opened.task.get("length", opened.cfg.max_positions)
  yield f"- It reads {length:,} tokens at once, special ones included."
  if opened.tokenizer.normalize("A") == "a":
    yield "- Capitals make no difference: the tokenizer lowercases."
  yield (
    "- The figures are of text like that of training, which maskedlm has not "
    "judged: the model may repeat what it says, and do worse on other text."
  )


def _training_facts(opened: ExportSource) -> Iterator[tuple[str, Any]]:
  meta = opened.meta
  config = meta.get("identity", {}).get("config", {})
  if "imported" in config:
    yield "imported from", config["imported"].get("directory", "")
    yield "original class", opened.task.get("objective", "")
    return
  if "retokenized" in config:
    old = pathlib.PurePath(config["retokenized"]["checkpoint"]).name
    yield "a new vocabulary for", f"{old}, not trained since"
    return
  steps = [meta["step"]]
  if members := config.get("averaged"):
    yield "the mean of", counted(len(members), "checkpoint")
    steps = [member["step"] for member in members]
    config = config.get("run", {})
  yield "objective", opened.task.get("objective", "")
  yield "steps", f"{max(steps):,}"
  for option, name in _DATA.items():
    if value := config.get("data", {}).get(option):
      yield name, _FOLDERS.sub(r"\1", str(value))
  corpus = config.get("corpus", {})
  if isinstance(corpus, Mapping) and corpus.get("source"):
    # The folder of a prepared corpus, or the name of its source.
    name_of_path = pathlib.PurePath(corpus.get("path") or "").name
    yield "corpus", name_of_path or _FOLDERS.sub(r"\1", corpus["source"])
  if config.get("init_from"):
    start = config["init_from"]
    named = hub_names.is_name(start)
    yield "fine-tuned from", start if named else pathlib.PurePath(start).name
  heldout = meta.get("heldout", {})
  result = output_files.read_result(opened.path)
  for name, value in heldout.items():
    yield f"held-out {name}", _number(value)
  if result.get("steps") == meta["step"]:
    if "mlm_loss" not in heldout and result.get("heldout_mlm_loss"):
      yield "held-out mlm_loss", _number(result["heldout_mlm_loss"])
    if "unigram_entropy" in result:
      entropy = _number(result["unigram_entropy"])
      yield "unigram entropy of the held-out text (nats)", entropy


def _number(value: Any) -> Any:
  return f"{value:.4g}" if isinstance(value, float) else value


def _table(rows) -> list[str]:
  return ["| | |", "|---|---|", *(f"| {n} | {x} |" for n, x in rows)]
