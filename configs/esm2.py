"""ESM-2: proteins, a letter an amino acid; masked tokens alone.

  8m    6 layers x 320 (the default)
  35m   12 layers x 480
  150m  30 layers x 640
  650m  33 layers x 1280
  3b    36 layers x 2560, 40 heads; the others have 20

Paper: Lin et al. 2023, "Evolutionary-scale prediction of atomic-level protein
structure", https://doi.org/10.1126/science.ade2574. Sizes are those of
facebookresearch/esm, the optimizer and the steps those of bionemo's
defaults.yaml. Masked models overfit UniRef that they read several times
(https://arxiv.org/abs/2411.02142).

  steps    rows           rate
  450,000  2,048 x 1,024  to 4e-4 in 2,000 steps, then linearly to 4e-5
  50,000   2,048 x 1,024  4e-5

  maskedlm pretrain --config=configs/esm2.py:8m --workdir=runs/esm2 \\
    --config.corpus.source='fasta:/data/uniref50.fasta.gz'

For the vocabulary of the published models, whose ids differ, add
--config.tokenizer.path=vocab.txt (theirs); to go on with one of them,
`maskedlm import` it and use configs/continued.py. For 3b add
--config.mesh.fsdp=8.

A row is a sequence between [CLS] and [SEP], cut at random to 1,022 letters, or
several short ones, each of which attends only to itself and whose [MASK] are
counted alone. Differences: theirs are drawn from UniRef50, with a member of
UniRef90 in their place, and a long one has a row an epoch; here it has as many
as it fills. A row has a fixed number of masks. train.accumulate suits 8 GPUs.
None of the sizes has been trained here: they need TPUs or GPUs.
"""

from maskedlm.config import defaults
from maskedlm.core.errors import check_name
from maskedlm.training.phases import total_steps

# Name -> (layers, width, heads, train.accumulate).
SIZES = {
  "8m": (6, 320, 20, 2),
  "35m": (12, 480, 20, 4),
  "150m": (30, 640, 20, 8),
  "650m": (33, 1_280, 20, 16),
  "3b": (36, 2_560, 40, 32),
}


def get_config(size="8m"):
  check_name("configs/esm2.py:SIZE", size, SIZES)
  layers, width, heads, accumulate = SIZES[size]
  config = defaults.default("roberta")
  config.name = f"esm2_{size}"
  config.objective.documents = "crops"
  config.tokenizer.kind = "characters"
  config.tokenizer.vocab_size = 33
  config.model.num_layers = layers
  config.model.width = width
  config.model.num_heads = heads
  config.model.mlp_width = 4 * width
  config.model.max_positions = 1_024
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.norm_epsilon = 1e-5
  config.model.dtype = "bfloat16"
  config.model.type_vocab_size = 0
  config.model.embedding_norm = False
  config.model.token_dropout = True
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.data.length = 1_024
  config.data.batch_size = 2_048
  config.optimizer.learning_rate = 4e-4
  config.optimizer.warmup_steps = 2_000
  config.optimizer.end_factor = 0.1
  config.optimizer.b2 = 0.98
  config.optimizer.eps = 1e-8
  config.optimizer.weight_decay = 0.01
  config.train.accumulate = accumulate
  config.phases = (
    {"steps": 450_000},
    {
      "steps": 50_000,
      "optimizer.learning_rate": 4e-5,
      "optimizer.schedule": "constant",
      "optimizer.warmup_steps": 0,
    },
  )
  config.train.num_steps = total_steps(config)
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 1_000
  return config
