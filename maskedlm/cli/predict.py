"""`maskedlm predict`: labels raw text with a fine-tuned checkpoint."""

import dataclasses
import pathlib
from collections.abc import Iterator, Sequence

from maskedlm.cli import groups, shared
from maskedlm.cli.flags import STDIN, flag
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_files, output_options

CHUNK = 256  # Lines to read at a time.


@dataclasses.dataclass(frozen=True)
class Predict:
  """Labels texts, or JSON objects, one on each line; the tutorials in
  docs/guides/finetune/overview.md show what a line holds.
  """

  ONE_OF = ("input", "data", "text")

  tuned: groups.FineTuned
  input: str = flag(
    STDIN, "A file of lines; - or none = stdin.", metavar="FILE", reads=True
  )
  data: tuple[str, ...] = shared.data(
    (),
    "Instead of --input: files in the training data's format.",
  )
  export: str | None = flag(
    None,
    "With --data: writes the task's official files (GLUE, SQuAD, ...).",
    metavar="DIR",
  )
  json: bool = shared.json("Print a JSON line for each text.")
  text: tuple[str, ...] = shared.text("Texts, instead of --input.")

  def check(self) -> None:
    """Checks --export."""
    if not self.export:
      return
    if not self.data:
      raise ConfigError("--export needs a whole file: give it as --data.")
    output_options.check_folder(self.export, option="--export")

  def run(self) -> None:
    """Runs the verb."""
    from maskedlm.finetune import predict

    model = self.tuned.open()
    if self.export and not model.task.export_predictions:
      raise ConfigError(
        f"--export: the task {model.task.name} has no official format; use "
        "--json."
      )
    made, cut = [], []
    for lines, examples in self._examples(model):
      predictions = predict.predict(
        model, examples, batch_size=self.tuned.batch_size, cut=cut
      )
      made += predictions if self.export else []
      for line, prediction in zip(lines, predictions, strict=True):
        if self.json:
          where = {"line": line} if line else {}
          console.print_json({**where, **prediction})
        elif not self.export:
          print(model.task.format_prediction(prediction), flush=True)
    predict.log_cut(model, cut, option="--length={}")
    if self.export:
      self._export(model.task.export_predictions(made))

  def _export(self, files) -> None:
    folder = pathlib.Path(self.export)
    with (
      output_options.named_errors(folder, option="--export"),
      output_files.folder(folder),
    ):
      for name, text in files.items():
        output_files.write_text(folder / name, text)
        print(folder / name)

  def _examples(self, model) -> Iterator[tuple[Sequence[int], Sequence]]:
    """Yields (line numbers, examples), a few at a time; 0 = no number."""
    from maskedlm.core.errors import DataError
    from maskedlm.data.labelled import text_lines
    from maskedlm.finetune import data_files

    if self.data:
      examples = data_files.read_examples(model.task, ",".join(self.data))
      yield [0] * len(examples), examples
      return

    def parse(number: int, line: str):
      try:
        return model.task.parse_line(line)
      except DataError as error:
        if not number:  # From the command line.
          raise
        name = "stdin" if self.input == STDIN else self.input
        raise DataError(f"{name}:{number}: {error}") from None

    parsed = (
      (number, parse(number, line))
      for number, line in text_lines.given_texts(self.text, self.input)
    )
    for some in text_lines.request_groups(
      parsed, CHUNK, self.text, [self.input]
    ):
      yield tuple(zip(*some, strict=True))
