"""ELMo: two language models of LSTMs, one from each end of a row.

  small      2 layers, 128 wide and 256 cells in each direction: minutes on a
             laptop (the default)
  published  2 layers, 512 wide and 4,096 cells in each direction: 75.6 million
             parameters in the LSTMs, for GPUs or TPUs; not trained here

Peters et al. 2018, https://arxiv.org/abs/1802.05365, section 3.4. The tokens
differ from the paper's: subwords, with one table for embeddings and softmax in
place of a convolution over characters, and a norm on the embeddings. Rows are
pieces of documents, not sentences. The corpus is that of configs/quickstart.py.

  maskedlm pretrain --config=configs/elmo.py --workdir=runs/elmo
"""

from maskedlm.config import defaults as base
from maskedlm.core.errors import check_name

# The width is that of both directions together; cells are of either.
SIZES = {
  "small": {"width": 256, "mlp_width": 256, "max_positions": 512},
  "published": {"width": 1_024, "mlp_width": 4_096, "max_positions": 512},
}


def get_config(size="small"):
  check_name("configs/elmo.py:SIZE", size, SIZES)
  config = base.default("bilm")
  config.name = f"elmo_{size}"
  config.corpus.source = "docstrings:"
  config.corpus.heldout_share = 0.05
  config.tokenizer.vocab_size = 8_192
  config.model.num_layers = 2
  config.model.num_heads = 1  # LSTMs have none.
  config.model.update(SIZES[size])
  config.model.type_vocab_size = 0  # A row is one text.
  config.model.init_stddev = 0.05
  config.model.dropout = 0.1 if size == "published" else 0.0
  config.data.length = 64
  config.data.batch_size = 32
  config.optimizer.learning_rate = 2e-3
  config.optimizer.b2 = 0.98
  config.optimizer.warmup_steps = 60
  config.train.num_steps = 2_000
  config.train.log_every = 100
  config.train.eval_every = 1_000
  config.train.eval_rows = 1_024
  config.train.checkpoint_every = 500
  return config
