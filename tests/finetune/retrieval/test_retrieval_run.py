"""A run of retrieval: it learns, and embed and export use its vectors."""

import numpy as np
import pytest

from maskedlm.finetune import config as configs
from maskedlm.finetune import predict, run
from maskedlm.inference import model as api
from maskedlm.interop.huggingface import exporter


def write(path, count, seed):
  """Writes queries; the passage with the query's rare words answers it."""
  rng, lines = np.random.default_rng(seed), ["query\tpassage\n"]
  rare = ["cat", "mat", "dog", "house", "film", "book", "table", "paris"]
  common = ["the", "on", "and", "a", "with", "is", "it", "in"]
  for _ in range(count):
    word, other = rng.choice(rare, 2, replace=False)
    made = [
      " ".join(rng.permutation([word, other, *rng.choice(common, n)]))
      for n in (2, 5)
    ]
    lines.append("\t".join(made) + "\n")
  path.write_text("".join(lines))


def test_a_run_learns_and_its_vectors_are_embeds(
  encoder, tmp_path, capsys, on_one
):
  write(tmp_path / "train.tsv", 96, 1)
  write(tmp_path / "dev.tsv", 25, 2)
  c = configs.default("retrieval")
  c.init_from = str(encoder)
  c.data.update(
    train=str(tmp_path / "train.tsv"), dev=str(tmp_path / "dev.tsv")
  )
  c.data.update(length=24, batch_size=16)
  c.model.update(dropout=0.0, attention_dropout=0.0, unroll=False)
  c.optimizer.learning_rate = 3e-3
  c.train.update(epochs=8, evals_per_epoch=1 / 4, accumulate=2)
  c.task.widths = (8,)
  configs.validate(c)
  c.task.pool, c.task.query_prefix = "cls", "it is the "
  result = run.finetune(configs.typed(c), tmp_path / "run")
  assert result["best_metric"] == "mrr@10"
  log = capsys.readouterr().err
  # By chance it would be 0.12 of 25; two words distinguish 8 * 7 passages.
  assert result["mrr@10"] > 0.6
  assert (tmp_path / "run" / "ranks.tsv").is_file()
  model = predict.open_model(tmp_path / "run")
  # Padding counts the 2 x 16 texts of a batch, not the longer of each pair.
  examples = model.task.read_examples(str(tmp_path / "train.tsv"))
  lengths = model.app.make_rows(examples).values["sequence_lengths"]
  assert "(32 texts share " in log
  assert f"; {1 - lengths.mean() / 24:.1%} with data.pack=False (" in log
  texts = ["the cat is a dog", "dog on a cat", "paris in the film"]
  example = model.task.parse_line("\t".join(texts))
  (made,) = predict.predict(model, [example])
  assert made["passage"] == "dog on a cat"
  # The checkpoint knows the pooling.
  x = api.load(tmp_path / "run").embed([f"it is the {texts[0]}", *texts[1:]])
  np.testing.assert_allclose(made["cosines"], x[1:] @ x[0], atol=1e-5)
  peer = pytest.importorskip("sentence_transformers")
  name = exporter.export_huggingface(
    tmp_path / "run", tmp_path / "hf", log=print
  )
  assert name == "BertModel"
  card = (tmp_path / "hf" / "README.md").read_text()
  assert "library_name: sentence-transformers\n" in card
  assert "encode_query" in card
  theirs = peer.SentenceTransformer(str(tmp_path / "hf"))
  np.testing.assert_allclose(theirs.encode_query(texts[:1]), x[:1], atol=1e-5)
  np.testing.assert_allclose(
    theirs.encode_document(texts[1:]), x[1:], atol=1e-5
  )
