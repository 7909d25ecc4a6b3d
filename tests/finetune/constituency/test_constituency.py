"""Constituency: rows, loss and predictions, windows, unseen labels, input."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference, letters
from helpers.english_tokenizer import english_tokenizer
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import words
from maskedlm.data.labelled.formats.trees import Bracket
from maskedlm.finetune.common import batching
from maskedlm.finetune.constituency import constituency
from maskedlm.finetune.constituency.constituency import Example, Options
from maskedlm.finetune.constituency.rows import make_rows
from maskedlm.finetune.contract import Setup
from maskedlm.modeling import masked_lm
from maskedlm.modeling.encoder import Encoder
from maskedlm.modeling.task_heads.span_vectors import SpanHead
from maskedlm.training.step import totals

LABELS = ["NULL", "NP", "S", "S VP", "VP"]
TAGS = ["DT", "NN", "VB"]
SENTENCE = Example(
  words=("the", "xylophone", "-LRB-", "sat"),
  tags=("DT", "NN", "X", "VB"),
  brackets=(
    Bracket("S", 0, 4),
    Bracket("NP", 0, 2),
    Bracket("Q", 2, 4),
    Bracket("S", 3, 4),
    Bracket("VP", 3, 4),
  ),
  lines=(7, 7, 8, 8),
  document="t.ptb",
  where="t.ptb:7",
)
# (First word, words) -> label; the training set did not have Q.
SPANS = {(0, 2): 1, (0, 4): 2, (2, 2): -1, (3, 1): 3}
IDS = {label: i for i, label in enumerate(LABELS)}
TAG_IDS = {tag: i for i, tag in enumerate(TAGS)}


def rows_of(examples, length=48):
  return make_rows(
    examples, english_tokenizer("wordpiece"), IDS, TAG_IDS, length=length
  )


CFG = encoder_reference.config(
  vocab_size=english_tokenizer("wordpiece").vocab_size,
  max_positions=64,
  init_stddev=0.5,
)


@pytest.fixture(scope="module")
def model():
  """Returns (application, parameters): an untrained encoder and heads."""
  info = {"labels": LABELS, "tags": TAGS, "root": "TOP"}
  app = constituency.make_application(
    Setup(english_tokenizer("wordpiece"), CFG, info, 24), Options()
  )
  ids = jnp.zeros((1, 1), jnp.int32)

  @jax.jit
  def init(key):
    return Encoder(CFG).init(key, ids, ids, ids, train=False), app.init(key)

  encoder, heads = init(jax.random.key(1))
  return letters.compiled(app), {"encoder": encoder["params"], **heads}


def batch_of(rows, length=24):
  which = np.arange(len(rows.example))
  return batching.gather_rows(rows, which, length, pad=0)


def test_rows_by_hand():
  rows = rows_of([SENTENCE])
  encode = words.word_encoder(english_tokenizer("wordpiece"))
  sizes = [len(x) for x in encode(("the", "xylophone", "(", "sat"))]
  assert sizes[1] > 2
  tokens = {name: values[0] for name, values in rows.tokens.items()}
  n = sum(sizes) + 2
  ends = np.cumsum(sizes)
  rest = [0] * (n - 4)
  assert len(tokens["input_ids"]) == n
  assert tokens["word_begins"].tolist() == [*(1 + ends - sizes), *rest]
  assert tokens["word_ends"].tolist() == [*ends, *rest]
  assert tokens["word_kept"].tolist() == [1, 1, 1, 1, *rest]
  assert tokens["word_tags"].tolist() == [0, 1, -1, 2, *rest]
  gold = (tokens[f"gold_{x}"].flatten() for x in ("begins", "widths", "labels"))
  spans = {(b, w): label for b, w, label in zip(*gold, strict=True) if w}
  assert spans == SPANS
  (note,) = rows.notes
  assert "2 (2 different), such as 'X' (t.ptb:8)" in note


def test_windows_keep_each_word_and_each_bracket_of_half_a_row_once():
  vocabulary = itertools.cycle(["the", "cat", "xylophone", "ran"])
  n, length = 40, 24
  spans = [(i, i + 2) for i in range(n - 1)] + [(0, n)]
  example = Example(
    words=tuple(itertools.islice(vocabulary, n)),
    tags=("DT",) * n,
    brackets=tuple(Bracket("NP", *span) for span in spans),
    lines=(1,) * n,
    where="t.ptb:1",
  )
  rows = rows_of([SENTENCE, example], length)
  assert max(rows.lengths) <= length and len(rows.example) > 4
  kept, found = [], []
  for i in np.flatnonzero(rows.example == 1):
    first = rows.values["first_word"][i]
    row = {name: values[i] for name, values in rows.tokens.items()}
    kept += (first + np.flatnonzero(row["word_kept"])).tolist()
    own = row["gold_labels"] > 0
    begins = first + row["gold_begins"][own]
    ends = begins + row["gold_widths"][own]
    found += zip(begins.tolist(), ends.tolist(), strict=True)
  assert kept == list(range(n))
  assert sorted(found) == sorted(spans[:-1])
  # The one around 40 words is whole in no row.
  (note,) = [x for x in rows.notes if "in no row" in x]
  assert "1 of 44 labelled spans" in note


def batch_and_filler(app):
  batch = batch_of(app.make_rows([SENTENCE, SENTENCE]))
  batch["example_weights"][1] = 0
  return batch


def test_the_loss_by_hand(model):
  app, params = model
  same = jax.tree.map(jnp.zeros_like, params)
  batch = batch_and_filler(app)
  terms, stats = totals(app.loss(same, batch, None, False))
  # Ten spans, one of them UNSEEN, per word; four words, one tag UNSEEN.
  np.testing.assert_allclose(terms["spans"], (9 * np.log(5), 4), rtol=1e-6)
  np.testing.assert_allclose(terms["tags"], (3 * np.log(3), 3), rtol=1e-6)
  np.testing.assert_allclose(stats["span_recall"], (0, 4))
  np.testing.assert_allclose(stats["word_tag_accuracy"], (1, 4))


def test_the_loss_of_spans_by_a_loop(model):
  app, params = model
  batch = batch_and_filler(app)
  terms, _ = app.loss(params, batch, None, False)
  encode = jax.jit(masked_lm.encode, static_argnums=(0, 4))
  hidden = encode(CFG, params, batch, None, False)
  head = SpanHead(CFG, "endpoints_mean", len(LABELS))
  apply = jax.jit(functools.partial(head.apply, train=False))
  begins, ends = (batch[name][0] for name in ("word_begins", "word_ends"))
  expected = 0.0
  for begin, width in itertools.product(range(4), range(1, 5)):
    label = SPANS.get((begin, width), 0)
    if begin + width > 4 or label < 0:
      continue
    first, last = begins[begin], ends[begin + width - 1]
    logits = apply(
      {"params": params["spans"]},
      hidden[:1],
      first[None, None],
      last[None, None],
    )
    expected -= jax.nn.log_softmax(logits[0, 0])[label]
  np.testing.assert_allclose(terms["spans"][0], [expected, 0], rtol=1e-5)


def test_a_tree_comes_out_whatever_the_scores(model):
  app, params = model
  long = Example(words=("the", "cat", "ran") * 20)
  lines = ["cat", "the dog sat on the xylophone", "( a ) man"]
  examples = [*map(constituency.parse_line, lines), long]
  rows = app.make_rows(examples)
  # So that spans are not NULL.
  bias = params["spans"]["label_dense"]["bias"].at[0].set(-99.0)
  dense = {**params["spans"]["label_dense"], "bias": bias}
  params = {**params, "spans": {**params["spans"], "label_dense": dense}}
  outputs = app.outputs(params, batch_of(rows))
  found = app.decode(examples, rows, jax.device_get(outputs), {})
  for example, prediction in zip(examples, found, strict=True):
    count = len(example.words)
    assert prediction["tokens"] == list(example.words)
    assert len(prediction["tags"]) == count
    assert len(prediction["probabilities"]) == count
    spans = [tuple(b["words"]) for b in prediction["brackets"]]
    assert spans and all(0 <= a < b <= count for a, b in spans)
    assert not any(a < c < b < d for a, b in spans for c, d in spans)
    assert prediction["tree"].startswith("(TOP ")
    assert prediction["tree"].count("(") == prediction["tree"].count(")")
  assert " -LRB-)" in found[2]["tree"]
  assert max(b - a for a, b in spans) <= 22  # No row holds more words.


def test_labels_are_the_training_sets():
  top = SENTENCE._replace(root="TOP")
  info = constituency.describe_labels([SENTENCE, top])
  assert info["labels"] == ["NULL", "NP", "Q", "S", "S VP"]
  assert info["tags"] == ["DT", "NN", "VB", "X"]
  assert info["root"] == "TOP"
  empty = constituency.describe_labels([top._replace(root="")])
  assert empty["root"] == ""
  with pytest.raises(DataError, match=r"t\.ptb: no bracket in 1 tree"):
    constituency.describe_labels([SENTENCE._replace(brackets=())])


@pytest.mark.parametrize(
  ("line", "expected"),
  [
    ("(see (Smith 2010))", ("(see", "(Smith", "2010))")),
    ("( ( a ) b )", ("(", "(", "a", ")", "b", ")")),
  ],
)
def test_words_in_brackets(line, expected):
  assert constituency.parse_line(line).words == expected


@pytest.mark.parametrize(
  ("line", "said"),
  [("(S (NP (NN a)))", "is a tree"), ("( (NN a))", "is a tree")],
)
def test_a_tree_is_no_input(line, said):
  with pytest.raises(DataError, match=f"{said}.*; expected"):
    constituency.parse_line(line)
