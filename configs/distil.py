"""A small student of modern_small: 2 layers, 128 wide, from 4 of 256.

It follows the teacher's scores of the masked tokens (Hinton et al. 2015,
https://arxiv.org/abs/1503.02531) and the vectors of its layers 2 and 4 (Jiao et
al. 2020, TinyBERT, https://arxiv.org/abs/1909.10351); half of the loss is that
of the text, as for its teacher. Everything but the sizes is modern_small's, so
that what a teacher is worth can be measured: without one, the same model trains
alone.

  maskedlm pretrain --config=configs/modern_small.py --workdir=runs/small \\
    --config.corpus.source='text:/data/*.txt'
  maskedlm pretrain --config=configs/distil.py --workdir=runs/student \\
    --config.teacher=runs/small --config.corpus.path=runs/small/corpus

docs/guides/pretrain/distillation.md says what a teacher must be.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("roberta")
  config.name = "distil"
  config.teacher_layers = (2, 4)
  config.tokenizer.vocab_size = 8_192
  config.model.num_layers = 2
  config.model.width = 128
  config.model.num_heads = 2
  config.model.mlp_width = 352
  config.model.max_positions = 512
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.type_vocab_size = 0
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.model.skip_first_norm = True
  config.model.mlp = "gated"
  config.model.biases = False
  config.data.length = 128
  config.data.batch_size = 16
  config.objective.mask_rate = 0.30
  config.objective.heldout_mask_rate = 0.15
  config.phases = (
    {"share": 0.75},
    {"share": 0.25, "objective.mask_rate": 0.15},
  )
  config.optimizer = presets.muon()
  config.optimizer.warmup_steps = 100
  config.train.num_steps = 8_000
  config.train.log_every = 50
  config.train.eval_every = 1_000
  config.train.eval_rows = 512
  config.train.checkpoint_every = 500
  return config
