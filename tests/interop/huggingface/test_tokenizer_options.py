"""Imported tokenizers follow the options that transformers would follow."""

import json

import numpy as np
import pytest
import tokenizers as hf_tokenizers

from helpers import peers
from maskedlm.core.errors import CorpusError, InteropError
from maskedlm.interop.huggingface import parameter_names

transformers = pytest.importorskip("transformers")

TEXT = "The function returns a list of the decoded values."


@pytest.mark.parametrize("class_name", ["BertTokenizer", "TokenizersBackend"])
def test_case_follows_transformers(tmp_path, class_name):
  """BertTokenizer prefers tokenizer_config.json to tokenizer.json."""
  folder = tmp_path / "theirs"
  peers.train_tokenizer("wordpiece").save(folder)  # Cased.
  config = {"tokenizer_class": class_name, "do_lower_case": True}
  (folder / "tokenizer_config.json").write_text(json.dumps(config))
  (folder / "config.json").write_text('{"model_type": "bert"}')
  lines = []
  made = peers.import_tokenizer(folder, tmp_path / "ours", log=lines.append)
  theirs = transformers.AutoTokenizer.from_pretrained(folder)
  found = made.encode("The Naïve").ids.tolist()
  assert found == theirs.encode("The Naïve", add_special_tokens=False)
  former = class_name == "BertTokenizer"
  assert len(lines) == 1
  assert f"of the {'former' if former else 'latter'}" in lines[0]


@pytest.mark.parametrize(
  "class_name", ["RobertaTokenizer", "TokenizersBackend"]
)
def test_prefix_space_follows_transformers(tmp_path, class_name):
  """RobertaTokenizer reads it from tokenizer_config.json; NER models set it."""
  folder = tmp_path / "theirs"
  tokenizer = peers.train_tokenizer("bpe")
  tokenizer.save(folder)
  path = folder / "tokenizer.json"
  definition = json.loads(path.read_text("utf-8"))
  space = definition["pre_tokenizer"]["add_prefix_space"]
  config = {"tokenizer_class": class_name, "add_prefix_space": not space}
  (folder / "tokenizer_config.json").write_text(json.dumps(config))
  (folder / "config.json").write_text('{"model_type": "roberta"}')
  size = tokenizer.vocab_size
  made = peers.import_tokenizer(
    folder,
    tmp_path / "ours",
    vocab_size=size,
    architecture=parameter_names.ROBERTA,
  )
  theirs = transformers.AutoTokenizer.from_pretrained(folder)
  found = made.encode("the list").ids.tolist()
  assert found == theirs.encode("the list", add_special_tokens=False)
  is_stated = class_name == "RobertaTokenizer"
  assert is_stated == (found != tokenizer.encode("the list").ids.tolist())


def test_missing_and_null_options(tmp_path):
  """There may be no added tokens; an option that is null isn't set."""
  folder = tmp_path / "theirs"
  tokenizer = peers.train_tokenizer("wordpiece")
  tokenizer.save(folder)
  path = folder / "tokenizer.json"
  definition = json.loads(path.read_text("utf-8"))
  del definition["added_tokens"]
  path.write_text(json.dumps(definition))
  config = {"do_lower_case": None, "tokenize_chinese_chars": None}
  (folder / "tokenizer_config.json").write_text(json.dumps(config))
  made = peers.import_tokenizer(folder, tmp_path / "ours", vocab_size=133)
  assert made.vocab_size == 133
  np.testing.assert_array_equal(
    made.encode(TEXT).ids, tokenizer.encode(TEXT).ids
  )


def state(folder, **fields):
  (folder / "tokenizer_config.json").write_text(json.dumps(fields))


def test_an_unstated_case_is_logged(tmp_path):
  """transformers lowercases then, whatever tokenizer.json says."""
  folder, lines = tmp_path / "theirs", []
  tokenizer = peers.train_tokenizer("wordpiece")  # Cased.
  tokenizer.save(folder)
  (folder / "config.json").write_text('{"model_type": "bert"}')
  state(folder, do_lower_case=False)
  peers.import_tokenizer(folder, tmp_path / "a", log=lines.append)
  assert not lines
  state(folder)
  made = peers.import_tokenizer(folder, tmp_path / "b", log=lines.append)
  assert made.sha256 == tokenizer.sha256
  assert len(lines) == 1 and "uses do_lower_case=True; maskedlm" in lines[0]


def test_stated_special_tokens(tmp_path):
  """A vocabulary may have both [CLS] and <s>, and other names."""
  folder = tmp_path / "theirs"
  peers.train_tokenizer("wordpiece").save(folder)
  library = hf_tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
  library.add_special_tokens(["<s>"])
  library.save(str(folder / "tokenizer.json"))
  state(folder, cls_token="<s>")
  with pytest.raises(
    CorpusError, match=r"cls_token is '<s>' .*, but .*'\[CLS\]'"
  ):
    peers.import_tokenizer(folder, tmp_path / "ours", vocab_size=132)
  state(folder, cls_token={"content": "[CLS]"}, sep_token="[END]")
  with pytest.raises(CorpusError, match=r"'\[END\]' .* of \[SEP\], <s"):
    peers.import_tokenizer(folder, tmp_path / "ours", vocab_size=132)
  state(folder, cls_token="[CLS]", sep_token=None)
  lines = []
  peers.import_tokenizer(
    folder, tmp_path / "ours", vocab_size=132, log=lines.append
  )
  assert "<s> in a text is ordinary text" in lines[-1]


