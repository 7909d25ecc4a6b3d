"""Every config of fine-tuning: two real steps on a few real examples."""

import math

import numpy as np
import pytest

from helpers import encoder_reference
from helpers import finetune_runs as runs
from helpers.english_tokenizer import english_tokenizer
from helpers.repository import ROOT
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as base
from maskedlm.finetune import data_files, run
from maskedlm.finetune.contract import Setup

CONFIGS = sorted(
  path
  for path in (ROOT / "configs").glob("*.py")
  if "maskedlm.finetune" in path.read_text()
)
# Others are slow: test_contract.py runs every task, on examples of its own.
QUICK = ("ner",)


@pytest.mark.parametrize(
  "path",
  [
    pytest.param(path, marks=[] if path.stem in QUICK else [pytest.mark.slow])
    for path in CONFIGS
  ],
  ids=lambda p: p.stem,
)
def test_a_step_on_real_examples(
  path, encoder, data_dir, tmp_path, monkeypatch, on_one
):
  monkeypatch.setenv("MASKEDLM_DATA", str(data_dir))
  config = overrides.load_config(str(path), validate=base.validate)
  if not config.data.train:
    pytest.skip("it is for a user's own files")
  if config.data.train.endswith("conll2003/eng.train"):
    pytest.skip("CoNLL-2003 can't be shared: tagging/test_conll2003.py")
  config.init_from = str(encoder)
  config.data.update(length=runs.LENGTH, batch_size=8, max_train=500, max_dev=8)
  # A third as much to compile.
  config.model.update(dropout=0.0, attention_dropout=0.0, unroll=False)
  config.train.accumulate = 1  # The embedder's batch has 32 parts.
  if "max_answer_length" in config.task:
    config.task.update(max_answer_length=8, stride=8)
  if "lstm_width" in config.task:
    config.task.lstm_width = (
      20  # A width of 768 would take most of this file's time.
    )
  if "pair" in config.task:
    config.task.pair = "spans"  # The small tokenizer can't spell markers.
  config.train.update(epochs=1e-4, log_every=1)  # Of up to 17,600 batches.
  result = run.finetune(base.typed(config), tmp_path / "run")
  assert result["steps"] in (1, 2)
  assert math.isfinite(result["loss"])
  assert result["best_metric"] in result


def load(name, folder, monkeypatch):
  """Returns a config whose data are in a folder."""
  monkeypatch.setenv("MASKEDLM_DATA", str(folder))
  return overrides.load_config(f"{ROOT}/configs/{name}", validate=base.validate)


@pytest.mark.parametrize(
  ("config", "message"),
  [
    ("coreference.py:conll", "VARIANT='conll'"),
    ("features.py:lsat", r"features.py.*'lsat'.*last"),
    ("glue.py:mrcp", r'did you mean "mrpc"\?\); known: cola'),
    ("multiple_choice.py:comv", r"choice.py.*'comv'.*comve"),
    ("ner.py:conll", "conll"),
    ("pos.py:xx", "xx"),
    ("spans.py:litbnk", "litbnk"),
    ("squad.py:v2.0", r'squad.*did you mean "v2"'),
    ("text_features.py:lsat", r"text_features.py.*'lsat'.*last"),
  ],
)
def test_an_unknown_variant_is_refused(config, message, tmp_path, monkeypatch):
  with pytest.raises(ConfigError, match=message):
    load(config, tmp_path, monkeypatch)


@pytest.mark.parametrize(
  ("config", "expected"),
  [
    ("features.py:last", {"task.layers": "last"}),
    ("features.py", {"optimizer.frozen_layers": -1}),
    ("glue.py", {"name": "glue_mrpc"}),
    ("text_features.py:weighted_all", {"task.layers": "weighted_all"}),
    ("text_features.py", {"optimizer.frozen_layers": -1}),
    (
      "multiple_choice.py:swag",
      {"data.batch_size": 16, "optimizer.learning_rate": 2e-5},
    ),
    (
      "squad.py:v1",
      {"data.dev": "", "data.length": 384, "data.batch_size": 32}
      | {"task.allow_impossible": False, "train.epochs": 3},
    ),
    (
      "squad.py:v2",
      {"data.dev": "/squad/dev-v2.0.json", "data.batch_size": 48}
      | {"task.allow_impossible": True, "train.epochs": 2},
    ),
  ],
)
def test_what_a_variant_is(config, expected, tmp_path, monkeypatch):
  (tmp_path / "squad").mkdir()
  (tmp_path / "squad" / "dev-v2.0.json").write_text("{}")
  found = load(config, tmp_path, monkeypatch)
  for name, value in expected.items():
    section, _, option = name.rpartition(".")
    given = (found[section] if section else found)[option]
    if isinstance(given, str):
      given = given.replace(str(tmp_path), "")
    assert given == value, name


@pytest.mark.parametrize(
  ("config", "labels", "gold", "reachable"),
  [
    # Labels and entities were counted with cut, sort and uniq.
    ("ner.py", 13, None, None),
    ("pos.py:mr", 16, None, None),
    ("spans.py:wnut17", 7, 836, 835 / 836),  # One entity has ten words.
    ("spans.py:litbank", 5, 157, 1.0),
    ("spans.py:identify", 2, 157, 1.0),
  ],
)
def test_configs_of_words_read_the_real_data(
  config, labels, gold, reachable, data_dir, monkeypatch
):
  found = load(config, data_dir, monkeypatch)
  task = base.task_of(base.typed(found))
  is_spans = found.task.kind == "spans"
  train, dev = (
    data_files.read_examples(task, path.replace("*", "1342_*"))
    for path in (found.data.train, found.data.dev or found.data.train)
  )
  info = task.describe_labels(dev if is_spans else train)
  assert len(info["labels"]) == labels
  tokenizer = english_tokenizer("wordpiece")
  cfg = encoder_reference.config(vocab_size=tokenizer.vocab_size)
  app = task.make_application(Setup(tokenizer, cfg, info, found.data.length))
  rows = app.make_rows(dev[:200])
  starts = rows.tokens["word_kept" if is_spans else "word_starts"]
  # Every word is in one row.
  assert sum(int(np.sum(x > 0)) for x in starts) == sum(
    len(example.words) for example in dev[:200]
  )
  if is_spans:
    perfect = [
      {"entities": [{"type": s.type, "words": s[1:]} for s in example.spans]}
      for example in dev
    ]
    assert sum(len(p["entities"]) for p in perfect) == gold
    scores = app.score(dev, perfect)
    assert scores["f1"] == 1.0
    assert scores["reachable"] == pytest.approx(reachable)
