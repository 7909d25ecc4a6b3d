"""Measuring a pretrained model: by hand, and against transformers."""

import itertools
import json

import numpy as np
import pytest

from maskedlm.inference.pretrained import evaluate, sentence_pairs

# Three documents; the second is one sentence, the third is longer than a row.
TEXTS = [
  "The cat sat on the mat. She sold a red book.\nThe man saw the cat.",
  "A man sat there",
  "The function returns a list of the values. " * 5 + "It raised an error.",
]


@pytest.fixture
def model(pretrained):
  return pretrained


def test_documents_are_cut_into_rows_of_their_own(model):
  special = model.tokenizer.special
  documents = [np.arange(20, 27), np.arange(0), np.arange(30, 33)]
  rows = evaluate.cut_rows(model.tokenizer, documents, 5)
  assert [list(row) for row in rows] == [
    [special.cls, 20, 21, 22, special.sep],
    [special.cls, 23, 24, 25, special.sep],
    [special.cls, 26, special.sep],
    [special.cls, 30, 31, 32, special.sep],
  ]


def mask(model, rows, *, mask_rate=0.25, seed=3):
  tokenizer, length = model.tokenizer, 30
  corrupt = evaluate.make_corruption(tokenizer, length, mask_rate)
  return list(
    evaluate.mask_rows(tokenizer, rows, corrupt, length=length, seed=seed)
  )


def test_masks_hide_a_share_of_the_tokens_and_depend_on_the_seed(model):
  special = model.tokenizer.special
  ids = np.setdiff1d(np.arange(60), model.tokenizer.special_ids)
  rows = [np.r_[special.cls, ids[:n], special.sep] for n in (10, 26, 1)]
  made = mask(model, rows)
  assert [len(row.labels) for row in made] == [3, 7, 1]  # 12, 28 and 3 / 4.
  for row, (ids, positions, labels, _) in zip(rows, made, strict=True):
    assert np.all(ids[positions] == special.mask)
    np.testing.assert_array_equal(labels, row[positions])
    seen = np.ones(len(row), bool)
    seen[positions] = False
    np.testing.assert_array_equal(ids[seen], row[seen])
  same, other = (mask(model, rows, seed=seed) for seed in (3, 4))
  assert list(same[1].positions) == list(made[1].positions)
  assert list(other[1].positions) != list(made[1].positions)
  # Also of the row's number, in its whole group and beyond.
  many = mask(model, itertools.chain(rows, rows[1:2] * evaluate.ROWS))
  assert len(many) == 3 + evaluate.ROWS
  assert list(many[1].positions) == list(made[1].positions)
  assert len({tuple(row.positions) for row in many[3:]}) > 100


class Label:
  """A generator whose coin is known."""

  def __init__(self, *coins):
    self.coins = list(coins)

  def random(self):
    return self.coins.pop(0)

  def integers(self, n):
    return n - 1


def test_pairs_are_neighbours_or_of_two_documents():
  documents = [
    (np.arange(10), np.array([3, 0, 3, 4])),  # 2 sentences, then 1: too few.
    (np.arange(20, 25), np.array([5])),
    (np.arange(30, 36), np.array([4, 2])),
  ]

  def pairs(*coins, swap=False, documents=documents):
    made = sentence_pairs.make_pairs(
      documents, length=11, swap=swap, rng=Label(*coins)
    )
    return [(list(p.first), list(p.second), p.label) for p in made]

  one, two = ([0, 1, 2], [3, 4, 5], 0), ([30, 31, 32, 33], [34, 35], 0)
  assert pairs(0.1, 0.2) == [one, two]
  assert pairs(0.9, 0.2) == [([0, 1, 2], [34, 35], 1), two]
  assert pairs(0.9, 0.2, swap=True) == [([3, 4, 5], [0, 1, 2], 1), two]
  # There is no other document.
  assert pairs(0.9, documents=documents[:2]) == [one]


