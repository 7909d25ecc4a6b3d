"""What was cut, by how much, and how to read more of it."""

import json

import numpy as np
import pytest

import maskedlm
from helpers import untrained
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import predict
from maskedlm.finetune.common import cut_texts

LENGTH, POSITIONS = untrained.LENGTH, untrained.POSITIONS  # 32 and 48.


def note(cut, length, positions):
  return cut_texts.cut_note(
    cut, length=length, positions=positions, option="--length={}"
  )


def test_the_note_names_what_helps():
  assert note([40, 3004], 32, 4000) == (
    "2 examples were cut to 32 tokens (the longest has 3,004); --length=3004 "
    "reads all of them"
  )
  assert "--length=48, all positions of the encoder," in note([90], 32, 48)
  assert "the encoder has no more positions" in note([90], 48, 48)
  assert "--length=48 reads all" in note([48, 33], 32, 48)


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
  return untrained.finetuned(tmp_path_factory.mktemp("cut") / "mood", "mood")


@pytest.fixture(scope="module")
def text(workdir):
  """Returns a text of 40 tokens, [CLS] and [SEP] included."""
  tokenize = (
    predict.open_model(workdir).task and maskedlm.load(workdir).tokenize
  )
  (size,) = {len(tokenize(word).ids) for word in ("the", "the the")} - {2}
  assert size == 1
  made = "the " * 37 + "cat"
  assert len(tokenize(made).ids) == 38
  return made


def test_a_longer_row_reads_the_whole_text(workdir, text, capsys, verb):
  """With --length, the part that was cut changes the prediction."""
  short = maskedlm.load(workdir)
  (cut,) = short.predict([text])
  line = capsys.readouterr().err
  assert "1 example was cut to 32 tokens (the longest has 40)" in line
  assert "load(..., length=40) reads all of them" in line
  (same,) = short.predict(["the " * 30])  # 32 tokens: it fits.
  assert capsys.readouterr().err == ""
  assert cut["probabilities"] == pytest.approx(same["probabilities"])
  (whole,) = maskedlm.load(workdir, length=40).predict([text])
  assert capsys.readouterr().err == ""
  found, other = (list(x["probabilities"].values()) for x in (whole, cut))
  assert np.abs(np.subtract(found, other)).max() > 1e-4
  argv = ["predict", "--json", "--checkpoint", workdir, "--length", "40"]
  printed = json.loads(verb(*argv, text).out)
  assert printed["probabilities"] == pytest.approx(whole["probabilities"])


def test_one_line_for_a_whole_file(workdir, text, tmp_path, verb):
  path = tmp_path / "lines.txt"
  path.write_text(f"{text}\nthe cat\n" * 150 + f"{text} {text}\n")
  out, err = verb("predict", "--checkpoint", workdir, "--input", path)
  assert len(out.splitlines()) == 301
  (line,) = err.splitlines()
  assert "151 examples were cut to 32 tokens (the longest has 78)" in line


@pytest.mark.parametrize("length", [7, 49])
def test_a_length_that_the_encoder_lacks(workdir, length, verb):
  with pytest.raises(ConfigError, match=f"length={length}: expected 8 to 48"):
    maskedlm.load(workdir, length=length)
  argv = ["predict", "--checkpoint", workdir, f"--length={length}", "a"]
  verb(*argv, expect=2)


def test_texts_embedded_in_windows_are_reported(workdir, text, capsys):
  model = maskedlm.load(workdir, length=8)
  (windows,) = model.embed([text])
  line = capsys.readouterr().err
  assert "1 text of more than 8 tokens (the longest has 40)" in line
  assert "length=40" in line
  (whole,) = maskedlm.load(workdir).embed([text])
  assert capsys.readouterr().err == ""
  assert np.abs(windows - whole).max() > 1e-3
