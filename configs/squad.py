"""SQuAD: answers a question with a span of a paragraph, or with none.

Rajpurkar et al. 2016, https://arxiv.org/abs/1606.05250 (v1) and 2018,
https://arxiv.org/abs/1806.03822 (v2); fine-tuned as BERT was (Devlin et al.
2019, https://arxiv.org/abs/1810.04805, sections 4.2 and 4.3; lengths as in
google-research/bert, run_squad.py).

  maskedlm finetune question_answering --config=configs/squad.py:v1 \\
    --config.init_from=runs/bert

Files: MASKEDLM_DATA/squad/{train,dev}-{v1.1,v2.0}.json. Without a development
set, the questions on a tenth of the paragraphs are held out.
"""

import pathlib

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base

# Version -> that of the files; batch size and epochs as in the BERT paper.
VERSIONS = {"v1": ("v1.1", 32, 3), "v2": ("v2.0", 48, 2)}


def get_config(version="v1"):
  check_name("configs/squad.py:VERSION", version, VERSIONS)
  file_version, batch_size, epochs = VERSIONS[version]
  config = base.default("question_answering")
  config.name = f"squad_{version}"
  config.task.allow_impossible = version == "v2"
  folder = pathlib.Path(base.data_dir()) / "squad"
  config.data.train = str(folder / f"train-{file_version}.json")
  dev = folder / f"dev-{file_version}.json"
  config.data.dev = str(dev) if dev.is_file() else ""
  config.data.length = 384
  config.data.batch_size = batch_size
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = epochs
  return config
