"""Coreference chains: segments, rows, scores and losses by hand, decoding."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers import letters
from helpers.letters import CLS, PAD, SEP, TOKENIZER
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune.common import batching
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.coreference_chains import coreference_chains, text
from maskedlm.finetune.coreference_chains import rows as rows_file
from maskedlm.finetune.coreference_chains.coreference_chains import Options
from maskedlm.finetune.coreference_chains.rows import Example
from maskedlm.modeling.task_heads import chain_head as head

LENGTH = 7  # 5 words in a segment.
EXAMPLES = [
  # Segments a b c | d e f g | h i: the last sentence is cut off by the room.
  Example(
    tuple("abcdefghi"),
    (3, 7, 9),
    (((0, 1), (3, 5), (7, 8)), ((4, 5), (8, 9)), ((0, 3), (5, 6))),
    id="(x); part 000",
    where="f:1",
  ),
  Example(tuple("kl"), (2,), (), id="(y); part 000", where="f:20"),
]


@pytest.fixture(autouse=True)
def most_are_kept(monkeypatch):
  monkeypatch.setattr(head, "TOP_RATIO", 0.7)


@pytest.fixture
def all_are_kept(monkeypatch, most_are_kept):
  monkeypatch.setattr(head, "TOP_RATIO", 10.0)


def make(length=LENGTH, **options):
  options = {"max_mention_words": 2, "segments": 2} | options
  return coreference_chains.make_application(
    Setup(TOKENIZER, reference.config(), {}, length), Options(**options)
  )


def test_segments_end_with_sentences():
  def cut(sizes, ends, capacity):
    return rows_file.cut_segments(np.array(sizes), ends, capacity)

  assert cut([1] * 9, (3, 7, 9), 5) == [(0, 3), (3, 7), (7, 9)]
  assert cut([1] * 9, (9,), 5) == [(0, 5), (5, 9)]  # A long sentence.
  assert cut([4, 2, 1, 3], (1, 4), 5) == [(0, 1), (1, 3), (3, 4)]
  assert cut([], (), 5) == [(0, 0)]


def test_rows():
  rows = make().make_rows(EXAMPLES)
  assert rows.example.tolist() == [0, 0, 1]
  assert [x.tolist() for x in rows.tokens["input_ids"]] == [
    [[CLS, 10, 11, 12, SEP, PAD], [CLS, 13, 14, 15, 16, SEP]],
    [[CLS, 17, 18, SEP], [CLS, SEP, PAD, PAD]],
    [[CLS, 20, 21, SEP], [CLS, SEP, PAD, PAD]],
  ]
  assert rows.tokens["word_room"][0].tolist() == [
    [3, 2, 1, 0, 0, 0],
    [4, 3, 2, 1, 0, 0],
  ]
  assert rows.tokens["word_begins"][1].tolist() == [[1, 2, 0, 0], [0] * 4]
  assert rows.values["first_words"].tolist() == [[0, 3], [7, 9], [0, 2]]
  assert rows.values["mentions"][:, :4].tolist() == [
    [[0, 0, 0, 1], [1, 0, 1, 1], [1, 1, 0, 2], [1, 2, 0, 3]],
    [[0, 0, 0, 1], [0, 1, 0, 2], [0] * 4, [0] * 4],
    [[0] * 4] * 4,
  ]
  (note,) = rows.notes  # (0, 3) has 3 words.
  assert "1 of 7 mentions" in note and "max_mention_words=2" in note
  assert not rows.lost


def test_mentions_across_a_cut_are_reported():
  sample = EXAMPLES[0]._replace(chains=(((2, 4), (6, 8)),))
  rows = make().make_rows([sample])
  assert "2 of 2 mentions are not whole" in rows.lost
  assert not rows.values["mentions"].any()


def test_loss_and_outputs_agree_with_loops():
  """The marginal likelihood and the pruning, from the vectors of outputs."""
  app = make()
  params = letters.make_params(app)
  batch = letters.make_batch(app, examples=EXAMPLES, length=8, fillers=1)
  found = jax.device_get(jax.jit(app.outputs)(params, batch))
  terms, stats = jax.device_get(
    jax.jit(app.loss, static_argnums=3)(params, batch, jax.random.key(0), False)
  )
  np.testing.assert_array_equal(terms["antecedents"][1], [7, 2, 2, 0])
  kept_gold = golds = 0
  for row, count in enumerate([7, 2, 2, 0]):
    valid = np.isfinite(found["scores"][row])
    assert valid.sum() == min(np.ceil(0.7 * count), valid.size)
    segments, words, widths = (
      found[name][row][valid] for name in ("segments", "words", "widths")
    )
    gold = {tuple(m[:3]): m[3] for m in batch["mentions"][row] if m[3]}
    keys = list(zip(segments, words, widths, strict=True))
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    chains = [gold.get(key, 0) for key in keys]
    kept_gold, golds = kept_gold + np.count_nonzero(chains), golds + len(gold)
    before = np.array([0, np.count_nonzero(batch["word_room"][row, 0])])
    places = before[segments] + words
    total = 0.0
    for i in range(len(keys)):
      exps, right = [1.0], []
      for j in range(i):
        q, k = found["queries"][row][valid][i], found["keys"][row][valid][j]
        kind = int(np.log2(places[i] - places[j] + 1))
        score = found["distance_scores"][row][kind] + q @ k / np.sqrt(len(q))
        score += found["scores"][row][valid][[i, j]].sum()
        exps.append(np.exp(score))
        if chains[i] and chains[i] == chains[j]:
          right.append(np.exp(score))
      total += np.log(sum(exps)) - np.log(sum(right) if right else 1.0)
    np.testing.assert_allclose(
      terms["antecedents"][0][row], total, rtol=1e-3, atol=1e-4
    )
  recall = stats["mention_recall_kept"]
  assert (recall[0].sum(), recall[1].sum()) == (kept_gold, golds)


@pytest.mark.usefixtures("all_are_kept")
def test_the_loss_of_mentions_is_of_all_spans():
  """With all spans kept, outputs has the scores of all."""
  app = make()
  params = letters.make_params(app)
  batch = letters.make_batch(app, examples=EXAMPLES[:1], length=7)
  found = jax.jit(app.outputs)(params, batch)
  loss = letters.compiled(app).loss
  terms, _ = loss(params, batch, jax.random.key(0), False)
  for row in range(2):
    scores = np.float64(found["scores"][row])
    valid = np.isfinite(scores)
    # Of 1 and 2 words, within sentences: 3 + 2, 4 + 3; then 2 + 1.
    assert valid.sum() == (12, 3)[row]
    gold = {tuple(m[:3]) for m in np.asarray(batch["mentions"][row]) if m[3]}
    names = (found[n][row] for n in ("segments", "words", "widths"))
    spans = zip(*map(np.ndarray.tolist, map(np.asarray, names)), strict=True)
    is_gold = np.array([span in gold for span in spans])
    sign = np.where(is_gold, -1, 1)[valid]
    expected = np.log1p(np.exp(sign * scores[valid])).sum()
    np.testing.assert_allclose(terms["mentions"][0][row], expected, rtol=1e-3)


def decode(app, examples, params):
  rows = app.make_rows(examples)
  found = {}
  for i in range(len(rows.example)):
    batch = batching.gather_rows(rows, np.array([i]), LENGTH, PAD)
    for name, x in jax.device_get(jax.jit(app.outputs)(params, batch)).items():
      found.setdefault(name, []).append(x[0])
  return app.decode(examples, rows, found, {})


@pytest.mark.usefixtures("all_are_kept")
def test_links_reach_across_the_rows_of_a_document():
  """Same vectors everywhere: each mention links to the nearest one before."""
  app = make(segments=1, max_mention_words=1)
  params = letters.make_params(app)
  params = jax.tree.map(jnp.zeros_like, params)
  dense = params["chains"]["spans"]["label_dense"]
  dense["bias"] = dense["bias"].at[0].set(1.0)
  first, second = decode(app, EXAMPLES, params)
  chain = [tuple(m["words"]) for m in first["chains"][0]]
  assert len(first["chains"]) == 1
  assert chain == [(i, i + 1) for i in range(9)]  # Of three rows.
  assert [m["text"] for m in second["chains"][0]] == ["k", "l"]
  (alone,) = decode(app, EXAMPLES[1:], params)
  assert alone == second
  json.dumps([first, second], allow_nan=False)
  assert coreference_chains.format_prediction(second) == (
    "(y); part 000\n  1: k (0) | l (2)"
  )
  (found,) = decode(app, [text.parse_line("")], params)
  assert found["chains"] == [] and found["tokens"] == []
  assert "(no chains)" in coreference_chains.format_prediction(found)


def test_score_and_tables():
  app = make()
  found = [text.chain_prediction(e, e.chains) for e in EXAMPLES]
  assert app.score(EXAMPLES, found)["conll_f1"] == 1
  files = coreference_chains.format_tables(EXAMPLES, found)
  assert files["gold.conll"] == files["predictions.conll"]
  assert set(files) == {"scores.tsv", "gold.conll", "predictions.conll"}
  with pytest.raises(DataError, match="f:1: no chains; expected"):
    app.require_labels([EXAMPLES[0]._replace(chains=None)])


def test_no_chain_to_learn():
  with pytest.raises(DataError, match="f: no chain in 1 document"):
    coreference_chains.describe_labels(EXAMPLES[1:])
  assert coreference_chains.describe_labels(EXAMPLES) == {"chains": 3}


def test_a_mention_wider_than_a_row_is_refused():
  with pytest.raises(ConfigError, match=r"task\.max_mention_words=6"):
    make(max_mention_words=6)


@pytest.mark.parametrize(
  ("line", "words", "ends"),
  [
    ("Ann ran. She won?! Yes", "Ann ran . She won ? ! Yes", (3, 8)),
    ('{"text": "a. b c"}', "a . b c", (2, 4)),
    ('{"tokens": ["a", ".", "b", "c"]}', "a . b c", (2, 4)),
    ('{"sentences": [["a", "b"], [], ["c"]]}', "a b c", (2, 3)),
    ("", "", ()),
  ],
)
def test_parse_line(line, words, ends):
  found = text.parse_line(line)
  assert found.words == tuple(words.split())
  assert found.sentence_ends == ends
  assert found.chains is None