def test_figures(model):
  found = model.evaluate(TEXTS, seed=1, mask_rate=0.3)
  assert found["documents"] == 3 and found["seed"] == 1
  assert found["characters"] == sum(map(len, TEXTS))
  assert found["tokens"] == sum(len(model.tokenize(text).ids) for text in TEXTS)
  assert found["perplexity"] == pytest.approx(np.exp(found["mlm_loss"]))
  bits = found["mlm_loss"] / np.log(2) * found["tokens"] / found["characters"]
  assert found["bits_per_character"] == pytest.approx(bits)
  again = model.evaluate(TEXTS, seed=1, mask_rate=0.3, batch_size=1)
  assert found == pytest.approx(again, rel=1e-6)
  other = model.evaluate(TEXTS, seed=2, mask_rate=0.3)
  assert other["mlm_loss"] != found["mlm_loss"]


def test_the_verb_reads_files_sources_and_stdin(run, model, tmp_path, verb):
  def measured(*argv, **how):
    return verb("evaluate", "--checkpoint", run, *argv, **how).out

  expected = model.evaluate(TEXTS)
  file = tmp_path / "a.txt"
  file.write_text("\n\n".join(TEXTS))
  for data in (file, "-"):
    made = measured("--data", data, "--json", stdin=file.read_bytes())
    assert json.loads(made) == pytest.approx(expected)
  lines = measured("--data", f"lines:{file}")
  assert "4 documents" in lines and "bits per character" in lines
  rows = tmp_path / "a.jsonl"
  rows.write_text("".join(json.dumps({"t": x}) + "\n" for x in TEXTS[1:2]))
  made = measured("--data", f"jsonl:{rows}", "--field=t", "--json")
  assert json.loads(made)["documents"] == 1


def by_transformers(model, theirs, rows):
  """Returns (loss, accuracy) of masked rows, one row at a time."""
  torch = pytest.importorskip("torch")
  losses, right = [], []
  for row in rows:
    with torch.no_grad():
      out = theirs(input_ids=torch.tensor(np.int64([row.ids])))
    logits = getattr(out, "prediction_logits", None)
    logits = out.logits if logits is None else logits
    picked = logits[0, torch.tensor(np.int64(row.positions))]
    labels = torch.tensor(np.int64(row.labels))
    losses += torch.nn.functional.cross_entropy(
      picked, labels, reduction="none"
    ).tolist()
    right += (picked.argmax(-1) == labels).tolist()
  return np.mean(losses), np.mean(right)


@pytest.mark.parametrize(
  ("architecture", "ending"),
  [("Bert", "ForPreTraining"), ("Roberta", "ForMaskedLM")],
)
def test_equals_a_loop_over_transformers(architecture, ending, imported):
  torch = pytest.importorskip("torch")
  theirs, model = imported(architecture)
  found = model.evaluate(TEXTS, seed=5, mask_rate=0.3, batch_size=4)

  ids = [model.tokenize(text).ids for text in TEXTS]
  length = found["length"]
  rows = evaluate.mask_rows(
    model.tokenizer,
    evaluate.cut_rows(model.tokenizer, ids, length),
    evaluate.make_corruption(model.tokenizer, length, 0.3),
    length=length,
    seed=5,
  )
  loss, accuracy = by_transformers(model, theirs, rows)
  assert found["mlm_loss"] == pytest.approx(loss, abs=1e-4)
  assert found["mlm_accuracy"] == pytest.approx(accuracy, abs=1e-6)
  if ending != "ForPreTraining":
    assert "nsp_accuracy" not in found
    return
  counts = evaluate.Counter()
  documents = [text.splitlines() for text in TEXTS]
  (chunk,) = evaluate.encode_chunks(model.tokenizer, documents, counts)
  pairs = sentence_pairs.make_pairs(
    chunk, length=length, swap=False, rng=np.random.default_rng(5)
  )
  assert found["nsp_pairs"] == len(pairs) > 2
  special, losses, right = model.tokenizer.special, [], []
  for first, second, label in pairs:
    ids = [special.cls, *first, special.sep, *second, special.sep]
    types = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    with torch.no_grad():
      logits = theirs(
        input_ids=torch.tensor([list(map(int, ids))]),
        token_type_ids=torch.tensor([types]),
      ).seq_relationship_logits
    losses.append(
      torch.nn.functional.cross_entropy(logits, torch.tensor([label])).item()
    )
    right.append(int(logits.argmax()) == label)
  assert found["nsp_loss"] == pytest.approx(np.mean(losses), abs=1e-4)
  assert found["nsp_accuracy"] == np.mean(right)
