"""Several checkpoints as one: their scores are averaged, or they differ."""

import json

import pytest

import maskedlm
from helpers import untrained
from maskedlm.core.errors import ConfigError
from maskedlm.inference import ensemble


@pytest.fixture(scope="module")
def moods(tmp_path_factory):
  """Returns the paths of two checkpoints of one run."""
  folder = tmp_path_factory.mktemp("members") / "moods"
  untrained.save_tuned(
    folder, *untrained.TUNED["mood"], metrics=(1, 2), heldout={"a": 1.0}
  )
  return [str(folder / "checkpoints" / step) for step in ("1", "2")]


def test_probabilities_are_the_mean_of_the_members(moods, tmp_path, verb):
  texts = ["the red book", "a cat"]
  single = [maskedlm.load(path).predict(texts) for path in moods]
  found = maskedlm.load_ensemble(moods).predict(texts)
  for a, b, both in zip(*single, found, strict=True):
    for label in ("good", "bad", "so so"):
      mean = (a["probabilities"][label] + b["probabilities"][label]) / 2
      assert both["probabilities"][label] == pytest.approx(mean, abs=1e-6)
    assert both["probabilities"][both["label"]] == both["probability"]
  argv = ["--checkpoint", ", ".join(moods)]
  shown = verb("predict", *argv, "--json", *texts).out.splitlines()
  assert list(map(json.loads, shown)) == found
  data = tmp_path / "dev.tsv"
  labels = [prediction["label"] for prediction in found]
  lines = [f"{t}\t{x}" for t, x in zip(texts, labels, strict=True)]
  data.write_text("\n".join(["text\tlabel", *lines, "a dog\tso so", ""]))
  argv = ["evaluate", *argv, "--data", data]
  result = json.loads(verb(*argv, "--json").out)
  assert result["checkpoints"] == moods and result["examples"] == 3
  assert result["accuracy"] >= 2 / 3
  assert f"mean of 2 checkpoints: {', '.join(moods)}" in verb(*argv).out


def test_thresholds_are_the_means(tmp_path):
  options, about = {"max_span_words": 3}, {"labels": ["NULL", "x"]}
  for name, value in (("a", 0.25), ("b", -1.0), ("c", 3.0)):
    untrained.save_tuned(
      tmp_path / name, "spans", options, about, heldout={"threshold": value}
    )
  model = ensemble.open_model([tmp_path / name for name in "abc"])
  assert model.tuned == {"threshold": 0.75}


@pytest.fixture(scope="module")
def different(moods, tmp_path_factory):
  """Returns the paths of models of which each differs from the first."""
  folder = tmp_path_factory.mktemp("different")
  task, options, about = untrained.TUNED["mood"]

  def save(name, task, options, about, heldout=None, **encoder):
    heldout = heldout or {"a": 1.0}
    untrained.save_tuned(
      folder / name, task, options, about, heldout=heldout, **encoder
    )

  save("labels", task, options, {"labels": ["bad", "good", "fair"]})
  save("task.pooler", task, {**options, "pooler": False}, about)
  save("task", "text_features", {}, about)
  save("held-out figures", task, options, about, {"b": 1.0})
  save("encoder.width", task, options, about, width=12)
  save("only in training", task, options, about, dropout=0.3)
  untrained.pretrained(folder / "pretrained")
  return folder


@pytest.mark.parametrize(
  ("name", "said"),
  [
    ("labels", "differ in labels.labels: "),
    ("task.pooler", "differ in task.pooler: True and False"),
    ("task", "differ in task: classification and text_features"),
    ("held-out figures", "differ in held-out figures: "),
    ("encoder.width", "differ in encoder.width: 24 and 12"),
    ("pretrained", "not fine-tuned"),
  ],
)
def test_a_difference_is_one_line(name, said, moods, different, verb):
  other = str(different / name)
  both = f"{moods[0]},{other}"
  error = verb("predict", "--checkpoint", both, "a", expect=2).err
  assert said in error and error.count("\n") == 1
  assert moods[0] in error and other in error
  with pytest.raises(ConfigError, match=said.partition(":")[0]):
    maskedlm.load_ensemble([moods[0], other])


def test_what_only_training_reads_may_differ(moods, different):
  ensemble.open_model([moods[0], different / "only in training"])
