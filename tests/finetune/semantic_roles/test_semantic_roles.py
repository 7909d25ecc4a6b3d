"""The task: labels, decoding with given and found predicates, its texts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers import letters
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bio
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats.predicates import Example, Predicate
from maskedlm.finetune.common import batching
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.semantic_roles import semantic_roles, text

TOKENIZER = letters.TOKENIZER
LABELS = bio.all_tags({"V", "A", "C-A"}, "bio")
LENGTH = 13
A = Predicate(1, (Entity("A", 2, 4), Entity("C-A", 4, 5)))
EXAMPLES = [
  Example(tuple("abcde"), (A, Predicate(3, (Entity("A", 0, 3),))), where="f:1"),
  Example(tuple("fg"), (), where="f:7"),
  # Longer than a row; B is a label that training doesn't have.
  Example(
    tuple("hijklmnopqrstuv"),
    (
      *(Predicate(i) for i in range(6)),
      Predicate(7, (Entity("B", 9, 11),)),
      Predicate(12, (Entity("A", 0, 2), Entity("A", 13, 15))),
    ),
    where="f:10",
  ),
]


def make(length=LENGTH, cfg=None):
  return semantic_roles.make_application(
    Setup(TOKENIZER, cfg or reference.config(), {"labels": LABELS}, length),
    semantic_roles.Options(),
  )


def test_labels():
  made = semantic_roles.describe_labels([*EXAMPLES, Example(("z",))])
  assert made == {"labels": bio.all_tags({"A", "B", "C-A", "V"}, "bio")}


@pytest.mark.parametrize(
  ("predicates", "said"),
  [
    ((), "f: no predicate in the whole file"),
    ((Predicate(0), Predicate(1, (Entity("C-V", 2, 3),))), "f: no argument of"),
  ],
)
def test_nothing_to_learn(predicates, said):
  example = Example(tuple("abc"), predicates, where="f:3")
  with pytest.raises(DataError, match=said):
    semantic_roles.describe_labels([example])


@pytest.fixture(scope="module")
def app():
  return make()


@pytest.fixture(scope="module")
def params(app):
  return letters.make_params(app)


@pytest.fixture(scope="module")
def run_outputs(app):
  return jax.jit(app.outputs)


def outputs_of(app, run, params, examples):
  rows = app.make_rows(examples)
  which = np.arange(8)
  which[len(rows.example) :] = -1
  batch = batching.gather_rows(rows, which, LENGTH, letters.PAD)
  made = run(params, batch)
  return rows, {name: list(np.asarray(x)) for name, x in made.items()}


def with_find_bias(params, bias):
  dense = params["words"]["predicate_dense"]
  dense = {**dense, "bias": jnp.full_like(dense["bias"], bias)}
  return {**params, "words": {**params["words"], "predicate_dense": dense}}


def test_found_and_given_predicates(app, params, run_outputs):
  plain = [x._replace(predicates=None) for x in EXAMPLES]
  for bias, share in ((99.0, 1.0), (-99.0, 0.0)):
    biased = with_find_bias(params, bias)
    given = app.decode(
      EXAMPLES, *outputs_of(app, run_outputs, biased, EXAMPLES), {}
    )
    found = app.decode(plain, *outputs_of(app, run_outputs, biased, plain), {})
    for example, one, other in zip(EXAMPLES, given, found, strict=True):
      indices = [p["index"] for p in one["predicates"]]
      assert indices == [p.index for p in example.predicates]
      assert all(p["found"] == bool(share) for p in one["predicates"])
      # Every word is found, in its own window, or none.
      every = list(range(len(example.words))) if share else []
      assert [p["index"] for p in other["predicates"]] == every
      assert "others" not in other
      both = sorted([*indices, *(p["index"] for p in one["others"])])
      assert both == (every if share else indices)
      args = {p["index"]: p["args"] for p in other["predicates"]}
      for p in [*one["predicates"], *one["others"]]:
        assert not share or p["args"] == args[p["index"]]
        assert p["probability"] == share
        covered = [i for a, b, _ in p["args"] for i in range(a, b + 1)]
        assert len(set(covered)) == len(covered)
        # Only V has the predicate's word, and begins there.
        for a, b, label in p["args"]:
          assert (a <= p["index"] <= b) == (label == "V")
          assert label != "V" or a == p["index"]


def test_words_without_a_slot_are_reported(app, capsys):
  """A row of 13 tokens has a slot for all of its words, so two are taken."""
  rows = app.make_rows([Example(tuple("abcde"))])
  outputs = {
    "slots": [np.array([3, 0, -1])],
    "finds": [np.array([2.0, 1.0, -9.0])],
    "tags": [np.zeros((3, LENGTH), np.int32)],
    "left_out": [np.int32(2)],
  }
  (found,) = app.decode([Example(tuple("abcde"))], rows, outputs, {})
  assert [p["index"] for p in found["predicates"]] == [0, 3]
  assert "warning: 2 words that may be" in capsys.readouterr().err


def test_perfect_predictions_have_f1_1():
  app = make(length=16)
  predictions = [
    text.role_prediction(x, [(p, 1.0) for p in x.predicates]) for x in EXAMPLES
  ]
  scores = app.score(EXAMPLES, predictions)
  assert {scores["srl_f1"], scores["predicate_f1"]} == {1.0}
  assert scores["end_to_end_f1"] == 1.0
  tables = semantic_roles.format_tables(EXAMPLES, predictions)
  assert tables["gold.props"] == tables["predicted.props"]


def test_examples_without_predicates_are_not_scored(app):
  only_b = [EXAMPLES[2]._replace(predicates=EXAMPLES[2].predicates[6:7])]
  assert not app.has_label(Example(("a",)))
  with pytest.raises(DataError, match="f:2: no predicates"):
    app.require_labels([*EXAMPLES, Example(("a",), where="f:2")])
  with pytest.raises(DataError, match="knows none of the gold labels"):
    app.require_labels(only_b)


def test_tags_give_back_the_arguments():
  args = (Entity("A0", 0, 2), Entity("A1", 4, 6), Entity("C-V", 6, 7))
  tags = ["B-A0", "I-A0", "O", "B-V", "B-A1", "I-A1", "B-C-V"]
  assert text.read_tags(3, tags, 0) == Predicate(3, args)
  moved = text.read_tags(13, tags, 10)
  assert [x.begin for x in moved.args] == [10, 14, 16]


# --- Lines of input and output ---


def test_lines():
  made = text.parse_line("Ann slept.")
  assert made.words == ("Ann", "slept", ".") and made.predicates is None
  assert text.parse_line('{"tokens": ["a", "b"]}').words == ("a", "b")
  made = text.parse_line('{"words": ["a", "b"], "predicates": [{"index": 1}]}')
  assert made.predicates == (Predicate(1),) and not made.has_args


@pytest.mark.parametrize(
  ("line", "said"),
  [
    ('{"predicates": [{"index": 1}]}', "no 'words' or 'tokens'"),
    ('{"words": ["a"], "predicates": [{"index": 1}]}', "index 1, but"),
    ('{"word": ["a"]}', "no 'words' or 'tokens'; there are 'word'"),
  ],
)
def test_bad_lines(line, said):
  with pytest.raises(DataError, match=said):
    text.parse_line(line)


def test_text_for_people():
  example = Example(tuple("abcde"), name="x")
  made = text.role_prediction(example, [(A, 2.0), (Predicate(4), 0.0)])
  assert made["predicates"][0] == {
    "index": 1,
    "word": "b",
    "probability": 0.8808,
    "args": [[2, 3, "A"], [4, 4, "C-A"]],
  }
  assert text.format_prediction(made).splitlines() == [
    "a b c d e",
    "  b: a [V b] [A c d] [C-A e]",
    "  e: a b c d [V e]",
  ]
  nothing = text.role_prediction(example, [])
  assert text.format_prediction(nothing).splitlines()[1] == "  (no predicate)"
