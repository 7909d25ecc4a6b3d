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
  input: str = shared.input_(
    "A file of lines, or a table with a header line (.csv, .tsv, .parquet)",
    STDIN,
  )
  data: tuple[str, ...] = shared.data(
    (), "Instead of --input: files in the training data's format."
  )
  export: str | None = flag(
    None,
    "With --data: writes the task's official files (GLUE, SQuAD, ...).",
    metavar="DIR",
  )
  json: bool = shared.json("Print a JSON line for each text.")
  text: tuple[str, ...] = shared.text("Texts, instead of --input.")

  def check(self) -> None:
    if not self.export:
      return
    if not self.data:
      raise ConfigError("--export needs a whole file: give it as --data.")
    output_options.check_folder(self.export, option="--export")

  def run(self) -> None:
    from maskedlm.finetune import predict

    model = self.tuned.open()
    if self.export and not model.task.export_predictions:
      raise ConfigError(
        f"--export: the task {model.task.name} has no official format; use "
        "--json."
      )
    all_predictions: list = []
    cut: list[int] = []
    for places, examples in self._examples(model):
      predictions = predict.predict(
        model, examples, batch_size=self.tuned.batch_size, cut=cut
      )
      all_predictions += predictions if self.export else []
      for place, prediction in zip(places, predictions, strict=True):
        if self.json:
          console.print_json({**place, **prediction})
        elif not self.export:
          print(model.task.format_prediction(prediction), flush=True)
    predict.log_cut(model, cut, option="--length={}")
    if self.export:
      files = model.task.export_predictions(all_predictions)
      self._export(pathlib.Path(self.export), files)

  def _export(self, folder: pathlib.Path, files) -> None:
    with (
      output_options.named_errors(folder, option="--export"),
      output_files.folder(folder),
    ):
      for name, text in files.items():
        output_files.write_text(folder / name, text)
        print(folder / name)

  def _examples(self, model) -> Iterator[tuple[Sequence[dict], Sequence]]:
    """Yields (their rows, for --json, examples), a few at a time."""
    from maskedlm.data.labelled import text_lines
    from maskedlm.finetune import data_files, predict

    if self.data:
      examples = data_files.read_examples(model.task, ",".join(self.data))
      yield [*map(predict.place_of, examples)], examples
      return

    parse = model.task.parse_line
    requests = text_lines.given_texts(self.text, self.input, parse)
    for group in text_lines.request_groups(
      requests, CHUNK, self.text, [self.input]
    ):
      yield [place for place, _ in group], [example for _, example in group]
