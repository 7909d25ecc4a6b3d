"""The probability that a text follows another, as transformers has it."""

import numpy as np
import pytest

PAIRS = [
  ("a JSON encoder.", "it is decoded"),
  ("is", "the values of a list are encoded in a string, or not"),
  ("a list " * 20, "is a list " * 20),  # Longer than a row of 40.
]


def test_equals_transformers(imported, capsys):
  torch = pytest.importorskip("torch")
  theirs, model = imported("Bert")
  tokenizer = model.tokenizer
  capsys.readouterr()
  found = model.next_sentence(PAIRS)
  assert found.shape == (3,) and found.dtype == np.float32
  assert "1 example was cut to 40 tokens" in capsys.readouterr().err
  special = tokenizer.special
  for (a, b), p in zip(PAIRS, found, strict=True):
    a, b = (list(tokenizer.encode(text).ids) for text in (a, b))
    while len(a) + len(b) > 37:  # As in run_classifier.py.
      (a if len(a) > len(b) else b).pop()
    ids = [special.cls, *a, special.sep, *b, special.sep]
    types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
    with torch.no_grad():
      logits = theirs(
        input_ids=torch.tensor(ids)[None],
        token_type_ids=torch.tensor(types)[None],
      ).seq_relationship_logits
    assert p == pytest.approx(torch.softmax(logits, -1)[0, 0].item(), abs=1e-4)
  assert len({*np.round(found, 3)}) == 3  # They can't be confused.
  assert model.next_sentence([]).shape == (0,)
