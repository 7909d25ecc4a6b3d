"""A fine-tuned model, exported and imported again, predicts the same.

transformers, which opens the export, computes the same as well. The labels of
tagging and their schemes have tests of their own (finetune/tagging).
"""

import random

import numpy as np
import pytest

import maskedlm
from helpers import finetune_runs, untrained
from maskedlm.interop.huggingface import exporter, importer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = sorted(set(" ".join(finetune_runs.TEXTS).split()))
# Of 5 to 90 words, as rows have 32 tokens.
SIZES = (1, 5, 30, 31, 90)


def texts():
  """Returns a text of each of SIZES, of random words."""
  rng = random.Random(7)
  return [" ".join(rng.choices(WORDS, k=size)) for size in SIZES]


# A regression, of scores that are standardised in maskedlm.
STARS = (
  "classification",
  {"regression": True},
  {"low": 0.0, "high": 5.0, "mean": 2.7, "stddev": 1.5},
)


@pytest.fixture(
  scope="module", params=["mood", "stars", "many", "four", "qa", "pos", "ner"]
)
def models(request, tmp_path_factory):
  """Returns (name, the model, the export's folder, its import)."""
  folder = tmp_path_factory.mktemp(request.param)
  if request.param == "stars":
    path = untrained.save_tuned(folder / "run", *STARS)
  else:
    path = untrained.finetuned(folder / "run", request.param)
  exporter.export_huggingface(path, folder / "theirs", log=print)
  importer.import_model(folder / "theirs", folder / "back", log=print)
  return (
    request.param,
    maskedlm.load(path),
    folder / "theirs",
    maskedlm.load(folder / "back"),
  )


def numbers(name, prediction):
  """Returns the probabilities or scores of a prediction of any task."""
  if name == "stars":
    return [prediction["score"]]
  if name == "qa":
    return [answer["score"] for answer in prediction["nbest"]]
  found = prediction["probabilities"]
  return list(found.values()) if isinstance(found, dict) else list(found)


def lines(name):
  """Returns inputs of the task, short and long ones."""
  made = texts()
  if name == "qa":
    return [f"is the cat ?\t{text}" for text in made]
  if name == "four":
    made = ["the", "a cat", "on it", *made]
    return ["\t".join([*made[i:], *made[:i]][:5]) for i in range(len(made))]
  pairs = [f"{a}\t{b}" for a, b in zip(made, made[::-1], strict=True)]
  return made + pairs * (name == "mood")


def test_the_import_of_an_export_predicts_the_same(models):
  name, ours, _, back = models
  # The run's files have no second text; an import's may.
  read = texts() if name == "mood" else lines(name)
  pairs = zip(ours.predict(read), back.predict(read), strict=True)
  for expected, found in pairs:
    np.testing.assert_allclose(
      numbers(name, found), numbers(name, expected), atol=1e-5
    )
    for field in ("label", "tags", "tokens", "answer", "start", "range"):
      assert found.get(field) == expected.get(field)


def test_transformers_computes_the_same(models):
  name, _, folder, back = models
  if name in ("pos", "ner", "qa"):
    pytest.skip("texts are read in other parts; heads are compared elsewhere")
  tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
  ending = "MultipleChoice" if name == "four" else "SequenceClassification"
  auto = getattr(transformers, f"AutoModelFor{ending}")
  model = auto.from_pretrained(folder).eval()
  # Of an odd number of tokens, the first text of a cut pair has one more here
  # (as in google-research/bert), the second in `tokenizers`.
  read = [x for x in lines(name) if "\t" not in x or len(x.split()) <= 25]
  for line, found in zip(read, back.predict(read), strict=True):
    a, *rest = line.split("\t")
    if name == "four":
      a, rest = [a] * 4, [rest[:4]]
    else:
      a, rest = [a], [[b] for b in rest]
    options = {"truncation": "longest_first", "padding": True}
    feed = tokenizer(a, *rest, **options, return_tensors="pt")
    if name == "four":
      feed = {key: x[None] for key, x in feed.items()}
    with torch.no_grad():
      logits = model(**feed).logits[0]
    if name == "many":
      shares = logits.sigmoid()
    elif name == "stars":
      shares = logits.clip(0.0, 5.0)
    else:
      shares = logits.softmax(-1)
    np.testing.assert_allclose(
      numbers(name, found), shares.numpy(), atol=1e-5, err_msg=line
    )
