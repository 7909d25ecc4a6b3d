"""Flags that belong together, and what they open.

Layers are counted the same way everywhere: 0 is the embeddings, 1 to N the
layers, -1 the last one; `last` and `all` (1 to N) are names for some of them.
"""

import dataclasses
import itertools
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maskedlm.cli import shared
from maskedlm.cli.flags import REQUIRED, STDIN, flag
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.core.measured import to_json
from maskedlm.inference.batch_tokens import BATCH_TOKENS
from maskedlm.runtime import console, output_options

SECONDS = 2.0  # Minimum time between two lines of progress.


def check_field(field: str, files: Sequence[str], form: str | None) -> None:
  """Raises ConfigError for --field if no file has JSON objects.

  `form` is the value of --format; None = the verb has no such flag.
  """
  from maskedlm.data.labelled import text_lines

  if field != "text" and not any(
    text_lines.has_fields(file, form or "") for file in files
  ):
    remedy = "" if form is None else ", or give --format=jsonl"
    raise ConfigError(
      f"--field={field} has no effect: {', '.join(files)} is not read as JSON "
      f"or a table; name it FILE.jsonl{remedy}, or leave out --field."
    )


@dataclasses.dataclass(frozen=True)
class Texts:
  """Files of texts."""

  input: tuple[str, ...] = shared.input_(
    "Files with a text, or a JSON object, on each line, or tables with a "
    "header line (.csv, .tsv, .parquet)"
  )
  format: str = shared.text_format("text", "minimal_pairs")
  field: str = shared.field()

  def check(self) -> None:
    check_field(self.field, self.input, self.format)

  def read(self, seen: Counter) -> Iterator:
    """Yields the texts; adds their bytes and number to `seen`."""
    from maskedlm.data.labelled import text_lines

    return text_lines.read_texts(
      self.input, form=self.format, field=self.field, seen=seen
    )

  def progress(self, seen: Counter) -> Callable[[int], None]:
    """Returns make_progress() for the files."""
    from maskedlm.data.labelled import text_lines

    return make_progress(text_lines.total_bytes(self.input), seen)


def read_documents(
  source: str,
  field: str | None,
  report: Counter,
  *,
  options: tuple[str, str] = ("--data", "--field"),
) -> Iterator[list[str]]:
  """Returns the documents of a text, each a list of lines; adds to `report`.

  Args:
    source: files, - for stdin, or a source as in corpus.source.
    field: the field that holds the text; None = "text", if there are fields.
    report: see reader.read_documents.
    options: the names of the flags of source and field.

  Raises:
    ConfigError: a field is given, but the source has none.
  """
  from maskedlm.data.labelled import text_lines
  from maskedlm.data.repair import repair
  from maskedlm.data.sources import reader

  kind = source.partition(":")[0]
  if field is not None and kind not in reader.FIELD_TYPES:
    raise ConfigError(
      f"{options[1]}={field}: {options[0]}={source} has no fields; expected "
      "jsonl:..., parquet:... or tfds:...; leave it out."
    )

  def read() -> Iterator[list[str]]:
    if source == STDIN:
      lines = (repair(line) for _, line in text_lines.read_lines(source))
      groups = itertools.groupby(lines, key=lambda line: bool(line.strip()))
      yield from (list(document) for has_text, document in groups if has_text)
      return
    place = source if kind in reader.SOURCE_TYPES else f"text:{source}"
    try:
      yield from reader.read_documents(
        place, text_field=field or "text", report=report
      )
    except CorpusError as error:  # It names the options of pretraining.
      message = str(error).replace("corpus.source", options[0])
      message = message.replace("corpus.text_field", options[1])
      raise CorpusError(message) from error

  return read()


@dataclasses.dataclass(frozen=True)
class Encoder:
  """A checkpoint whose vectors are read."""

  checkpoint: str = shared.checkpoint()
  batch_tokens: int | None = flag(
    None,
    "Tokens, padding included, that the encoder reads at once; default: 1,024 "
    "on a CPU, 4,096 elsewhere.",
    low=1,
  )

  def open(self, *, length: int | None = None):
    """Returns the TextEncoder, with the compile cache enabled."""
    return open_encoder(
      self.checkpoint,
      length=length or 0,
      batch_tokens=self.batch_tokens or BATCH_TOKENS,
    )


def open_encoder(checkpoint: str, **more):
  """Returns a TextEncoder, with the compile cache enabled."""
  from maskedlm.inference.vectors import vectors
  from maskedlm.runtime import startup

  startup.enable_compile_cache()
  return vectors.open_text_encoder(checkpoint, **more)


@dataclasses.dataclass(frozen=True)
class Layers:
  """Which layers' vectors are read."""

  layers: str = shared.layers()
  combine: str = shared.combine()

  def check(self) -> None:
    """Checks the values as far as they can be without an encoder."""
    check_layers(self.layers, self.combine)

  def options(self, model, **more):
    """Returns the VectorOptions for an encoder."""
    from maskedlm.inference.vectors import vectors

    return vectors.VectorOptions(
      layers=parse_layers(self.layers, model.cfg.num_layers),
      combine=self.combine,
      **more,
    )


