"""SQuAD and TriviaQA: answers a question with a span of a text, or with none.

SQuAD (Rajpurkar et al. 2016, https://arxiv.org/abs/1606.05250, v1, and 2018,
https://arxiv.org/abs/1806.03822, v2) is fine-tuned as BERT was (Devlin et al.
2019, https://arxiv.org/abs/1810.04805, sections 4.2 and 4.3; lengths as in
google-research/bert, run_squad.py).

  maskedlm finetune question_answering --config=configs/squad.py:v1 \\
    --config.init_from=runs/bert

triviaqa (Joshi et al. 2017, https://arxiv.org/abs/1705.03551; MRQA's copy) may
come first, as in the BERT paper's table 2. Its head is taken over:

  maskedlm finetune question_answering --config=configs/squad.py:triviaqa \\
    --config.init_from=runs/bert --workdir=runs/triviaqa
  maskedlm finetune question_answering --config=configs/squad.py:v1 \\
    --config.init_from=runs/triviaqa

Files: MASKEDLM_DATA/squad/{train,dev}-{v1.1,v2.0}.json, and
MASKEDLM_DATA/triviaqa/{train,dev}/TriviaQA-web.jsonl.gz, as in MRQA. Without a
development set, the questions on a tenth of the texts are held out.
"""

import pathlib

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base

# Version -> folder, its files, batch size and epochs: the BERT paper's for
# SQuAD; it doesn't give TriviaQA's.
VERSIONS = {
  "v1": ("squad", "{}-v1.1.json", 32, 3),
  "v2": ("squad", "{}-v2.0.json", 48, 2),
  "triviaqa": ("triviaqa", "{}/TriviaQA-web.jsonl.gz", 32, 2),
}


def get_config(version="v1"):
  check_name("configs/squad.py:VERSION", version, VERSIONS)
  folder, file, batch_size, epochs = VERSIONS[version]
  config = base.default("question_answering")
  config.name = f"squad_{version}" if folder == "squad" else version
  config.task.allow_impossible = version == "v2"
  folder = pathlib.Path(base.data_dir()) / folder
  config.data.train = str(folder / file.format("train"))
  dev = folder / file.format("dev")
  config.data.dev = str(dev) if dev.is_file() else ""
  config.data.length = 384
  config.data.batch_size = batch_size
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = epochs
  return config
