"""`maskedlm embed`, called as users do."""

import json

import numpy as np
import pytest

from helpers import finetune_runs
from maskedlm.inference.vectors import vectors

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture
def text(text):
  """Returns a file with a blank line after each text."""
  text.write_text(text.read_text().replace("\n", "\n\n"))
  return text


@pytest.fixture
def embed(workdir, text, verb):
  """Returns a function that runs the verb and returns its stderr."""

  def call(*argv, source=text, **how):
    source = ["--input", source] if source else []
    return verb("embed", "--checkpoint", workdir, *argv, *source, **how).err

  return call


def found(model, **options):
  made = vectors.embed(
    model, finetune_runs.TEXTS, vectors.VectorOptions(**options)
  )
  return vectors.collect(made).values


def test_layers_units_and_pooling(embed, model, tmp_path):
  out = tmp_path / "v.npz"
  # argparse would take -1,-2 for an option.
  err = embed(
    *("--unit", "word", "--pool", "max", "--layers", "-1,-2"),
    *("--combine", "concat", "--out", out),
  )
  words = sum(len(text.split()) for text in finetune_runs.TEXTS)
  assert err.splitlines()[-1] == f"{words} vectors of 12 texts"
  with np.load(out) as file:
    expected = found(
      model, unit="word", pool="max", layers=(-1, -2), combine="concat"
    )
    np.testing.assert_allclose(file["vectors"], expected, **CLOSE)
    assert file["text_lines"].tolist() == list(range(1, 24, 2))
    about = json.loads(str(file["about"]))
  assert about["layers"] == [2, 1] and about["unit"] == "word"


def test_json_objects_from_stdin(embed, model, tmp_path):
  lines = [json.dumps({"body": text}) for text in finetune_runs.TEXTS]
  out = tmp_path / "v.jsonl"
  embed(
    *("--unit=sentence", "--format=jsonl", "--field=body", f"--out={out}"),
    source=None,
    stdin="\n".join(lines).encode(),
  )
  made = [json.loads(line) for line in out.read_text().splitlines()]
  assert [line["form"] for line in made] == finetune_runs.TEXTS
  assert made[3]["file"] == "stdin" and made[3]["line"] == 4
  values = np.float32([line["vector"] for line in made])
  np.testing.assert_allclose(values, found(model, unit="sentence"), **CLOSE)


def test_fit_and_standardise(embed, model, tmp_path):
  fitted, out = tmp_path / "fitted.npz", tmp_path / "v.npz"
  assert "vectors of 12 texts" in embed(f"--fit={fitted}", "--unit=sentence")
  embed(f"--standardise={fitted}", f"--out={out}", "--unit=sentence")
  values = np.load(out)["vectors"]
  np.testing.assert_allclose(values.mean(0), np.zeros(24), atol=1e-4)
  np.testing.assert_allclose(values.std(0), np.ones(24), atol=1e-4)
  x = found(model, unit="sentence")
  np.testing.assert_allclose(values, (x - x.mean(0)) / x.std(0), atol=1e-3)


def test_bad_input_leaves_the_old_file(embed, tmp_path):
  out = tmp_path / "out" / "v.npz"
  out.parent.mkdir()
  out.write_text("before")
  bad = tmp_path / "bad.jsonl"
  good = b'{"text": "the cat sat on the mat"}\n' * 100
  for line, match in {
    b"\xff\n": "bad.jsonl:101: not UTF-8",
    b'{"txt": "a"}\n': "bad.jsonl:101: no 'text' or 'tokens'",
  }.items():
    bad.write_bytes(good + line)
    err = embed(f"--out={out}", "--batch_tokens=16", source=bad, expect=2)
    assert match in err
    assert out.read_text() == "before" and len(list(out.parent.iterdir())) == 1
  empty = tmp_path / "empty.txt"
  empty.write_text("\n")
  err = embed(f"--out={out}", source=empty, expect=2)
  assert "empty.txt: no line with text" in err
  empty.write_text("\u200b")
  err = embed(f"--out={out}", "--unit=word", source=empty, expect=2)
  assert "the input has no word" in err
  assert out.read_text() == "before"
  embed(f"--out={out}", source=bad.write_bytes(good) and bad)
  with np.load(out) as file:
    assert file["text_lines"].tolist() == list(range(1, 101))
