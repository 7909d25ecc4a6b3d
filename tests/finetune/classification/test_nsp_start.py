"""The classifier that starts from the pretrained next-sentence head."""

import functools

import numpy as np
import pytest

from helpers import encoder_reference as reference
from helpers.letters import TOKENIZER, compiled, make_batch, make_params
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import initial_params
from maskedlm.finetune.classification import classification
from maskedlm.finetune.classification.classification import Example, Options
from maskedlm.finetune.contract import Setup
from maskedlm.training.checkpoints.load import LoadedCheckpoint

LENGTH = 13
CFG = reference.config()
PAIRS = [
  Example("a b c", "d", "0", "x.tsv:2"),
  Example("d e", "f g h i j k l", "1", "x.tsv:3"),
  Example("k", "a b", "1", "x.tsv:4"),
]


def make(labels=("0", "1"), **options):
  options = {"text_b": "text_b", "head_from": "nsp", **options}
  setup = Setup(TOKENIZER, CFG, {"labels": [*labels]}, LENGTH)
  return compiled(classification.make_application(setup, Options(**options)))


@functools.cache
def pretrained():
  """Returns random parameters with the heads of pretraining."""
  return reference.make_params(CFG)


@functools.cache
def transformers_logits():
  """Returns the NSP logits of PAIRS, [3, 2], as transformers computes them."""
  torch = pytest.importorskip("torch")
  pytest.importorskip("transformers")
  from helpers.bert_peer import make_peer

  batch = make_batch(make(), examples=PAIRS, length=LENGTH)
  with torch.no_grad():
    return (
      make_peer(pretrained(), CFG)
      .eval()(
        input_ids=torch.tensor(batch["input_ids"], dtype=torch.long),
        token_type_ids=torch.tensor(batch["token_type_ids"], dtype=torch.long),
        attention_mask=torch.tensor(batch["segment_ids"] > 0),
      )
      .seq_relationship_logits.numpy()
    )


@pytest.mark.parametrize(
  ("labels", "positive", "follows"),
  [(("0", "1"), "", 1), (("follows", "random"), "follows", 0)],
)
def test_before_training_probabilities_are_those_of_the_nsp_head(
  labels, positive, follows, capsys
):
  app = make(labels, positive=positive)
  heads = app.initial_heads(pretrained())
  (said,) = capsys.readouterr().err.splitlines()
  assert f"{labels[follows]!r} is B follows A" in said
  start = LoadedCheckpoint(pretrained(), CFG, TOKENIZER, {})
  begin = initial_params.from_checkpoint(start, heads, reinit_layers=0)
  params = begin(make_params(app, CFG))
  assert set(params) == {"encoder", "pooler", "class_head"}
  batch = make_batch(app, examples=PAIRS, length=LENGTH)
  found = app.decode(PAIRS, None, app.outputs(params, batch), {})
  # transformers' class 0 is "B follows A", too.
  exp = np.exp(np.float64(transformers_logits()))
  expected = exp[:, 0] / exp.sum(axis=1)
  assert np.ptp(expected) > 0.1
  np.testing.assert_allclose(
    [p["probabilities"][labels[follows]] for p in found], expected, atol=1e-4
  )


@pytest.mark.parametrize(
  ("labels", "options", "named"),
  [
    (("a", "b", "c"), {}, "expected two labels, not a, b, c"),
    (("0", "1"), {"text_b": ""}, "--config.task.text_b"),
  ],
)
def test_another_form_of_head_is_refused(labels, options, named):
  with pytest.raises(ConfigError) as error:
    make(labels, **options)
  assert "task.head_from=nsp" in str(error.value)
  assert named in str(error.value)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize("pooled", [True, False])
def test_both_heads_read_the_same_vector(pooled):
  given = dict(pretrained())
  if not pooled:
    del given["pooler"]
  made = make(pooler=pooled).initial_heads(given)
  assert set(made) == {"class_head"}
  with pytest.raises(ConfigError, match=f"task.pooler={pooled}"):
    make(pooler=not pooled).initial_heads(given)


def test_scores_are_refused():
  about = {"low": 0.5, "high": 5.0, "mean": 2.0, "stddev": 1.0}
  options = Options(text_b="text_b", head_from="nsp", regression=True)
  with pytest.raises(ConfigError, match=r"head_from=nsp.* two labels, not sco"):
    classification.make_application(
      Setup(TOKENIZER, CFG, about, LENGTH), options
    )


@pytest.mark.parametrize("left", [(), ("encoder", "pooler", "mlm_head")])
def test_what_lacks_the_head_is_refused(left):
  """() is what may be taken over with pretrained=False."""
  given = {name: pretrained()[name] for name in left}
  with pytest.raises(ConfigError) as error:
    make().initial_heads(given)
  assert "task.head_from=nsp" in str(error.value)
  assert (", ".join(sorted(left)) or "nothing") in str(error.value)