@pytest.mark.parametrize(
  "stated",
  [
    {"added_tokens_decoder": {"131": {"content": "<e1>"}}},
    {"additional_special_tokens": ["[MASK]", "<e1>"]},
    {"extra_special_tokens": {"e1_token": "<e1>"}},
  ],
)
def test_tokens_missing_in_tokenizer_json(tmp_path, stated):
  folder = tmp_path / "theirs"
  tokenizer = peers.train_tokenizer("wordpiece")
  tokenizer.save(folder)
  (folder / "config.json").write_text('{"model_type": "bert"}')
  state(folder, do_lower_case=False, **stated)
  with pytest.raises(InteropError, match=r"left out: <e1>; python"):
    peers.import_tokenizer(folder, tmp_path / "ours", vocab_size=132)
  # The remedy in the message.
  theirs = transformers.AutoTokenizer.from_pretrained(folder)
  theirs.save_pretrained(folder)
  made = peers.import_tokenizer(folder, tmp_path / "ours", vocab_size=132)
  assert made.tokens(131) == "<e1>"
  # Tokens without a row in the model are ignored.
  state(tmp_path, **stated)
  tokenizer.save(tmp_path)
  assert peers.import_tokenizer(tmp_path, tmp_path / "other").vocab_size == 131


@pytest.mark.parametrize(
  ("file", "class_name"),
  [
    ("vocab.txt", "BertJapaneseTokenizer"),
    ("sentencepiece.bpe.model", "XLMRobertaTokenizer"),  # Its ids are shifted.
  ],
)
@pytest.mark.parametrize("place", ["config.json", "tokenizer_config.json"])
def test_classes_with_their_own_rules(tmp_path, file, class_name, place):
  names_of = peers.train_tokenizer("wordpiece").tokens
  (tmp_path / file).write_text("\n".join(map(names_of, range(131))))
  (tmp_path / place).write_text(json.dumps({"tokenizer_class": class_name}))
  with pytest.raises(
    (InteropError, CorpusError),
    match=f"'{class_name}' adds its own rules to {file}: ",
  ):
    peers.import_tokenizer(tmp_path, tmp_path / "ours")
  if file == "vocab.txt":
    (tmp_path / place).write_text('{"tokenizer_class": "BertTokenizerFast"}')
    peers.import_tokenizer(tmp_path, tmp_path / "ours")


def test_added_tokens_json_beside_a_vocabulary(tmp_path):
  """Its tokens have the ids that transformers gives them."""
  names_of = peers.train_tokenizer("wordpiece").tokens
  (tmp_path / "vocab.txt").write_text("\n".join(map(names_of, range(131))))
  added = tmp_path / "added_tokens.json"
  added.write_text("{}")
  peers.import_tokenizer(tmp_path, tmp_path / "ours")
  added.write_text('{"<e1>": 131}')
  made = peers.import_tokenizer(tmp_path, tmp_path / "ours", vocab_size=132)
  (tmp_path / "config.json").write_text('{"model_type": "bert"}')
  theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
  assert made.tokens(131) == "<e1>" == theirs.convert_ids_to_tokens(131)


UNUSED_VOCABULARY = [
  *("[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
  *("[", "]", "the", "cat", "un", "##used", "unused", "##1", "##0"),
  *("The", "é", "e", "Ünter", "unter"),
]
UNUSED_TEXTS = (
  "the [unused1] cat",
  "[unused1]",
  "the[unused0]",
  "[UNUSED1]",
  "The Ünter é",
)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("strip", [None, False, True])
def test_unused_tokens_of_a_vocabulary_are_text(lower, strip, tmp_path):
  """As in transformers, for each statement about case and accents."""
  (tmp_path / "vocab.txt").write_text("\n".join(UNUSED_VOCABULARY) + "\n")
  stated = {"do_lower_case": lower, "strip_accents": strip}
  (tmp_path / "tokenizer_config.json").write_text(
    json.dumps({"tokenizer_class": "BertTokenizer", **stated})
  )
  (tmp_path / "config.json").write_text('{"model_type": "bert"}')
  theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
  ours = peers.import_tokenizer(
    tmp_path, tmp_path / "ours", vocab_size=len(UNUSED_VOCABULARY)
  )
  for text in UNUSED_TEXTS:
    expected = theirs(text, add_special_tokens=False)["input_ids"]
    assert ours.encode(text).ids.tolist() == expected, text
    assert ours.encode_batch([text])[0].tolist() == expected, text


@pytest.mark.parametrize("special", [False, True])
def test_added_unused_tokens_are_reported(special, tmp_path):
  """transformers reads them in a text; here no text can forge them."""
  library = hf_tokenizers.Tokenizer(
    hf_tokenizers.models.WordPiece(
      {token: i for i, token in enumerate(UNUSED_VOCABULARY)},
      unk_token="[UNK]",
    )
  )
  library.pre_tokenizer = hf_tokenizers.pre_tokenizers.BertPreTokenizer()
  added = hf_tokenizers.AddedToken("[unused1]", special=special)
  add = library.add_special_tokens if special else library.add_tokens
  add([added])
  library.save(str(tmp_path / "tokenizer.json"))
  lines = []
  ours = peers.import_tokenizer(
    tmp_path,
    tmp_path / "ours",
    vocab_size=len(UNUSED_VOCABULARY) + 3,
    log=lines.append,
  )
  (line,) = lines
  assert f"{tmp_path}: [unused1] in a text is ordinary text" in line
  assert 2 not in ours.encode("the [unused1] cat").ids