def check_layers(layers: str, combine: str, default: str = "mean") -> None:
  """Checks both values, and prints if there is only one layer to combine.

  Raises:
    ConfigError: only the Python interface accepts the value.
  """
  if combine == "stack":
    raise ConfigError(
      "--combine=stack is for Python; expected mean, sum or concat."
    )
  if layers and len(parse_layers(layers)) == 1 and combine != default:
    console.log(
      f"--combine={combine} has no effect with --layers={layers}, which is one "
      "layer"
    )


def parse_layers(text: str, num_layers: int | None = None) -> tuple[int, ...]:
  """Parses --layers: "last", "all" or numbers such as "-1,-2".

  Args:
    num_layers: the encoder's number of layers; None = not known yet, to check
      the value only ("all" is then empty).

  Raises:
    ConfigError: the value has another form.
  """
  if text == "last":
    return (-1,)
  if text == "all":
    return tuple(range(1, (num_layers or 0) + 1))
  if not re.fullmatch(r"-?\d+(,-?\d+)*", text):
    raise ConfigError(
      f"--layers={text!r}: expected last, all, or numbers such as -1,-2,-3,-4."
    )
  return tuple(map(int, text.split(",")))


def print_report(verb: Any, value: Any, lines: Sequence[str]) -> None:
  """Writes a value to the verb's --out; prints it with --json, else `lines`."""
  text = to_json(value, indent=2)
  if verb.out:
    output_options.write_text(verb.out, text + "\n", option="--out")
  print(text if verb.json else "\n".join(lines))


def make_progress(
  size: int, seen: Counter, what: str = "vector"
) -> Callable[[int], None]:
  """Returns a function of the number made that shows progress every SECONDS.

  Args:
    size: bytes of the input; 0 = unknown.
    seen: numbers of "bytes" and "texts" read so far.
    what: what is made of the texts.
  """
  start = shown = time.perf_counter()

  def show(count: int) -> None:
    nonlocal shown
    now = time.perf_counter()
    if now - shown < SECONDS:
      return
    shown = now
    rate = seen["texts"] / (now - start)
    line = (
      f"{counted(seen['texts'], 'text')} | {counted(count, what)} | "
      f"{rate:,.0f} texts/s"
    )
    if size and seen["bytes"]:
      share = seen["bytes"] / size
      left = console.format_seconds((now - start) * (1 / share - 1))
      bar = ("#" * round(20 * min(share, 1.0))).ljust(20, ".")
      line = f"[{bar}] {share:.0%} | ETA {left} | {line}"
    console.progress(line)

  return show


def show_progress(done: int, count: int) -> None:
  """Shows how far a part of the work is, if stderr is a terminal."""
  if console.is_terminal(sys.stderr):
    console.progress(f"{done:,} of {count:,} done")


def check_task_options(tokens: Sequence[str], rest: str) -> None:
  """Raises ConfigError, which says `rest`, unless --config.task.NAME=VALUE."""
  for token in tokens:
    if not re.match(r"--config\.task\.\w+=", token):
      raise ConfigError(
        f"{token}: expected --config.task.NAME=VALUE, an option that says how "
        f"the file is read{rest}"
      )


@dataclasses.dataclass(frozen=True)
class FineTuned:
  """A fine-tuned checkpoint, or several, and how it reads examples."""

  checkpoint: str = flag(
    REQUIRED,
    "A workdir, or one of its checkpoints; several fine-tuned ones, with "
    "commas between them, are an ensemble: the mean of their probabilities.",
  )
  batch_size: int = flag(32, "Examples at a time.", low=1)
  length: int | None = shared.length()
  config: tuple[str, ...] = flag(
    (),
    "How the file is read, if its layout differs from the training data's "
    "(task.tag_column, task.label, ...), or task.threshold, if the task has "
    "one.",
    metavar="--config.task.NAME=VALUE",
    prefix="--config",
  )

  def check(self) -> None:
    check_task_options(
      self.config, ", or a threshold; the checkpoint sets all others."
    )

  @property
  def paths(self) -> list[str]:
    """The checkpoints."""
    from maskedlm.inference import ensemble

    return ensemble.split_paths(self.checkpoint)

  def open(self):
    """Returns the model, with the compile cache enabled."""
    from maskedlm.inference import ensemble
    from maskedlm.runtime import startup

    startup.enable_compile_cache()
    return ensemble.open_model(self.paths, self.config, length=self.length or 0)


@dataclasses.dataclass(frozen=True)
class Senses:
  """Sense embeddings, and how vectors are compared with them."""

  senses: str = flag(
    REQUIRED,
    "Sense embeddings, written by `word-senses train`.",
    metavar="FILE.npz",
    reads=True,
  )
  standardise: str | None = shared.standardise(
    "Compare standardised vectors, by the mean and deviation that `embed "
    "--unit=word --fit` stored for the same layers and --combine."
  )

  def open(self, model) -> tuple:
    """Returns (sense embeddings, vector options, standardiser or None).

    Raises:
      ConfigError: they are not of the model's vectors.
    """
    from maskedlm.inference.vectors.standardise import open_word_standardiser
    from maskedlm.inference.word_senses import senses

    learned = senses.load_senses(self.senses)
    senses.check_encoder(learned, model, path=self.senses)
    layers, combine = tuple(learned.about["layers"]), learned.about["combine"]
    options = senses.word_vector_options(model.cfg, layers, combine)
    fitted = open_word_standardiser(self.standardise, model, options)
    return learned, options, fitted
