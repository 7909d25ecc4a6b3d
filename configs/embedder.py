"""An embedder of your own: a vector for each text, to search, compare, cluster.

  pairs       a text and what answers or says it, as in configs/retrieval.py,
              but in batches of 1,024, of which the encoder reads 32 at a time
              (Gao et al. 2021, https://arxiv.org/abs/2101.06983); the default
  unlabelled  plain text, one a line: each finds itself among all others, by
              what is left of its words (Wang et al. 2021, TSDAE,
              https://arxiv.org/abs/2104.06979, deletes 0.6 of them, which are
              reconstructed there) under another dropout (Gao et al. 2021,
              SimCSE, https://arxiv.org/abs/2104.08821, by dropout alone:
              --config.task.delete=0)

  sparse      pairs again, but a text is weights of the words that it says or
              implies (SPLADE, Formal et al. 2021,
              https://arxiv.org/abs/2109.10086; the weights of FLOPS are those
              of sentence-transformers' example): for `maskedlm finetune splade`

  maskedlm finetune retrieval --config=configs/embedder.py:unlabelled \\
    --config.init_from=runs/bert --config.data.train=texts.txt

docs/results/finetuning.md has measurements.
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base

KINDS = ("pairs", "unlabelled", "sparse")


def get_config(kind="pairs"):
  check_name("configs/embedder.py:KIND", kind, KINDS)
  config = base.default("splade" if kind == "sparse" else "retrieval")
  config.name = f"embedder_{kind}"
  config.optimizer.learning_rate = 3e-5
  if kind == "unlabelled":
    config.data.train = f"{base.data_dir()}/text/en_novels.txt"
    config.data.length = 64
    config.data.batch_size = 128
    config.model.dropout = config.model.attention_dropout = 0.1
    config.task.header = ("text",)
    config.task.query = config.task.passage = "text"
    config.task.delete = 0.6
    config.train.epochs = 1
    return config
  config.data.train = f"{base.data_dir()}/squad/train-v1.1.json"
  config.data.length = 256
  config.data.batch_size = 64 if kind == "sparse" else 1024
  config.train.accumulate = 16 if kind == "sparse" else 32
  config.train.epochs = 3
  return config
