"""NeoBERT: 28 layers x 768 with SwiGLU and RMSNorm, 222M parameters.

Paper: Le Breton et al. 2025, https://arxiv.org/abs/2502.19587, section 3. The
batches are those of chandar-lab/NeoBERT's jobs/neobert.sh and neobert-4096.sh,
where a step reads 2,097,152 tokens; 20% of them are masked, all by [MASK].

  steps    rows           rate
  900,000  2,048 x 1,024  to 6e-4 in 2,000 steps, then to 6e-5 by a cosine
  100,000  2,048 x 1,024  6e-5
  50,000   512 x 4,096    6e-5

  maskedlm pretrain --config=configs/neobert.py --workdir=runs/neobert \\
    --config.corpus.source='text:/data/*.txt'

In the second and third part the paper mixes in text of documents above 1,024
and 2,048 tokens: add "corpus.path" to the last phase for it. train.accumulate
suits 8 GPUs.

Differences: rate and weight decay are the paper's (6e-4, 0.1), where the
repository's conf/optimizer/adamw.yaml has 1e-4 and 0.01. Weights are drawn
from a truncated normal, theirs uniformly. Rows are cut from running text, each
document attending only to itself, where theirs are single documents; a row has
a fixed number of masks. It has not been trained here: it needs TPUs or GPUs.
"""

from maskedlm.config import defaults
from maskedlm.training.phases import total_steps


def get_config():
  config = defaults.default("roberta")
  config.name = "neobert"
  config.objective.mask_rate = 0.20
  config.objective.mask_share = 1.0
  config.objective.random_share = 0.0
  config.objective.isolate_documents = True
  config.tokenizer.vocab_size = 30_522
  config.model.num_layers = 28
  config.model.width = 768
  config.model.num_heads = 12
  config.model.mlp_width = 2_048  # 2/3 of 3,072.
  config.model.activation = "silu"
  config.model.max_positions = 4_096
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.norm_epsilon = 1e-5
  config.model.dtype = "bfloat16"
  config.model.type_vocab_size = 0
  config.model.embedding_norm = False
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.model.norm_kind = "rms"
  config.model.mlp = "gated"
  config.model.biases = False
  config.model.mlm_head = "linear"
  config.model.tied = False
  config.data.length = 1_024
  config.data.batch_size = 2_048
  config.optimizer.learning_rate = 6e-4
  config.optimizer.schedule = "cosine"
  config.optimizer.warmup_steps = 2_000
  config.optimizer.end_factor = 0.1
  config.optimizer.b2 = 0.95
  config.optimizer.weight_decay = 0.1
  config.optimizer.no_decay = ()  # All parameters are in one group.
  config.train.accumulate = 4
  config.phases = (
    {"steps": 900_000},
    {
      "steps": 100_000,
      "optimizer.learning_rate": 6e-5,
      "optimizer.schedule": "constant",
      "optimizer.warmup_steps": 0,
    },
    {
      "steps": 50_000,
      "data.length": 4_096,
      "data.batch_size": 512,
      "train.accumulate": 8,
    },
  )
  config.train.num_steps = total_steps(config)
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 1_000
  return config
