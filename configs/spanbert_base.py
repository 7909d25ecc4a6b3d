"""SpanBERT-base, cased: 12 layers x 768, 108M parameters, span MLM + SBO.

Paper: Joshi et al. 2020, https://arxiv.org/abs/1907.10529. The numbers are
those of the published command (facebookresearch/SpanBERT,
pretraining/README.md): 2.4M updates of 131,072 tokens in rows of 512, no short
rows, no NSP.

  maskedlm pretrain --config=configs/spanbert_base.py --workdir=runs/spanbert \\
    --config.corpus.source='text:/data/*.txt'

It differs from the original in that no word is cut by the end of the budget
(docs/guides/pretrain/masking.md), that sentences longer than a row are kept,
and that the SBO loss is divided by the number of its targets, not by that plus
1. The corpus is BERT's, Wikipedia and BooksCorpus. Not measured here: it wants
a TPU or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("spanbert")
  config.name = "spanbert_base"
  config.tokenizer.vocab_size = 28_996  # BERT's cased vocabulary.
  config.tokenizer.lowercase = False
  # For TPUs and GPUs, as configs/roberta_base.py has it.
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 256
  config.optimizer = presets.spanbert()
  config.train.num_steps = 2_400_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 5_000
  return config
