"""XLM-R-base: 12 layers x 768, 250,002 words, 278M parameters, 100 languages.

Paper: Conneau et al. 2020, https://arxiv.org/abs/1911.02116: RoBERTa's
objective on text of many languages (CC-100), one vocabulary of 250,000 pieces,
both sampled with the exponent 0.3; 1,500,000 steps of 8,192 rows of 512 tokens.
The paper gives no rate, warm-up or optimizer: those here are RoBERTa's for rows
and batches of that size (arXiv:1907.11692, table 9).

  maskedlm pretrain --config=configs/xlmr_base.py --workdir=runs/xlmr_base \\
    --config.corpus.parts=/data/cc100 --config.mesh.fsdp=8 \\
    --config.train.accumulate=32

A folder's files are called de.txt, fr.txt, ...
(docs/guides/pretrain/multilingual.md). The vocabulary that was published is
--config.tokenizer.path=FOLDER of sentencepiece.bpe.model. Not measured here: it
wants a TPU or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("roberta")
  config.name = "xlmr_base"
  config.objective.random_tokens = "uniform"  # Else English words, mostly.
  config.tokenizer.kind = "unigram"
  config.tokenizer.vocab_size = 250_002
  config.tokenizer.lowercase = False
  config.model.norm_epsilon = 1e-5
  config.model.type_vocab_size = 0  # Rows of one text: B would never train.
  config.model.vocab_block = 32_768  # As many logits at once as BERT has.
  # Chosen for TPUs, by memory and modelled time
  # (docs/guides/pretrain/scaling.md).
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 8_192
  config.optimizer = presets.roberta_fairseq()
  config.optimizer.learning_rate = 6e-4
  config.optimizer.warmup_steps = 24_000
  config.train.num_steps = 1_500_000
  config.train.eval_every = 5_000
  config.train.eval_rows = 8_192
  config.train.checkpoint_every = 1_000
  return config
