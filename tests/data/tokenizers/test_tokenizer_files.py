"""Tokenizer files: those of other tools, settings beside them, damage."""

import json

import pytest
import tokenizers

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, open_tokenizer


def _break(folder, name, content):
  (folder / name).write_bytes(content)
  return folder / name


@pytest.mark.parametrize(
  ("name", "content", "message"),
  [
    ("tokenizer.json", b"", "broken JSON"),
    ("tokenizer.json", b"[1, 2]", "not an object"),
    ("tokenizer.json", b'{"version": "1.0"}', "not a usable tokenizer.json"),
    ("tokenizer.json", b"\xff\xfe", "broken JSON"),
    ("t.model", b"", "not a sentencepiece model"),
    ("t.model", b"garbage" * 99, "not a sentencepiece model"),
    ("vocab.txt", b"\xff\xfe[PAD]", "not UTF-8"),
    ("vocab.txt", b"", "no special token for pad"),
    ("tokenizer.pkl", b"x", "must end in .json"),
  ],
)
def test_broken_files(tmp_path, name, content, message):
  with pytest.raises(CorpusError, match=message) as error:
    load_tokenizer(_break(tmp_path, name, content))
  assert name in str(error.value)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize(
  ("step", "changes", "message"),
  [
    ("model", {"continuing_subword_prefix": "▁"}, "not a usable"),  # A panic.
    ("pre_tokenizer", 1, "not a usable"),
    ("normalizer", "x", "not a usable"),
    ("added_tokens", {"id": 10**9}, r"of '\[MASK\]' is 1000000000, but there"),
  ],
)
def test_damaged_definitions(trained, tmp_path, step, changes, message):
  kind = "wordpiece" if step == "added_tokens" else "bpe"
  made, _ = trained[kind, False]
  made.save(tmp_path)
  (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
  path = tmp_path / "tokenizer.json"
  definition = json.loads(path.read_text())
  if step == "added_tokens":
    definition[step][-1] |= changes
    definition["model"]["vocab"]["[MASK]"] = changes["id"]
  elif isinstance(changes, dict):
    definition[step] |= changes
  else:
    definition[step] = changes
  path.write_text(json.dumps(definition))
  with pytest.raises(CorpusError, match=message) as error:
    load_tokenizer(tmp_path)
  assert "\n" not in str(error.value)


def test_truncated_and_missing_files(trained, tmp_path):
  for key, name in (
    (("bpe", False), "tokenizer.json"),
    (("unigram", False), "tokenizer.model"),
  ):
    content = (trained[key][1] / name).read_bytes()
    for size in (100, len(content) // 2, len(content) - 1):
      with pytest.raises(CorpusError, match=name):
        load_tokenizer(_break(tmp_path, name, content[:size]))
  with pytest.raises(CorpusError, match="No such file"):
    load_tokenizer(tmp_path / "none" / "vocab.txt")
  (tmp_path / "empty").mkdir()
  with pytest.raises(CorpusError, match=r"has no tokenizer\.json"):
    load_tokenizer(tmp_path / "empty")


@pytest.mark.parametrize("model", ["WordLevel", "BPE"])
def test_without_marks_of_spaces_each_token_is_a_word(tmp_path, model):
  names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"ACGT"]
  vocab = {name: index for index, name in enumerate(names)}
  path = tmp_path / "tokenizer.json"
  options = {"merges": []} if model == "BPE" else {}
  of_letters = getattr(tokenizers.models, model)(
    vocab, unk_token="[UNK]", **options
  )
  library = tokenizers.Tokenizer(of_letters)
  library.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
  library.save(str(path))
  made = load_tokenizer(path)
  encoding = made.encode("GAX")
  assert encoding.ids.tolist() == [7, 5, 1]
  assert encoding.word_ids.tolist() == [0, 1, 2]
  assert made.notes == ("it marks no spaces, so each token counts as a word",)


def test_special_tokens_of_other_names_are_those_that_are_stated(
  trained, tmp_path
):
  made, _ = trained["bpe", False]
  made.save(tmp_path)
  path, text = tmp_path / "tokenizer.json", "a cat"
  content = path.read_text()
  for old, new in {
    "<s>": "<|bos|>", "</s>": "<|eos|>", "<pad>": "<|pad|>",
    "<mask>": "<|mask|>", "<unk>": "<|free|>",
  }.items():  # fmt: skip
    content = content.replace(json.dumps(old), json.dumps(new))
  path.write_text(content)
  with pytest.raises(CorpusError, match=r"no special token for pad .*pad_tok"):
    load_tokenizer(tmp_path)
  stated = {
    "bos_token": "<|bos|>", "sep_token": {"content": "<|eos|>"},
    "pad_token": "<|pad|>", "mask_token": "<|mask|>",
    "added_tokens_decoder": {"1": {"content": "<|pad|>"}},
  }  # fmt: skip
  (tmp_path / "tokenizer_config.json").write_text(json.dumps(stated))
  found = load_tokenizer(tmp_path)
  # It spells every text, so it needs no unknown token.
  assert found.special == made.special._replace(unk=made.special.pad)
  assert found.encode(text).ids.tolist() == made.encode(text).ids.tolist()
  assert "'<|pad|>' is named [PAD]" in found.notes
  found.save(tmp_path / "saved")
  assert open_tokenizer(tmp_path / "saved").special == found.special
