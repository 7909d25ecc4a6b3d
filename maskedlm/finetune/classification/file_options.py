"""The options of files of texts or pairs with a label: columns and layouts."""

import dataclasses

from maskedlm.core.errors import ConfigError
from maskedlm.core.options import copy_option
from maskedlm.data.labelled.formats import glue, texts
from maskedlm.data.labelled.formats.texts import FileLayout
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.contract import task_option


@dataclasses.dataclass(frozen=True)
class FileOptions:
  """The columns of the files, and which metrics count."""

  layout: str = task_option(
    "columns",
    "columns; texts: columns, and a pair if there is a second text (text_b, "
    "text_pair, ...); or a task of GLUE: cola, sst2, mrpc, ... (glue.py).",
    choices=("columns", "texts", *glue.LAYOUTS),
  )
  text: str = task_option(
    "",
    "Column of the text; '' for the layout's, else text or sequence.",
    overridable=True,
  )
  text_b: str = task_option(
    "",
    "Column of the second text; '' for the layout's, else none.",
    overridable=True,
  )
  label: str = task_option(
    "",
    "Column of the label; '' for the layout's, else label.",
    overridable=True,
  )
  labels: tuple[str, ...] = task_option(
    (),
    "All classes, if a file has others or one is named - or -1, which mean no "
    "gold label otherwise; () for those of the training set.",
  )
  header: tuple[str, ...] = copy_option(Shared, "header")
  language: str = copy_option(Shared, "language")
  regression: bool = task_option(
    False, "The label is a number, to be predicted as such."
  )
  positive: str = task_option(
    "",
    "The label whose F1 is `f1`; '' for the second of two.",
    needs={
      "task.layout": lambda config: not layout_of(config.task).regression,
      "task.regression": False,
    },
  )
  metric: str = task_option(
    "", "Metric that chooses the best checkpoint; '' for the layout's."
  )


_COLUMNS = FileLayout(text=("text", "sequence"))
OWN_LAYOUTS = {
  "columns": _COLUMNS,
  "texts": _COLUMNS._replace(
    text=texts.FIRST_TEXTS, text_b=texts.SECOND_TEXTS, alone=True
  ),
}


def layout_of(options: FileOptions) -> FileLayout:
  """Returns the columns, labels and metric that the options specify.

  Raises:
    ConfigError: the layout has classes despite regression=True.
  """
  if options.regression and options.labels:
    raise ConfigError(
      "task.labels are classes; expected none with task.regression=True."
    )
  if options.layout in OWN_LAYOUTS:
    best = "pearson_spearman" if options.regression else "accuracy"
    layout = OWN_LAYOUTS[options.layout]._replace(best=best)
  else:
    layout = glue.LAYOUTS[options.layout]
    if options.regression and not layout.regression:
      raise ConfigError(
        f"task.regression=True: the labels of {options.layout} are classes; "
        "set task.layout=columns and name the columns to take them as numbers."
      )

  def chosen(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return (name,) if name else names

  return layout._replace(
    text=chosen(options.text, layout.text),
    text_b=chosen(options.text_b, layout.text_b),
    label=chosen(options.label, layout.label),
    labels=tuple(options.labels) or layout.labels,
    header=tuple(options.header) or layout.header,
    language=options.language,
    regression=options.regression or layout.regression,
    best=options.metric or layout.best,
  )
