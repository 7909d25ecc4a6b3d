"""The probability of hidden words: by maskedlm score, and by hand."""

import jax
import numpy as np
import pytest

import maskedlm
from helpers import untrained
from maskedlm.cli import main
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.inference import fill_mask
from maskedlm.modeling import heads


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  folder = tmp_path_factory.mktemp("masked") / "run"
  return maskedlm.load(untrained.pretrained(folder))


def predict(model, text, top_k=3):
  return fill_mask.predict_masked(model.opened, model.path, text, top_k=top_k)


def test_all_tokens_of_masked_words_are_hidden(model):
  made = predict(model, "the *cat* sat, *roasted* !")
  text = "the cat sat, roasted !"
  offsets = model.tokenize(text).offsets
  words = [text[a:b] for a, b in offsets]
  hidden = [i for i, (a, _) in enumerate(offsets) if 4 <= a < 7 or 13 <= a < 20]
  assert len(hidden) > 2
  assert [x.position - 1 for x in made.masked] == hidden
  assert [x.token.removeprefix("##") for x in made.masked] == [
    words[i] for i in hidden
  ]
  assert [i - 1 for i, t in enumerate(made.tokens) if t == "[MASK]"] == hidden
  assert made.tokens[0] == "[CLS]" and made.tokens[-1] == "[SEP]"
  assert made.loss == pytest.approx(np.mean([x.loss for x in made.masked]))


def test_a_single_mask_equals_score(model):
  (cat,) = predict(model, "the *cat* sat, roasted !").masked
  (score,) = model.score(["the cat sat, roasted !"])
  assert -cat.loss == pytest.approx(score.log_probabilities[1], abs=1e-4)
  assert cat.probability == pytest.approx(np.exp(-cat.loss))
  shares = [p for _, p in cat.best]
  assert len(shares) == 3 and shares == sorted(shares, reverse=True)


def test_a_word_in_the_place_of_another(model):
  made = predict(model, r"a \* *the|a* dog *cat|cat*")
  the, cat = made.masked
  assert (the.token, the.position, made.tokens[3]) == ("the", 3, "a")
  assert (cat.token, made.tokens[cat.position]) == ("cat", "cat")
  # By hand: the head's softmax of the text as it is read.
  special = model.tokenizer.special
  ids = model.tokenize("a * a dog cat").ids
  row = np.int32([[special.cls, *ids, special.sep]])
  batch = {"input_ids": row, "token_type_ids": 0 * row}
  batch["segment_ids"] = 0 * row + 1
  parts = {k: model.opened.params[k] for k in ("encoder", "mlm_head")}
  logits = jax.jit(
    lambda p: heads.mlm_logits(p, model.cfg, batch, np.array([[3]]))
  )
  p = np.exp(np.float64(logits(parts)[0, 0]))
  (label,) = model.tokenize("the").ids
  assert the.probability == pytest.approx(p[label] / p.sum(), rel=1e-4)


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("the cat", "no word is marked"),
    ("the *cat", "one is not closed"),
    ("the ** cat", r"\*\* is not a marked word; expected"),
    ("the *a|b|c* cat", r"\*a\|b\|c\* is not a marked word; expected"),
    ("the *cat|roasted* sat", "'roasted' has .* 'cat', .* 1; expected as many"),
    ("the *cat|* sat", "'' has 0 tokens"),
    ("the *\u200b* sat", "has no token"),
    ("the " * 50 + "*cat*", "has 53 tokens with .* at most 48"),
  ],
  ids=range(8),
)
def test_wrong_texts(model, text, message):
  with pytest.raises((ConfigError, DataError), match=message) as found:
    predict(model, text)
  assert "\n" not in str(found.value)


def test_the_picture(tmp_path, capsys):
  workdir = untrained.pretrained(tmp_path / "run")
  command = ["plot", "masks", f"--checkpoint={workdir}"]
  out = f"--out={tmp_path}/a.png"
  text = "The *$cat* sat on *the|a* mat and a *dog* ran *on* it ."
  assert main.main([*command, out, "--top_k=2", text]) == 0
  shown = capsys.readouterr().out
  assert shown.startswith(f"{tmp_path}/a.png:\n") and "mean loss" in shown
  assert "  the  " in shown and (tmp_path / "a.png").stat().st_size > 9_000
  for more, message in (
    ([out, "--top_k=0", text], "--top_k=0"),
    ([f"--out={tmp_path}/a.gif", text], "'.gif'"),
    ([out, "the cat"], "no word is marked"),
  ):
    assert main.main([*command, *more]) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1
