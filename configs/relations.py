"""Relations between two entities of a sentence: SemEval-2010 task 8.

Hendrickx et al. 2010, https://aclanthology.org/S10-1006; entity markers as in
Baldini Soares et al. 2019, https://arxiv.org/abs/1906.03158; batch size,
learning rate and epochs as in Wu & He 2019, https://arxiv.org/abs/1905.08284.

  maskedlm finetune relations --config=configs/relations.py \\
    --config.init_from=runs/bert

A tenth of the training file is held out. To score the task's test file too:
--config.data.also_score="('TEST_FILE_FULL.TXT',)".
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("relations")
  config.name = "relations"
  folder = f"{base.data_dir()}/relation/semeval2010_task8"
  config.data.train = f"{folder}/TRAIN_FILE.TXT"
  config.data.length = 128
  config.data.batch_size = 16
  config.optimizer.learning_rate = 2e-5
  config.train.epochs = 5
  return config
