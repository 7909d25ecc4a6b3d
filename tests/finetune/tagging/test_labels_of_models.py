"""Labels of imported models, which may mean tags of other schemes."""

import numpy as np
import pytest

from helpers.english_tokenizer import english_tokenizer
from maskedlm.data.labelled import label_scheme
from maskedlm.finetune.common.head import Head
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.tagging import tagging
from maskedlm.finetune.tagging.tagging import Example, Options
from maskedlm.interop import labels as task_labels


@pytest.mark.parametrize(
  ("labels", "gold", "raw"),
  [
    (  # As in BERT's own script.
      ["X", "[CLS]", "O", "B-PER", "I-PER", "[SEP]"],
      "O B-PER I-PER O",
      "X B-PER I-PER [SEP]",
    ),
    (["O", "B-A", "I-A", "E-A", "S-A"], "B-A E-A O S-A", None),
    (["O", "B-A", "M-A", "E-A", "S-A"], "B-A E-A O S-A", None),
    (["O", "b-A", "i-A"], "B-A I-A O B-A", "b-A i-A O b-A"),
    (["A_B", "A_I", "O"], "B-A I-A O B-A", "A_B A_I O A_B"),
    (["B", "I", "O"], "B I O B", None),
    (["O", "PER", "LOC"], "B-PER I-PER O B-LOC", "PER PER O LOC"),
    (["O", "B-A", "I-A", "L-A", "U-A"], "B-A E-A O S-A", "B-A L-A O U-A"),
    # IOB1, in which no two entities of type A ever met.
    (["O", "I-A", "I-B", "B-B"], "B-A I-A B-B B-B", "I-A I-A I-B B-B"),
    (["PER", "LOC"], "PER LOC LOC PER", None),
  ],
)
def test_a_perfect_prediction_of_an_imported_model(labels, gold, raw):
  config = {"id2label": {str(i): label for i, label in enumerate(labels)}}
  task = task_labels.read_task(config, "tagging", 64, "here")
  assert task["about"]["labels"] == labels
  options = Options(**task["options"])
  app = tagging.make_tagger(
    Setup(english_tokenizer("wordpiece"), None, task["about"], 24),
    options,
    Head(lambda key: {}, lambda *args: None),
  )
  example = Example(tuple("abcd"), tuple(gold.split()), lines=(1, 2, 3, 4))
  rows = app.make_rows([example])
  assert rows.notes == ()
  tags = np.array([labels.index(tag) for tag in (raw or gold).split()])
  assert len(tags) == 4
  outputs = {"tags": [tags], "probabilities": [np.ones(4)]}
  (prediction,) = app.decode([example], rows, outputs, {})
  assert prediction["tags"] == gold.split()
  scores = app.score([example], [prediction])
  assert scores["accuracy"] == 1
  if options.task == "ner":
    assert scores["f1"] == scores["strict_f1"] == 1


def test_the_scheme_of_labels():
  of = label_scheme.detect_label_scheme
  assert of(["O", "I-A"]) == of(["B-A", "I-A", "X"]) == "bio"
  assert of(["B-A", "E-A"]) == of(["B-A", "U-A"]) == of(["I-A", "L-A"])
  assert of(["B-A", "S-A"]) == "bioes"
  assert of(["NOUN", "X"]) is of(["LABEL_0"]) is None
  # The first O is the tag; labels that are not tags have no id and mean O.
  found = label_scheme.read_labels(["X", "O", "B-", "B-A", "I-A"], "bio")
  assert found.tags == ("O", "O", "O", "B-A", "I-A")
  assert found.ids == {"O": 1, "B-A": 3, "I-A": 4} and not found.is_iob1
  # The first of two labels for a tag counts; IOB1's I-B also begins a B.
  found = label_scheme.read_labels(["O", "I-A", "I-B", "B-A", "I-B"], "bio")
  assert found.ids == {"O": 0, "I-A": 1, "I-B": 2, "B-A": 3, "B-B": 2}
  assert found.is_iob1
  # A model may have no label for the beginning of a longer A.
  found = label_scheme.read_labels(["O", "I-A", "E-A", "S-A"], "bioes")
  assert "B-A" not in found.ids and not found.is_iob1
