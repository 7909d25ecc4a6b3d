"""A checkpoint's way to a Model is short, whatever its tokenizer."""

import json
import pathlib
import sys

import pytest

import maskedlm
from helpers import untrained
from maskedlm.data.tokenizers.tokenizer import open_tokenizer, train_tokenizer

ROOT = pathlib.Path(maskedlm.__file__).parent
FOLDERS = ("data/tokenizers", "training/checkpoints")


@pytest.mark.parametrize("kind", untrained.VOCAB)
def test_opening_visits_few_files(tmp_path, kind):
  folder = untrained.pretrained(tmp_path / "run", kind=kind)
  visited = set()

  def profile(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>":
      visited.add(code.co_filename)

  sys.setprofile(profile)
  try:
    maskedlm.load(folder)
  finally:
    sys.setprofile(None)
  files = [
    file
    for file in visited
    if file.startswith(tuple(f"{ROOT / name}/" for name in FOLDERS))
  ]
  assert 5 < len(files) <= 10


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_a_saved_tokenizer_is_opened_as_it_is(tmp_path, kind):
  """Files beside it, of an export into the same folder, say nothing."""
  lines = ["The cat sees the dog. The dogs see a cat."] * 9
  made = train_tokenizer(
    lines,
    kind=kind,
    vocab_size={"wordpiece": 40, "bpe": 280, "unigram": 20}[kind],
    lowercase=False,
  )
  made.save(tmp_path)
  stated = {"do_lower_case": True, "cls_token": "x"}
  (tmp_path / "tokenizer_config.json").write_text(json.dumps(stated))
  opened = open_tokenizer(tmp_path)
  assert opened.sha256 == made.sha256
  assert opened.special == made.special and not opened.notes
  (ids,) = opened.encode_batch(lines[:1])
  assert ids.tolist() == made.encode(lines[0]).ids.tolist()


def test_dropout_that_earlier_versions_saved_is_off(tmp_path):
  lines = ["the cats see the dogs and the dogs see the cats"] * 9
  made = train_tokenizer(lines, kind="bpe", vocab_size=290, lowercase=False)
  made.save(tmp_path)
  path = tmp_path / "tokenizer.json"
  definition = json.loads(path.read_text())
  definition["model"]["dropout"] = 0.9
  path.write_text(json.dumps(definition))
  opened = open_tokenizer(tmp_path)
  (ids,) = opened.encode_batch([" ".join(lines)])
  assert ids.tolist() == made.encode(" ".join(lines)).ids.tolist()
