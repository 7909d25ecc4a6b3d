"""`maskedlm embed`, called as users do."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from helpers import finetune_runs, vector_encoder
from maskedlm.cli import main
from maskedlm.inference.vectors import vectors

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture
def text(tmp_path):
  path = tmp_path / "text.txt"
  path.write_text("\n\n".join(finetune_runs.TEXTS))
  return path


@pytest.fixture
def embed(workdir, text, capsys):
  """Returns a function that runs the verb and returns its stderr."""

  def call(*argv, expect=0, source=text):
    command = ["embed", "--checkpoint", str(workdir), *map(str, argv)]
    if source:
      command += ["--input", str(source)]
    assert main.main(command) == expect
    return capsys.readouterr().err

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


def test_json_objects_from_stdin(embed, model, tmp_path, monkeypatch):
  lines = [json.dumps({"body": text}) for text in finetune_runs.TEXTS]
  stdin = io.TextIOWrapper(io.BytesIO("\n".join(lines).encode()))
  monkeypatch.setattr(sys, "stdin", stdin)
  out = tmp_path / "v.jsonl"
  embed(
    *("--unit=sentence", "--format=jsonl", "--field=body", f"--out={out}"),
    source=None,
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
  err = embed(f"--standardise={fitted}", f"--out={out}", "--layers=1", expect=2)
  assert "fitted with layers=[2], these vectors have layers=[1]" in err
  other = vector_encoder.make(tmp_path / "other", init_stddev=0.2)
  err = embed(
    *(f"--standardise={fitted}", f"--out={out}", f"--checkpoint={other}"),
    expect=2,
  )
  assert "was fitted to vectors of another encoder" in err


def test_bad_input_leaves_the_old_file(embed, tmp_path):
  out = tmp_path / "out" / "v.npz"
  out.parent.mkdir()
  out.write_text("before")
  bad = tmp_path / "bad.jsonl"
  good = b'{"text": "the cat sat on the mat"}\n' * 100
  for line, match in {
    b"\xff\n": "bad.jsonl:101: not UTF-8",
    b'{"txt": "a"}\n': "bad.jsonl:101: the field 'text' is missing",
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


@pytest.mark.parametrize(
  ("argv", "match"),
  [
    (["--out=v.npz", "--layers", "-9"], "layers has -9: the encoder has 2"),
    (["--out=v.npz", "--layers=first"], "--layers='first': expected last"),
    (["--out=v.csv"], "ends in '.csv'; expected .npz or"),
    (["--fit=v.json"], "--fit=v.json: the name ends in '.json'; expected .npz"),
    (["--out=none/v.npz"], "there is no folder none"),
    ([], "give --out=FILE"),
    (["--fit=a.npz", "--standardise=b.npz"], "--fit measures"),
    (["--out=v.npz", "--standardise=none.npz"], "No such file"),
    (["--out=v.npz", "--combine=stack"], "--combine=stack is for Python"),
    (["--out=v.npz", "--format=xml"], "'xml' is unknown"),
    (["--out=v.npz", "--batch_tokens=0"], "--batch_tokens=0"),
    (["--out=v.npz", "--unit=char"], "unit='char' is unknown"),
  ],
)
def test_wrong_options(embed, tmp_path, monkeypatch, argv, match):
  monkeypatch.chdir(tmp_path)
  err = embed(*argv, expect=2)
  assert err.startswith("error: ") and err.count("\n") == 1
  assert match in err
  assert not list(tmp_path.glob("v.*"))


def test_help_is_quick():
  code = (
    "import sys\nfrom maskedlm.cli import embed, isotropy\n"
    "for verb in (embed, isotropy):\n"
    "  try:\n    verb.main(['--help'])\n  except SystemExit:\n    pass\n"
    "assert 'jax' not in sys.modules and 'numpy' not in sys.modules"
  )
  subprocess.run([sys.executable, "-c", code], check=True)
