"""Trains an embedder with sentence-transformers, as benchmarks/retrieval.py.

python benchmarks/retrieval_peer.py START PAIRS.jsonl OUT SEED
"""

import json
import pathlib
import sys
import tempfile
import time

import datasets
import sentence_transformers as st
from sentence_transformers.sentence_transformer import losses, modules


def main():
  start, pairs, out, seed = sys.argv[1:]
  lines = pathlib.Path(pairs).read_text().splitlines()
  rows = [json.loads(line) for line in lines]
  encoder = modules.Transformer(start, max_seq_length=128)
  pooling = modules.Pooling(encoder.get_word_embedding_dimension(), "mean")
  model = st.SentenceTransformer(modules=[encoder, pooling])
  data = datasets.Dataset.from_dict(
    {
      "anchor": [row["query"] for row in rows],
      "positive": [row["passage"] for row in rows],
    }
  )
  epochs = 2
  with tempfile.TemporaryDirectory() as folder:
    options = st.SentenceTransformerTrainingArguments(
      output_dir=folder,
      num_train_epochs=epochs,
      per_device_train_batch_size=64,
      learning_rate=3e-4,
      warmup_ratio=0.1,
      weight_decay=0.01,
      max_grad_norm=1.0,
      seed=int(seed),
      batch_sampler="no_duplicates",
      save_strategy="no",
      report_to="none",
      disable_tqdm=True,
    )
    loss = losses.MultipleNegativesRankingLoss(model, scale=20.0)
    trainer = st.SentenceTransformerTrainer(
      model=model, args=options, train_dataset=data, loss=loss
    )
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
  print(f"{epochs * len(rows) / seconds:.0f} pairs a second", flush=True)
  model.save_pretrained(out)


if __name__ == "__main__":
  main()
