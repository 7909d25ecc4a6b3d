"""Relations: markers, rows, heads, predictions, labels."""

import functools
import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers import letters
from helpers.letters import CLS, SEP, make_params
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data.labelled.formats.relations import Example, Mention
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, train_tokenizer
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.relations import relations
from maskedlm.finetune.relations import rows as relation_rows
from maskedlm.finetune.relations.relations import Options
from maskedlm.finetune.relations.rows import Markers, TokenizedMentions
from maskedlm.training.step import totals

UNUSED = {3: "[unused1]", 4: "[unused3]", 5: "[unused2]", 6: "[unused10]"}
TOKENIZER = types.SimpleNamespace(
  **vars(letters.TOKENIZER),
  special_ids=np.arange(7),
  tokens=lambda i: UNUSED.get(i, "x"),
)
LABELS = ["Other", "A-B(e1,e2)", "A-B(e2,e1)", "kin"]
LENGTH = 13


def example(text, e1, e2, relation=None, **fields):
  """Returns an example whose entities are given by their letters."""
  first, second = text.index(e1), text.index(e2)
  return Example(
    text,
    Mention(first, first + len(e1)),
    Mention(second, second + len(e2)),
    relation,
    **fields,
  )


EXAMPLES = [
  example("a b c d", "b c", "d", "kin", id="1", where="f:1"),
  example("a b c", "c", "a", "A-B(e2,e1)", id="2", where="f:5"),
  example("a b c d e f g h i j k", "e", "g", "Other", id="3", where="f:9"),
]


make_batch = functools.partial(
  letters.make_batch, examples=EXAMPLES, length=LENGTH
)


def make(cfg=None, length=LENGTH, **options):
  cfg = cfg or reference.config()
  label_info, options = {"labels": LABELS}, Options(**options)
  return relations.make_application(
    Setup(TOKENIZER, cfg, label_info, length), options
  )


# --- Markers and rows ---


def test_the_markers_of_a_bert_vocabulary(tmp_path):
  names = ["[PAD]", *(f"[unused{i}]" for i in range(12)), "[UNK]", "[CLS]"]
  path = tmp_path / "vocab.txt"
  path.write_text("\n".join([*names, "[SEP]", "[MASK]", "a", "b"]))
  e1, e2 = relation_rows.make_markers(load_tokenizer(path))
  assert [x.tolist() for x in (*e1, *e2)] == [[1], [2], [3], [4]]


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_markers_are_spelt_without_unused_tokens(kind):
  """Spelt as in the middle of a text."""
  text = "the < e1 > cat < / e2 > and <e2> </e1> dog"
  size = {"wordpiece": 60, "bpe": 290, "unigram": 23}[kind]
  made = train_tokenizer(
    20 * [text], kind=kind, vocab_size=size, lowercase=True
  )
  e1, e2 = relation_rows.make_markers(made)
  spelt = np.concatenate([*e1, *e2])
  assert made.special.unk not in spelt
  expected = made.encode("the <e1> </e1> <e2> </e2>").ids
  assert spelt.tolist() == expected[len(made.encode("the").ids) :].tolist()


def test_a_tokenizer_that_cannot_spell_markers():
  made = train_tokenizer(
    ["the cat"], kind="wordpiece", vocab_size=30, lowercase=True
  )
  with pytest.raises(ConfigError, match=r"set --config\.task\.pair=spans"):
    relation_rows.make_markers(made)


def insert(spans, count=5):
  def ids(*values):
    return np.array(values, np.int32)

  markers = Markers(ids(91, 92), ids(93)), Markers(ids(94), ids(95, 96))
  piece = TokenizedMentions(
    np.arange(count, dtype=np.int32), np.array(spans), False
  )
  made, starts, moved = relation_rows.insert_markers(piece, markers)
  assert made[starts].tolist() == [91, 94]
  for (first, last), (a, b) in zip(spans, moved.tolist(), strict=True):
    assert (made[a], made[b]) == (first, last)
  return made.tolist()


@pytest.mark.parametrize(
  ("spans", "expected"),
  [
    ([[1, 2], [4, 4]], [0, 91, 92, 1, 2, 93, 3, 94, 4, 95, 96]),
    ([[4, 4], [0, 0]], [94, 0, 95, 96, 1, 2, 3, 91, 92, 4, 93]),
    # One after the other; one in the other; the same; half of each other.
    ([[1, 2], [3, 3]], [0, 91, 92, 1, 2, 93, 94, 3, 95, 96, 4]),
    ([[1, 3], [3, 3]], [0, 91, 92, 1, 2, 94, 3, 95, 96, 93, 4]),
    ([[1, 1], [1, 3]], [0, 94, 91, 92, 1, 93, 2, 3, 95, 96, 4]),
    ([[2, 2], [2, 2]], [0, 1, 91, 92, 94, 2, 95, 96, 93, 3, 4]),
    ([[1, 2], [2, 3]], [0, 91, 92, 1, 94, 2, 93, 3, 95, 96, 4]),
  ],
)
def test_insert(spans, expected):
  assert insert(spans) == expected


