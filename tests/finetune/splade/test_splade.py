"""SPLADE: weights, FLOPS by hand, its ramp, and a run that is searched."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

import maskedlm
from helpers import encoder_reference as reference
from helpers import letters, untrained, vector_encoder
from helpers.letters import TOKENIZER, make_params
from maskedlm.cli import main
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.finetune.common import batching
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.retrieval import splade
from maskedlm.finetune.retrieval.splade import Options
from maskedlm.inference.vectors import splade as sparse_vectors
from maskedlm.modeling import masked_lm

EXAMPLES = [
  Example("a b", ("c", "d e f"), where="x.tsv:2"),
  Example("g", ("h i j k a b c d",), where="x.tsv:3"),
  Example("k", ("c", "h"), where="x.tsv:4"),
]


def make(**options):
  cfg = reference.config()
  app = splade.make_application(
    Setup(TOKENIZER, cfg, {}, 9), Options(**options)
  )
  return app, cfg


def test_weights_are_the_largest_of_a_text():
  app, cfg = make()
  params = make_params(app, cfg)
  batch = letters.make_batch(app, examples=EXAMPLES, length=9)
  x = np.asarray(jax.jit(lambda p: app.vectors(p, batch, None, False))(params))
  assert x.shape == (3, 3, cfg.padded_vocab_size)
  rows = {n: batch[n].reshape(9, 9) for n in ("input_ids", "token_type_ids")}
  rows["segment_ids"] = batch["segment_ids"].reshape(9, 9)
  positions = jnp.tile(jnp.arange(9), (9, 1))

  @jax.jit
  def predict(params):
    hidden = masked_lm.encode(cfg, params, rows, None, False)
    return masked_lm.predict(
      cfg, params, {**rows, "masked_positions": positions}, hidden
    )

  logits = predict(params)
  for row, made in enumerate(x.reshape(9, -1)):
    real = rows["segment_ids"][row] > 0
    largest = np.asarray(logits)[row][real].max(axis=0)
    expected = np.log1p(np.maximum(largest, 0))
    np.testing.assert_allclose(made, expected, atol=1e-5)


def test_flops_by_hand():
  """Two queries, of weights 1 and 3 for a word: mean 2, F = 4 and 1."""
  app, _ = make(query_flops=0.5, passage_flops=0.25)
  x = np.zeros((3, 3, 5), np.float32)
  x[0, 0], x[1, 0] = [1, 0, 2, 0, 0], [3, 0, 0, 0, 0]
  x[0, 1], x[0, 2], x[1, 1] = [0, 6, 0, 0, 0], [0, 0, 0, 0, 3], 0
  x[1, 2], x[2] = 9, 9  # A passage that isn't there, and a filler.
  batch = {
    "query_ids": np.array([0, 1, 0]),
    "passage_ids": np.array([[0, 1], [2, -1], [0, 0]]),
    "example_weights": np.float32([1, 1, 0]),
  }

  loss = jax.jit(functools.partial(app.loss_of_vectors, x))

  def means(batch):
    terms, metrics = loss(batch)
    return {
      name: float(np.sum(a) / np.sum(b))
      for name, (a, b) in {**terms, **metrics}.items()
    }

  found = means(batch)
  assert found["query_flops"] == pytest.approx(0.5 * (2**2 + 1**2))
  # Three passages: means 2 and 1.
  assert found["passage_flops"] == pytest.approx(0.25 * (2**2 + 1**2))
  assert found["query_words"] == 1.5 and found["query_empty"] == 0
  assert found["passage_words"] == pytest.approx(2 / 3)
  assert found["passage_empty"] == pytest.approx(1 / 3)
  half = means({**batch, "ramp": np.float32([0.5, 0.5, 0.5])})
  assert half["query_flops"] == pytest.approx(0.25 * found["query_flops"])
  assert half["retrieval"] == found["retrieval"]
  # Products, not cosines: -log softmax, of queries with their 3 passages.
  scores = np.array([[0, 0, 0], [0, 0, 0]])
  nll = np.log(np.exp(scores).sum(axis=1))
  assert found["retrieval"] == pytest.approx(nll.mean(), abs=1e-6)
  # A query with its passage alone teaches nothing, and so counts for nothing.
  terms, _ = loss({**batch, "example_weights": np.float32([0, 1, 0])})
  assert {name: float(w.sum()) for name, (_, w) in terms.items()} == {
    "retrieval": 0,
    "query_flops": 0,
    "passage_flops": 0,
  }


def test_ranks_equal_those_of_dense_vectors():
  app, cfg = make()
  rows = app.make_rows(EXAMPLES)
  rng = np.random.default_rng(4)
  x = rng.random((3, 3, cfg.padded_vocab_size), np.float32)
  x[x < 0.7] = 0
  weights, terms = jax.lax.top_k(x, x.shape[-1])
  outputs = {"weights": list(weights), "terms": list(terms)}
  found = app.decode(EXAMPLES, rows, outputs, {})
  dense = splade.retrieval.rank_rows(EXAMPLES, rows, x.reshape(9, -1))
  for a, b in zip(found, dense, strict=True):
    assert (a["rank"], a["passage"]) == (b["rank"], b["passage"])
    np.testing.assert_allclose(a["cosines"], b["cosines"], atol=1e-4)


def test_empty_vectors_are_said(capsys):
  app, _ = make()
  rows = app.make_rows(EXAMPLES)
  outputs = {
    "weights": [np.zeros((3, 4), np.float32)] * 3,
    "terms": [np.zeros((3, 4), np.int32)] * 3,
  }
  app.decode(EXAMPLES, rows, outputs, {})
  assert "5 passages of 5 without any word" in capsys.readouterr().err


def test_the_head_is_the_pretrained_one(capsys):
  pretrained = {"encoder": {}, "mlm_head": {"bias": 7}}
  assert splade.initial_heads(pretrained) == {"mlm_head": {"bias": 7}}
  assert splade.initial_heads({"encoder": {}}) == {}
  assert "mlm_head from random parameters" in capsys.readouterr().err


def test_columns_of_a_file():
  x = sparse.csr_array(np.float32([[0, 0, 0], [0, 2, 1], [3, 0, 0], [0, 0, 0]]))
  parts, words = [], 0
  for i, part in enumerate((x[:1], x[1:2], x[2:])):
    parts.append(sparse_vectors.to_columns(part, begins=not i, before=words))
    words += part.nnz
  file = {n: np.concatenate([part[n] for part in parts]) for n in parts[0]}
  found = sparse_vectors.from_columns(file, 3)
  np.testing.assert_array_equal(found.toarray(), x.toarray())
  file["words"][0] = 3
  with pytest.raises(ValueError, match="3"):
    sparse_vectors.from_columns(file, 3)


TEXTS = ("the cat on a mat", "a dog in the house", "the film is a book", "it")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """Returns a folder with a model, and a pretrained one."""
  folder = tmp_path_factory.mktemp("splade")
  untrained.save_tuned(folder / "run", "splade", {}, {})
  return folder, untrained.pretrained(folder / "encoder")


def test_a_run_is_embedded_and_searched(trained, capsys):
  folder, _ = trained
  text, out = folder / "texts.txt", folder / "v.npz"
  text.write_text("\n".join(TEXTS))
  path = f"--checkpoint={folder / 'run'}"
  argv = ["embed", path, f"--input={text}", "--unit=sentence"]
  assert main.main([*argv, f"--out={out}"]) == 0
  model = maskedlm.load(folder / "run")
  x = model.embed(TEXTS).toarray()
  stored = sparse_vectors.from_columns(np.load(out), x.shape[1])
  np.testing.assert_allclose(stored.toarray(), x, atol=1e-6)
  # As the task computes them.
  predicted = model.predict([f"cat\t{TEXTS[0]}\t{TEXTS[1]}"])[0]
  query = model.embed(["cat"]).toarray()[0]
  expected = np.sort(predicted["cosines"])
  np.testing.assert_allclose(expected, np.sort(x[:2] @ query), rtol=1e-3)
  capsys.readouterr()
  argv = ["vectors", "search", path, f"--vectors={out}", "--json", "cat"]
  assert main.main(argv) == 0
  nearest = json.loads(capsys.readouterr().out)["nearest"]
  order = np.argsort(-(x @ query), kind="stable")
  assert [hit["text"] for hit in nearest] == [TEXTS[i] for i in order]
  scores = [hit["cosine"] for hit in nearest]
  np.testing.assert_allclose(scores, (x @ query)[order], rtol=1e-4)
  other = vector_encoder.make(folder / "other", num_layers=1)
  with pytest.raises(ValueError, match="made by another encoder"):
    maskedlm.load(other).search(["cat"], out)


def test_what_is_refused(trained, tmp_path, capsys):
  folder, encoder = trained
  (tmp_path / "x.txt").write_text("the cat\n")
  argv = ["embed", f"--input={tmp_path / 'x.txt'}", "--unit=sentence"]
  argv.append(f"--checkpoint={folder / 'run'}")
  for more, message in (
    ([f"--out={tmp_path / 'v.jsonl'}"], "makes sparse vectors (splade)"),
    ([f"--fit={tmp_path / 'f.npz'}"], "makes sparse vectors (splade)"),
    (
      [f"--out={tmp_path / 'v.npz'}", "--codes=int8"],
      "makes sparse vectors (splade)",
    ),
    (
      [f"--out={tmp_path / 'v.npz'}", "--truncate_dim=3"],
      "expected no other --layers, and no --truncate_dim",
    ),
  ):
    assert main.main([*argv, *more]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
  assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]
  argv = ["plot", "vectors", f"--data={tmp_path / 'x.txt'}"]
  argv.append(f"--checkpoint={folder / 'run'}")
  assert main.main([*argv, f"--out={tmp_path / 'x.png'}"]) == 2
  assert "expected a model of dense ones" in capsys.readouterr().err
  with pytest.raises(ValueError, match="of `maskedlm finetune splade`"):
    maskedlm.load(encoder).embed(["a"], pool="splade")


def test_sentence_transformers_has_the_same_vectors(trained, tmp_path):
  library = pytest.importorskip("sentence_transformers")
  folder, _ = trained
  argv = ["export", "--to=hf", f"--checkpoint={folder / 'run'}"]
  assert main.main([*argv, f"--out={tmp_path / 'hf'}"]) == 0
  theirs = library.SparseEncoder(str(tmp_path / "hf"), device="cpu")
  found = theirs.encode(list(TEXTS), convert_to_sparse_tensor=False).numpy()
  ours = maskedlm.load(folder / "run").embed(TEXTS).toarray()
  np.testing.assert_allclose(ours[:, : found.shape[1]], found, atol=1e-5)
  assert (found > 0).any()


def test_the_ramp_of_batches():
  batch = {"example_weights": np.float32([1, 1, 0])}
  batches = batching.RowBatches(lambda step: batch, None, None, 9)
  assert batching.with_ramp(batches, 0) is batches
  made = batching.with_ramp(batches, 4)
  ramps = [made.batch_at(step)["ramp"].tolist() for step in (0, 1, 4, 7)]
  assert ramps == [[x] * 3 for x in (0, 0.25, 1, 1)]
