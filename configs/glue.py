"""GLUE: one of its nine tasks, or all of them in turn.

Wang et al. 2018, https://arxiv.org/abs/1804.07461; fine-tuned as BERT was
(Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 4.1).

  maskedlm finetune classification --config=configs/glue.py:mrpc \\
    --config.init_from=runs/bert

The variants are cola, sst2, mrpc (the default), stsb, qqp, mnli, qnli, rte,
wnli, and all: it runs the tasks whose folders exist and prints a table of them
with their average and the names of the missing ones. Files:
MASKEDLM_DATA/glue/{CoLA,SST-2,...} as in the official archive.
The paper tried 5e-5, 4e-5, 3e-5 and 2e-5 for each task:
--config.sweep.learning_rate=5e-5,4e-5,3e-5,2e-5
"""

import pathlib

from maskedlm.core.errors import check_name
from maskedlm.data.labelled.formats import glue
from maskedlm.finetune import config as base

# Task -> learning rate, epochs. The rates lie in the range that the BERT paper
# searched; batches of 32 and 3 epochs are the paper's unless noted.
RECIPES = {
  "cola": (5e-5, 10),  # MosaicBERT (arXiv:2312.17482): small, needs longer.
  "sst2": (3e-5, 3),  # MosaicBERT.
  "mrpc": (2e-5, 3),  # The README of google-research/bert.
  "stsb": (3e-5, 10),  # MosaicBERT; ELECTRA (arXiv:2003.10555): 10 epochs too.
  "qqp": (3e-5, 3),  # The rate is MosaicBERT's.
  "mnli": (5e-5, 3),  # MosaicBERT.
  "qnli": (2e-5, 3),
  "rte": (2e-5, 10),  # RoBERTa (arXiv:1907.11692), ELECTRA.
  "wnli": (2e-5, 3),  # Not from a paper: BERT's left it out.
}


def get_config(task="mrpc"):
  config = base.default("classification")
  if task == "all":
    config.name = "glue"
    folder = pathlib.Path(base.data_dir()) / "glue"
    tasks = [t for t in glue.TASKS if (folder / glue.FOLDERS[t]).is_dir()]
    config.suite = tuple(tasks) or glue.TASKS
    config.suite_without = tuple(t for t in glue.TASKS if t not in config.suite)
    return config
  check_name("configs/glue.py:TASK", task, (*RECIPES, "all"))
  config.name = f"glue_{task}"
  config.task.layout = task
  folder = pathlib.Path(base.data_dir()) / "glue" / glue.FOLDERS[task]
  # train_from_dev.tsv is a part of the development set
  # (docs/guides/finetune/overview.md).
  config.data.train = _first(folder, "train.tsv", "train_from_dev.tsv") or str(
    folder / "train.tsv"
  )
  # Without a development set, a tenth of the training set is held out.
  config.data.dev = _first(folder, "dev.tsv", "dev_matched.tsv")
  if mismatched := _first(folder, "dev_mismatched.tsv"):
    config.data.also_score = (mismatched,)
  config.data.length = 128
  config.data.batch_size = 32
  config.optimizer.learning_rate, config.train.epochs = RECIPES[task]
  return config


def _first(folder, *names):
  """Returns the path of the first of these files that exists, or ""."""
  paths = [folder / name for name in names if (folder / name).is_file()]
  return str(paths[0]) if paths else ""