def test_rows_with_markers():
  rows = make(pair="markers").make_rows(EXAMPLES)
  found = [x.tolist() for x in rows.tokens["input_ids"]]
  assert found == [
    [CLS, 10, 3, 11, 12, 5, 4, 13, 6, SEP],
    [CLS, 4, 10, 6, 11, 3, 12, 5, SEP],
    # 13 - 2 - 4 = 7 of 11 tokens: e f g and two on each side.
    [CLS, 12, 13, 3, 14, 5, 15, 4, 16, 6, 17, 18, SEP],
  ]
  assert len(rows.cut) == 1
  assert rows.example.tolist() == [0, 1, 2]
  values = {name: x.tolist() for name, x in rows.values.items()}
  assert values == {
    "starts": [[2, 6], [5, 1], [3, 7]],
    "spans": [[[3, 4], [7, 7]], [[6, 6], [2, 2]], [[4, 4], [8, 8]]],
    "labels": [3, 2, 0],
  }
  assert all(x.dtype == np.int32 for x in rows.values.values())
  assert all(not x.any() for x in rows.tokens["token_type_ids"])


def test_rows_without_markers():
  rows = make(pair="spans", length=11).make_rows(EXAMPLES[:2])
  assert rows.tokens["input_ids"][0].tolist() == [CLS, 10, 11, 12, 13, SEP]
  assert rows.values["spans"].tolist() == [[[2, 3], [4, 4]], [[3, 3], [1, 1]]]
  assert not rows.cut


def test_an_unseen_relation():
  unknown = EXAMPLES[0]._replace(relation="A-C(e1,e2)", where="dev.txt:41")
  app = make()
  rows = app.make_rows([EXAMPLES[1], unknown])
  assert rows.values["labels"].tolist()[1] == -1
  assert rows.notes == (
    "gold labels that are not in the training set: 1 (1 different), such "
    "as 'A-C(e1,e2)' (dev.txt:41); they are left out of the loss and "
    "count as wrong",
  )
  # Gold has two relations, one is correct: f1 is the mean of 1 and 0.
  gold = [EXAMPLES[0]._replace(relation="A-B(e1,e2)"), unknown]
  scores = app.score(gold, [{"relation": "A-B(e1,e2)"}] * 2)
  assert (scores["recall"], scores["accuracy"]) == (1 / 2, 1 / 2)
  assert scores["f1"] == (2 / 3 + 0) / 2  # Precision of the first is 1/2.

  # Other says nothing about whether the names are the model's.
  other = EXAMPLES[0]._replace(relation="Other")
  app.require_labels([EXAMPLES[1], unknown, other])
  with pytest.raises(DataError, match=r"'A-C.e1,e2.'; the model's are"):
    app.require_labels([unknown, other])


# --- The heads ---


def logits_by_hand(params, cfg, batch, pair):
  p = reference.as_float64(params["relation_head"])
  made = []
  for i in range(len(batch["input_ids"])):
    z = reference.encode(
      params["encoder"],
      cfg,
      *(
        batch[name][i]
        for name in ("input_ids", "token_type_ids", "segment_ids")
      ),
    )
    starts, spans = batch["starts"][i], batch["spans"][i]
    x = {
      "markers": [z[0]],
      "markers_start": [z[starts[0]], z[starts[1]]],
      "spans": [*(z[a : b + 1].mean(axis=0) for a, b in spans), z[0]],
    }[pair]
    x = np.concatenate(x) @ p["hidden_dense"]["kernel"]
    x = reference.activate(x + p["hidden_dense"]["bias"], cfg)
    made.append(x @ p["score_dense"]["kernel"] + p["score_dense"]["bias"])
  return np.array(made)


@pytest.mark.parametrize("pair", list(relations.PAIRS))
def test_outputs_and_loss_by_hand(pair):
  cfg = reference.config()
  app = make(cfg, pair=pair)
  params, batch = make_params(app), make_batch(app, fillers=2, length=15)
  expected = logits_by_hand(params, cfg, batch, pair)[:3]
  found = jax.jit(app.outputs)(params, batch)["logits"]
  assert found.shape == (5, 4) and found.dtype == jnp.float32
  np.testing.assert_allclose(found[:3], expected, rtol=1e-3, atol=1e-3)
  compute = jax.jit(lambda *xs: totals(app.loss(*xs)), static_argnums=3)
  terms, stats = compute(params, batch, jax.random.key(0), False)
  total = sum(
    reference.cross_entropy(x, label)
    for x, label in zip(expected, [3, 2, 0], strict=True)
  )
  np.testing.assert_allclose(terms["relation"], (total, 3), rtol=1e-3)
  correct = sum(np.argmax(expected, axis=1) == [3, 2, 0])
  assert tuple(map(float, stats["accuracy"])) == (correct, 3)


