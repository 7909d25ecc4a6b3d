"""A tokenizer's file and those beside it: a difference is said, or refused."""

import json

import pytest

from helpers.tokenizer_texts import sentences, train_sentencepiece
from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, train_tokenizer

TEXT = "The Café VALUE"


@pytest.fixture
def folder(trained, tmp_path):
  """A directory with a cased WordPiece in tokenizer.json."""
  made, _ = trained["wordpiece", False]
  made.save(tmp_path)
  return tmp_path


def state(folder, name="tokenizer_config.json", **fields):
  (folder / name).write_text(json.dumps(fields))


@pytest.mark.parametrize(
  "stated",
  [
    {"do_lower_case": True},
    {"do_lower_case": False, "strip_accents": True},
    {"do_lower_case": True, "strip_accents": False},
    {"do_lower_case": False},
  ],
)
@pytest.mark.parametrize("named", ["class", "model", "other"])
def test_options_of_a_config_are_those_of_transformers(folder, stated, named):
  transformers = pytest.importorskip("transformers")
  names = {"class": "BertTokenizer", "other": "TokenizersBackend"}
  if named in names:
    stated = stated | {"tokenizer_class": names[named]}
  state(folder, "config.json", model_type="bert")
  state(folder, **stated)
  plain = load_tokenizer(folder / "tokenizer.json")
  made = load_tokenizer(folder)
  assert made.sha256 == plain.sha256  # Named as a file or a folder.
  theirs = transformers.AutoTokenizer.from_pretrained(folder)
  expected = theirs(TEXT, add_special_tokens=False)["input_ids"]
  assert made.encode(TEXT).ids.tolist() == expected
  differs = "strip_accents" in stated or stated["do_lower_case"]
  assert sum("disagree" in note for note in made.notes) == differs
  made.save(folder / "saved")
  assert load_tokenizer(folder / "saved").sha256 == made.sha256


def test_options_that_agree_are_not_noted(folder):
  state(folder, "config.json", model_type="bert")
  state(folder, do_lower_case=False, mask_token="[MASK]", unk_token=None)
  assert not load_tokenizer(folder).notes


def test_other_special_tokens_are_noted_or_refused(folder):
  state(folder, pad_token="[UNK]", do_lower_case=False)
  [note] = load_tokenizer(folder).notes
  assert "pad_token is '[UNK]'" in note and "uses '[PAD]'" in note
  state(folder, cls_token={"content": "[SEP]"})
  with pytest.raises(CorpusError, match=r"cls_token is '\[SEP\]'.*'\[CLS\]'"):
    load_tokenizer(folder)
  (folder / "tokenizer_config.json").unlink()
  state(folder, "special_tokens_map.json", mask_token="[SEP]")
  with pytest.raises(CorpusError, match=r"mask_token is '\[SEP\]'"):
    load_tokenizer(folder)


def test_another_vocabulary_beside_it_is_noted(folder):
  made = load_tokenizer(folder)
  tokens = [made.tokens(index) for index in range(made.vocab_size)]
  (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
  assert not load_tokenizer(folder).notes
  tokens[7], tokens[8] = tokens[8], tokens[7]
  (folder / "vocab.txt").write_text("\n".join(tokens))
  [note] = load_tokenizer(folder).notes
  assert f"vocab.txt beside it has {tokens[7]!r} at id 7" in note
  (folder / "vocab.txt").write_text("\n".join([*tokens[:5], "more"] * 300))
  assert "at id" in load_tokenizer(folder).notes[0]


def test_the_case_of_other_models(tmp_path):
  """Their files are followed; sentencepiece's can't be changed."""
  cased = train_tokenizer(
    sentences(), kind="bpe", vocab_size=600, lowercase=False
  )
  (tmp_path / "bpe").mkdir()
  cased.save(tmp_path / "bpe")
  state(tmp_path / "bpe", do_lower_case=True)
  [note] = load_tokenizer(tmp_path / "bpe").notes
  assert "do_lower_case=true, but tokenizer.json keeps capitals" in note
  (tmp_path / "spm").mkdir()
  train_sentencepiece(tmp_path / "spm" / "spiece.model")
  state(tmp_path / "spm", do_lower_case=False)
  load_tokenizer(tmp_path / "spm")
  state(tmp_path / "spm", do_lower_case=True)
  with pytest.raises(CorpusError, match=r"do_lower_case=true.*keeps capitals"):
    load_tokenizer(tmp_path / "spm")


@pytest.mark.parametrize(
  ("name", "content", "message"),
  [
    ("added_tokens.json", {"covid": None}, "'covid' is null.*whole number"),
    ("added_tokens.json", {"covid": "x"}, "'covid' is \"x\".*whole number"),
    ("tokenizer_config.json", {"added_tokens_decoder": ["a"]}, "tokens by id"),
    (
      "tokenizer_config.json",
      {"added_tokens_decoder": {"x": "a"}},
      "whole number",
    ),
    (
      "special_tokens_map.json",
      {"additional_special_tokens": "<e1>"},
      '="<e1>" in .*; expected a list',
    ),
    (
      "special_tokens_map.json",
      {"additional_special_tokens": [7]},
      "added token 7 .*expected its text",
    ),
    (
      "tokenizer_config.json",
      {"do_lower_case": "false"},
      'do_lower_case="false"; expected true, false or null',
    ),
    (
      "tokenizer_config.json",
      {"strip_accents": "no"},
      'strip_accents="no"; expected',
    ),
  ],
)
def test_odd_values_are_one_line(folder, name, content, message):
  (folder / name).write_text(json.dumps(content))
  with pytest.raises(CorpusError, match=message) as error:
    load_tokenizer(folder)
  assert "\n" not in str(error.value)
