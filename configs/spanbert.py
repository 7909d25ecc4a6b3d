"""SpanBERT, cased: masked spans and the span boundary objective (SBO).

  base   12 layers x 768, 108M parameters (the default)
  large  24 layers x 1024, 334M parameters

Paper: Joshi et al. 2020, https://arxiv.org/abs/1907.10529; published F1 of
large: 94.6 on SQuAD 1.1, 88.7 on SQuAD 2.0. The numbers are those of the
published command (facebookresearch/SpanBERT, pretraining/README.md): 2.4M
updates of 131,072 tokens in rows of 512, no short rows, no NSP.

  maskedlm pretrain --config=configs/spanbert.py:base --workdir=runs/spanbert \\
    --config.corpus.source='text:/data/*.txt'

For large add --config.mesh.fsdp=8. This differs from the original in that no
word is cut by the end of the budget (docs/guides/pretrain/masking.md), that
sentences longer than a row are kept, and that the SBO loss is divided by the
number of its targets, not by that plus 1. The corpus is BERT's, Wikipedia and
BooksCorpus. Neither size has been trained here: they need TPUs or GPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = {
  "base": {"num_layers": 12, "width": 768, "num_heads": 12, "mlp_width": 3072},
  "large": {
    "num_layers": 24,
    "width": 1024,
    "num_heads": 16,
    "mlp_width": 4096,
  },
}


def get_config(size="base"):
  check_name("configs/spanbert.py:SIZE", size, SIZES)
  config = defaults.default("spanbert")
  config.name = f"spanbert_{size}"
  config.tokenizer.vocab_size = 28_996  # BERT's cased vocabulary.
  config.tokenizer.lowercase = False
  config.model.update(SIZES[size])
  # For TPUs and GPUs, as in configs/roberta.py.
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 256
  config.optimizer = presets.spanbert()
  config.train.num_steps = 2_400_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 5_000
  return config