# --- Predictions ---


def predict(examples, logits):
  app = make()
  outputs = {"logits": [np.float32(x) for x in logits]}
  return app.decode(examples, app.make_rows(examples), outputs, {})


def test_decode_format_and_export():
  found = predict(EXAMPLES, [[0, 0, 0, np.log(5)], [1, 0, 0, 0], [-1, 3, 0, 0]])
  assert found[0]["probabilities"] == pytest.approx(
    {"Other": 1 / 8, "A-B(e1,e2)": 1 / 8, "A-B(e2,e1)": 1 / 8, "kin": 5 / 8}
  )
  assert found[0]["probability"] == pytest.approx(5 / 8)
  described = {k: v for k, v in found[0].items() if "proba" not in k}
  assert described == {
    "id": "1",
    "text": "a b c d",
    "e1": "b c",
    "e1_offset": 2,
    "e2": "d",
    "e2_offset": 6,
    "relation": "kin",
  }
  assert relations.format_prediction(found[0]) == "kin\t0.625\tb c\td"
  json.dumps(found, allow_nan=False)
  answers = "1\tkin\n2\tOther\n3\tA-B(e1,e2)\n"
  assert relations.export_predictions(found) == {
    "proposed_answers.txt": answers
  }
  files = relations.format_tables(EXAMPLES, found)
  assert files["proposed_answers.txt"] == answers
  assert files["answer_key.txt"] == "1\tkin\n2\tA-B(e2,e1)\n3\tOther\n"
  assert "kin\t1\t0\t1\t1\t1.0000" in files["relations.tsv"]
  assert files["confusion.tsv"].startswith("gold \\ predicted\tA-B(e1,e2)")


def test_score():
  """kin is correct; A-B has 1 gold, predicted as Other, and 1 false: 0."""
  found = predict(EXAMPLES, [[0, 0, 0, 2], [1, 0, 0, 0], [-1, 3, 0, 0]])
  values = make().score(EXAMPLES, found)
  assert (values["f1"], values["accuracy"]) == (0.5, pytest.approx(1 / 3))
  app = make(other="kin")  # Then A-B and Other are averaged, both 0.
  assert app.score(EXAMPLES, found)["f1"] == 0.0
  with pytest.raises(DataError, match=r"f:1: no relation; expected"):
    app.score([EXAMPLES[0]._replace(relation=None)], found[:1])


def test_parse_line():
  marked = "\U0001f600 The <e1>cafe\u0301</e1> in <e2>中文</e2>"
  plain = relations.parse_line(marked)
  assert plain.text[slice(*plain.e1)] == "cafe\u0301"
  as_json = {"text": marked}
  assert relations.parse_line(json.dumps(as_json)) == plain
  fields = {"text": plain.text, "e1": "cafe\u0301", "e2": "中文"}
  fields |= {"e1_offset": plain.e1.begin, "e2_offset": plain.e2.begin}
  assert relations.parse_line(json.dumps(fields)) == plain


# --- Options ---


def test_labels():
  assert relations.describe_labels(EXAMPLES, Options()) == {"labels": LABELS}
  two = [EXAMPLES[0], EXAMPLES[0]._replace(relation="A-C(e1,e2)")]
  assert len(relations.describe_labels(two, Options())["labels"]) > 1
  with pytest.raises(DataError, match=r"f: all 2 examples .* 'kin'; expected"):
    relations.describe_labels(2 * EXAMPLES[:1], Options())
  with pytest.raises(DataError, match=r"f:1: no relation; expected"):
    relations.describe_labels([EXAMPLES[0]._replace(relation=None)], Options())


def test_the_option_other_is_checked(capsys):
  with pytest.raises(
    ConfigError, match=r"but 'Other' is: --config\.task\.other"
  ):
    relations.describe_labels(EXAMPLES, Options(other="other"))
  assert not capsys.readouterr().err
  made = relations.describe_labels(EXAMPLES, Options(other="Othr"))
  assert made == {"labels": sorted(LABELS)}
  assert capsys.readouterr().err == (
    "task.other='Othr' is no relation in the training set, so all 3 are "
    'counted in f1 (did you mean "Other"?)\n'
  )
  relations.describe_labels(EXAMPLES, Options(other=""))
  relations.describe_labels(EXAMPLES, Options())
  assert not capsys.readouterr().err


def test_options_that_cannot_be():
  with pytest.raises(
    ConfigError, match=r"data.length=7 .* expected at least 8"
  ):
    make(length=7)
  make(length=8).make_rows(EXAMPLES)
