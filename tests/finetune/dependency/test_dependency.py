"""The task: rows, windows, the loss, and trees from outputs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers import letters
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import conllu
from maskedlm.finetune.contract import Rows, Setup
from maskedlm.finetune.dependency import dependency
from maskedlm.training.step import totals

LENGTH = 8  # Six letters.
INFO = {"labels": ["n", "p", "root"], "root_labels": ["root"]}


def example(words, heads=None, labels=None):
  made = conllu.of_words(words)
  lines = tuple(range(3, 3 + len(words)))
  return made._replace(heads=heads, labels=labels, lines=lines, where="f:3")


SHORT = example("abc", (2, 0, 2), ("n", "root", "x"))
# Longer than a row; the last word's head is far.
LONG = example(
  "defghijkl", (2, 0, 2, 3, 4, 5, 6, 7, 1), ("n", "root", *"pppppp", "p")
)


@pytest.fixture(scope="module")
def app():
  return dependency.make_application(
    Setup(letters.TOKENIZER, reference.config(), INFO, LENGTH)
  )


def test_labels_at_the_root_are_others():
  twice = example("ab", (0, 1), ("root", "root"))
  assert dependency.describe_labels([SHORT, twice, example("z")]) == {
    "labels": ["n", "root", "x"],
    "root_labels": ["root"],
  }
  with pytest.raises(DataError, match="f: no word in 1 sentence has another"):
    dependency.describe_labels([example("a", (0,), ("root",))])


def test_rows_by_hand(app):
  rows = app.make_rows([SHORT, LONG])
  row = {name: values[0].tolist() for name, values in rows.tokens.items()}
  assert row["input_ids"] == [letters.CLS, 10, 11, 12, letters.SEP]
  assert row["word_starts"] == [1, 2, 3, 0, 0]
  assert row["word_kept"] == [1, 1, 1, 0, 0]
  assert row["word_heads"] == [2, 0, 2, 0, 0]
  assert row["word_labels"] == [0, 3, -1, 0, 0]  # x is not known.
  # d to i, of which the first five are nearer to the middle, and g to l.
  assert rows.example.tolist() == [0, 1, 1]
  first, second = rows.values["first_word"][1:]
  assert (first, second) == (0, 3)
  kept = [first + np.flatnonzero(rows.tokens["word_kept"][1])]
  kept.append(second + np.flatnonzero(rows.tokens["word_kept"][2]))
  assert np.concatenate(kept).tolist() == list(range(9))
  heads = rows.tokens["word_heads"][2]
  labels = rows.tokens["word_labels"][2]
  assert heads[[4, 5]].tolist() == [7 - 3 + 0, -1]  # k's head is j; l's is d.
  assert labels[[4, 5]].tolist() == [1, -1]
  unseen, far = rows.notes
  assert "'x' (f:5)" in unseen
  assert "1 of 12 words have their head in no row of 8 tokens" in far


@pytest.fixture(scope="module")
def params(app):
  return letters.make_params(app)


def test_the_loss_by_hand_and_padding_counts_nothing(app, params):
  def run(length, fillers):
    batch = letters.make_batch(
      app, examples=[SHORT, LONG], length=length, fillers=fillers
    )

    @jax.jit
    @functools.partial(jax.grad, has_aux=True)
    def gradient(params):
      terms, stats = totals(app.loss(params, batch, None, False))
      return sum(s / w for s, w in terms.values()), (terms, stats)

    heads = {name: params[name] for name in ("arcs", "labels")}
    same = {**params, **jax.tree.map(jnp.zeros_like, heads)}
    return gradient(params), gradient(same)[1]

  (plain, by_hand), (padded, _) = run(LENGTH, 0), run(LENGTH + 3, 2)
  for (path, a), b in zip(
    jax.tree_util.tree_leaves_with_path(plain),
    jax.tree.leaves(padded),
    strict=True,
  ):
    np.testing.assert_allclose(a, b, atol=1e-4, rtol=1e-3, err_msg=str(path))
  for path, x in jax.tree_util.tree_leaves_with_path(
    {name: plain[0][name] for name in ("arcs", "labels")}
  ):
    assert np.abs(x).max() > 0, path
  terms, stats = by_hand
  # Of three words, each has three candidates: two words and the root; of eight
  # words in rows of six, each has six. l has its head in no row.
  np.testing.assert_allclose(
    terms["heads"], (3 * np.log(3) + 8 * np.log(6), 11), rtol=1e-6
  )
  # Four labels; x is not known.
  np.testing.assert_allclose(terms["labels"], (10 * np.log(4), 10), rtol=1e-6)
  assert stats["head_accuracy"][1] == 12
  assert stats["gold_head_label_accuracy"][1] == 12


def test_trees_come_out_whatever_the_scores(app, params):
  examples = [SHORT, LONG, example("z")]
  rows = app.make_rows(examples)
  batch = letters.make_batch(app, examples=examples, length=LENGTH)
  found = jax.jit(app.outputs)(params, batch)
  scores, labels = np.exp(found["scores"]), found["labels"]
  # Of a word of three: the root, two words; not itself, nor padding.
  np.testing.assert_allclose(scores[0, :3].sum(axis=1), 1, rtol=1e-5)
  assert (np.sort(scores[0, 0])[:-3] == 0).all()
  predictions = app.decode(examples, rows, jax.device_get(found), {})
  for made, prediction in zip(examples, predictions, strict=True):
    assert prediction["tokens"] == list(made.words)
    heads, labels = prediction["heads"], prediction["labels"]
    conllu.read_tree([("f:1", str(head), "x") for head in heads])
    assert heads.count(0) == 1
    assert labels[heads.index(0)] == "root"
    assert all(0 <= p <= 1 for p in prediction["probabilities"])
    written = prediction["conllu"].splitlines()[1:]
    assert [int(x.split("\t")[6]) for x in written] == heads


def test_the_tree_by_hand(app):
  """Two rows of a sentence of four words; b and c are in no row together."""
  rows = Rows(
    tokens={
      "input_ids": [np.zeros(4, np.int32)] * 2,
      "word_kept": [np.array([1, 1, 0, 0])] * 2,
    },
    values={"first_word": np.array([0, 2])},
    example=np.array([0, 0]),
  )
  none = [0, 1, 2, 3]
  outputs = {
    # Columns: the root, then the likeliest words of the row, from 1.
    "heads": [np.array([[0, 2, 1], [0, 1, 2], none[:3], none[:3]])] * 2,
    "scores": [
      np.log([[0.5, 0.5, 1e-9], [0.2, 0.8, 1e-9], [1, 1, 1], [1, 1, 1]]),
      np.log([[0.4, 0.6, 1e-9], [0.3, 0.7, 1e-9], [1, 1, 1], [1, 1, 1]]),
    ],
    "labels": [np.array([[3, 0, 1], [3, 1, 0], none[:3], none[:3]])] * 2,
    "label_shares": [np.full((4, 3), 0.5)] * 2,
  }
  for x in outputs["scores"]:
    x[:2, 2] = -1e9
  (found,) = app.decode([example("abcd")], rows, outputs, {})
  # a is the root (0.5), rather than c (0.4 / 0.6 of what its arc is worth).
  assert found["heads"] == [0, 1, 2, 3]
  assert found["labels"] == ["root", "p", "n", "p"]
  assert found["probabilities"] == [0.25, 0.4, 0.0, 0.35]
