"""A checkpoint's way to a Model is short, whatever its tokenizer."""

import json
import pathlib
import sys

import maskedlm
from maskedlm.data.tokenizers.tokenizer import open_tokenizer, train_tokenizer

ROOT = pathlib.Path(maskedlm.__file__).parent
FOLDERS = ("data/tokenizers", "training/checkpoints")


def test_opening_visits_few_files(run):
  visited = set()

  def profile(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>":
      visited.add(code.co_filename)

  sys.setprofile(profile)
  try:
    maskedlm.load(run)
  finally:
    sys.setprofile(None)
  files = [
    file
    for file in visited
    if file.startswith(tuple(f"{ROOT / name}/" for name in FOLDERS))
  ]
  assert 5 < len(files) <= 10


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
