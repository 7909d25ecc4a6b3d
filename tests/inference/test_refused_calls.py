"""Refused calls of the Python interface: a table of model, call and error."""

import types

import pytest

from maskedlm.inference import fill_mask, token_model


def hide(model, text):
  filler = token_model.make_token_model(model.opened, model.path)
  return fill_mask.predict_masked(filler, text, top_k=3)


TABLE = {
  "pretrained": [
    (lambda m: m.fill_mask("no mask"), r"no \[MASK\] in 'no mask'"),
    (
      lambda m: m.fill_mask("[MASK] " + "the " * 45 + "[MASK]"),
      "has 49 tokens, and 49 from its first .MASK. to its last; the model takes"
      " 48: cut it",
    ),
    (lambda m: m.fill_mask("[MASK]", top=0), "top=0: expected at least 1"),
    (lambda m: m.embed("a text"), "texts is one string, 'a text'"),
    (lambda m: m.encode([None]), r"texts\[0\] is None: expected a string"),
    (lambda m: m.embed(["a", float("nan")]), r"texts\[1\] is nan"),
    (lambda m: m.embed(["a"], layers=(3,)), "layers has 3: the encoder has 2"),
    (lambda m: m.vectors(["a"], unit="wrd"), 'did you mean "word"'),
    (lambda m: m.embed(["a"], layers=None), "layers=None: expected numbers"),
    (lambda m: m.embed({"text": "a"}), r"texts is a dict: .*; put it in \[ \]"),
    (lambda m: m.embed(FRAME), r"is a SimpleNamespace: .* list\(df\['text'\]"),
    (lambda m: m.fill_mask(None), "text is None: expected a string"),
    (lambda m: m.attend(None), "text is None: expected a string"),
    (lambda m: m.attend(""), "has no token"),
    (lambda m: m.predict(["a"]), "was pretrained, not fine-tuned: run"),
    (lambda m: m.score("a text"), "texts is one string"),
    (lambda m: m.score(["a"], pll="r2l"), r"pll='r2l'.*original"),
    (lambda m: m.next_sentence([("a", "b")]), "no NSP head"),
    (lambda m: m.next_sentence(["ab"]), r"pairs\[0\] is 'ab'"),
    (lambda m: m.next_sentence([("a", "b", "c")]), r"pairs\[0\]"),
    (lambda m: m.similarity([("a", "*b*")]), "no word is marked"),
    (lambda m: m.similarity([MARKED], layers=5), "layers=5: expected numbers"),
    (lambda m: m.similarity([MARKED], layers=(0.5,)), r"layers=\(0.5,\): exp"),
    (lambda m: m.evaluate([" "]), "nothing can be masked"),
    (lambda m: m.evaluate(["a"], mask_rate=0.0), "mask_rate=0"),
    (lambda m: hide(m, "the cat"), "no word is marked"),
    (
      lambda m: hide(m, "*a|b|c* cat"),
      r"\*a\|b\|c\* is not a marked word; exp",
    ),
    (
      lambda m: hide(m, "the *cat|roasted* sat"),
      "'roasted' has .* 'cat', .* 1; expected as many",
    ),
    (lambda m: hide(m, "the *\u200b* sat"), "has no token"),
    (lambda m: hide(m, "the " * 50 + "*cat*"), "has 53 tokens .* at most 48"),
  ],
  "tagger": [
    (lambda m: m.fill_mask("[MASK]"), "has no MLM head.*can't fill masks"),
    (lambda m: m.predict({"a", "b"}), "is a set: .* as a set has no order"),
    (lambda m: m.predict([3]), "expected a string or a dict"),
    (lambda m: m.predict([{"a": {1}}]), "written as JSON: exp"),
    (
      lambda m: m.predict([{"txt": ""}]),
      "no 'text' or 'tokens'; there are 'txt'",
    ),
    (lambda m: m.predict(["a"], batch_size=0), "batch_size=0"),
  ],
  "causal": [
    (lambda m: m.score(["a"], pll="l2r"), r"pll='l2r'.*masks nothing"),
    (lambda m: m.evaluate(["a text"]), "from one side, and reads no masks"),
    (lambda m: hide(m, "the *cat*"), "from one side, and reads no masks"),
  ],
  "bilm": [
    (lambda m: m.fill_mask("[MASK] [MASK]"), "2 times .MASK.*all but one"),
    (lambda m: m.score(["a"], pll="l2r"), r"pll='l2r'.*masks nothing"),
    (lambda m: hide(m, "the *cat*"), "from one side, and reads no masks"),
    (
      lambda m: m.evaluate(["the cat sat"]),
      "from one side, and reads no masks",
    ),
    (lambda m: m.attend("the cat sat"), r"'bilm'.*no attention"),
  ],
}


MARKED = ("the *cat*", "a *cat*")
FRAME = types.SimpleNamespace(columns=["text"])  # A DataFrame, or like one.


@pytest.mark.parametrize(
  ("name", "ask", "message"),
  [(name, *row) for name, rows in TABLE.items() for row in rows],
)
def test_refused(request, name, ask, message):
  model = request.getfixturevalue(name)
  with pytest.raises(ValueError, match=message) as found:
    ask(model)
  assert "\n" not in str(found.value) and found.value.exit_code == 2
