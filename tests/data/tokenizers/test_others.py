"""Files of others: read as they are, converted by transformers, or refused."""

import json
import sys

import pytest
import sentencepiece

from helpers.tokenizer_kinds import SCRIPTS
from helpers.tokenizer_texts import train_sentencepiece
from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, open_tokenizer

TEXTS = ["\n".join(lines) for lines in SCRIPTS.values()]
TEXTS += ["The Café 中国 VALUE", "the list", "covid-19x New York drug."]
WORDS = [
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "bär", "bar"),
  *("Bär", "Bar", "der", "Der", "café", "cafe", "中", "中国", "国", "the"),
  *("##s", "covid", "-", "19", "[DRUG]", "drug", "[", "]", "un", "##used"),
]
N = len(WORDS)
CONFIG, MAP, ADDED = (
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
)
BERT = {"tokenizer_class": "BertTokenizer"}
BACKEND = {"tokenizer_class": "TokenizersBackend"}  # It follows tokenizer.json.
COVID = {"content": "covid-19", "single_word": True, "special": False}


def write(folder, files):
  """Writes files: name -> JSON, or the lines of a text."""
  for name, content in files.items():
    text = "\n".join(content) if name.endswith("txt") else json.dumps(content)
    (folder / name).write_text(text, "utf-8")


def assert_as_transformers(folder, texts=TEXTS):
  """Returns the tokenizer after comparing it with AutoTokenizer's."""
  transformers = pytest.importorskip("transformers")
  peer = transformers.AutoTokenizer.from_pretrained(folder)
  made = load_tokenizer(folder)
  for text in texts:
    expected = peer(text, add_special_tokens=False)["input_ids"]
    assert made.encode(text).ids.tolist() == expected, text
    assert made.encode_batch([text])[0].tolist() == expected, text
  ids = range(len(peer))
  assert list(map(made.tokens, ids)) == peer.convert_ids_to_tokens(ids)
  made.save(folder / "saved")
  saved = open_tokenizer(folder / "saved")
  assert saved.sha256 == made.sha256 and not saved.notes
  return made


FLAGS = [
  {"do_lower_case": True},
  {"do_lower_case": False},
  {"do_lower_case": False, "strip_accents": True},
  {"do_lower_case": True, "strip_accents": False},
  {"do_lower_case": True, "strip_accents": None},
  {"do_lower_case": True, "tokenize_chinese_chars": False},
]


@pytest.mark.parametrize("stated", FLAGS)
@pytest.mark.parametrize("named", [BERT, BACKEND])
def test_options_beside_a_tokenizer_json(trained, tmp_path, stated, named):
  trained["wordpiece", False][0].save(tmp_path)
  plain = load_tokenizer(tmp_path / "tokenizer.json")
  write(tmp_path, {CONFIG: named | stated})
  write(tmp_path, {"config.json": {"model_type": "bert"}})
  made = assert_as_transformers(tmp_path)
  (tmp_path / "tokenizer.json").rename(tmp_path / "mine.json")
  assert load_tokenizer(tmp_path / "mine.json").sha256 == made.sha256
  agrees = stated == {"do_lower_case": False} or named == BACKEND
  assert agrees or any("converted by" in note for note in made.notes)
  assert not agrees or (made.sha256 == plain.sha256 and not made.notes)


@pytest.mark.parametrize("name", ["RobertaTokenizer", "TokenizersBackend"])
def test_the_space_before_a_text(trained, tmp_path, name):
  """NER models state add_prefix_space, which only a RobertaTokenizer reads."""
  trained["bpe", False][0].save(tmp_path)
  stated = {"tokenizer_class": name, "add_prefix_space": False}
  write(tmp_path, {CONFIG: stated, "config.json": {"model_type": "roberta"}})
  made = assert_as_transformers(tmp_path)
  starts = made.tokens(made.encode("the").ids[0]).startswith("Ġ")
  assert starts == (name == "TokenizersBackend")


@pytest.mark.parametrize(
  "stated",
  [
    *FLAGS,
    {},
    {"do_lower_case": True, "added_tokens_decoder": {str(N): COVID}},
    {"extra_special_tokens": ["<e1>"]},
    {"extra_special_tokens": {"e1_token": "<e1>"}},
    {"additional_special_tokens": ["[DRUG]", "<e1>"]},
  ],
)
@pytest.mark.parametrize("added", [{}, {"covid-19": N, "new york": N + 1}])
def test_a_vocab_txt_and_files_beside_it(tmp_path, stated, added):
  if "do_lower_case" not in stated:  # transformers would lowercase then.
    stated = stated | {"do_lower_case": True}
  if "added_tokens_decoder" in stated:  # Of newer releases, instead.
    added = {}
  files = {"vocab.txt": WORDS, CONFIG: BERT | stated, ADDED: added}
  write(tmp_path, files)
  made = assert_as_transformers(tmp_path, ["the [unused0] bär", *TEXTS])
  new = [made.tokens(i) for i in range(N, made.vocab_size)]
  assert not new or new[0] in made.notes[0]
  assert {"covid-19", "new york"} <= {*new} or not added


@pytest.mark.parametrize("prefix", [True, False])
def test_a_bpe_in_two_files(any_kind, tmp_path, prefix):
  kind = "byte-level, prefix" if prefix else "byte-level, no prefix"
  made, _ = any_kind(kind)
  made.save(tmp_path / "ours")
  model = json.loads((tmp_path / "ours/tokenizer.json").read_text())["model"]
  (tmp_path / "theirs").mkdir()
  files = {
    "vocab.json": model["vocab"],
    "merges.txt": ["#version: 0.2", *map(" ".join, model["merges"])],
    CONFIG: {"add_prefix_space": prefix},
    "config.json": {"model_type": "roberta"},
  }
  write(tmp_path / "theirs", files)
  converted = assert_as_transformers(tmp_path / "theirs")
  for text in TEXTS:
    assert converted.encode(text).ids.tolist() == made.encode(text).ids.tolist()


@pytest.mark.parametrize(
  ("stated", "shift"), [("xlm-roberta", 1), ("camembert", 4)]
)
def test_the_shifted_ids_of_a_sentencepiece_model(tmp_path, stated, shift):
  """Those of fairseq: <s>, <pad>, </s>, <unk>, then the pieces."""
  path = tmp_path / "sentencepiece.bpe.model"
  train_sentencepiece(path)
  library = sentencepiece.SentencePieceProcessor(model_file=str(path))
  write(tmp_path, {"config.json": {"model_type": stated}})
  alone = load_tokenizer(path)  # Named as a file, it is used as it is.
  made = assert_as_transformers(tmp_path)
  for text in TEXTS:
    pieces = library.encode(text)
    assert alone.encode(text).ids.tolist() == pieces
    expected = [piece + shift if piece else 3 for piece in pieces]
    assert made.encode(text).ids.tolist() == expected


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_other_special_tokens_are_refused(trained, tmp_path, kind):
  trained[kind, False][0].save(tmp_path)
  for role in ("cls", "sep", "mask"):
    stated = {f"{role}_token": {"content": "the"}}
    for name in (CONFIG, MAP):
      write(tmp_path, {CONFIG: {}, MAP: {}} | {name: stated})
      with pytest.raises(CorpusError, match=f"{role}_token is 'the' .* rename"):
        load_tokenizer(tmp_path)
  write(tmp_path, {CONFIG: {"pad_token": "x", "mask_token": None}, MAP: {}})
  assert not load_tokenizer(tmp_path).notes


# files beside -> a part of the error.
REFUSED = [
  ({ADDED: {"covid-19": N + 1}}, "leaves out covid-19, or gives other ids"),
  ({CONFIG: BERT | {"added_tokens_decoder": {"3": COVID}}}, "out covid-19, or"),
  ({ADDED: {"covid-19": None}}, "covid-19, or gives other ids"),
  ({ADDED: {"covid-19": "x"}}, "covid-19, or gives other ids"),
  ({CONFIG: {"added_tokens_decoder": {"x": "a"}}}, "files beside it add a"),
  ({MAP: {"additional_special_tokens": "<e1>"}}, "files beside it add <e1>"),
  ({MAP: {"additional_special_tokens": [7]}}, "files beside it add 7"),
  ({CONFIG: {"do_lower_case": "false"}}, 'states do_lower_case="false", unl'),
  ({CONFIG: {"strip_accents": "no"}}, 'states strip_accents="no", unlike v'),
  ({MAP: {"mask_token": "<mask>"}}, r"mask_token is '<mask>'.*\[MASK\]"),
  (
    {CONFIG: {"tokenizer_class": "BertJapaneseTokenizer"}},
    "'BertJapaneseTokenizer' may add its own rules .* fetch or save",
  ),
  (
    {"config.json": {"tokenizer_class": "BertJapaneseTokenizer"}},
    "'BertJapaneseTokenizer' may add",
  ),
]


@pytest.mark.parametrize(("files", "message"), REFUSED)
def test_a_vocab_txt_is_refused(tmp_path, files, message):
  pytest.importorskip("transformers")
  write(tmp_path, {"vocab.txt": WORDS} | files)
  with pytest.raises(CorpusError, match=message) as error:
    load_tokenizer(tmp_path)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize(
  ("files", "message"),
  [
    ({CONFIG: {"do_lower_case": True}}, "states do_lower_case=true, unlike"),
    ({CONFIG: {"tokenizer_class": "T5Tokenizer"}}, "'T5Tokenizer' adds its"),
  ],
)
def test_a_sentencepiece_model_is_refused(tmp_path, files, message):
  train_sentencepiece(tmp_path / "t.model")
  write(tmp_path, {CONFIG: {"do_lower_case": False}, ADDED: {"<e1>": 9}})
  [note] = load_tokenizer(tmp_path).notes
  assert "left out are tokens of the files beside it: <e1>" in note
  write(tmp_path, files)
  with pytest.raises(CorpusError, match=message):
    load_tokenizer(tmp_path)


def test_the_option_must_agree(trained, tmp_path):
  for (_, lowercase), (made, folder) in trained.items():
    assert load_tokenizer(folder, lowercase=lowercase).sha256 == made.sha256
    with pytest.raises(CorpusError, match=f"lowercase={not lowercase}"):
      load_tokenizer(folder, lowercase=not lowercase)
  write(tmp_path, {"vocab.txt": WORDS, CONFIG: {"do_lower_case": True}})
  with pytest.raises(CorpusError, match=r"lowercase=False.*lowercases text"):
    load_tokenizer(tmp_path, lowercase=False)


@pytest.mark.parametrize(
  "files",
  [
    {"vocab.json": {"<s>": 0}, "merges.txt": ["#version: 0.2"]},
    {"vocab.txt": WORDS, ADDED: {"covid-19": N}},
    {"vocab.txt": WORDS, CONFIG: {"strip_accents": True}},
  ],
)
def test_without_transformers_the_error_says_how_to_install(
  tmp_path, files, monkeypatch
):
  monkeypatch.setitem(sys.modules, "transformers", None)
  write(tmp_path, files)
  for path in (tmp_path, *map(tmp_path.joinpath, list(files)[:1])):
    with pytest.raises(CorpusError, match=r"pip install 'maskedlm\[hf\]'"):
      load_tokenizer(path)


def test_no_code_of_a_folder_is_run(tmp_path):
  pytest.importorskip("transformers")
  auto_map = {"AutoTokenizer": ["mine.MineTokenizer", None]}
  config = {"tokenizer_class": "MineTokenizer", "auto_map": auto_map}
  write(tmp_path, {"vocab.txt": WORDS, CONFIG: config})
  (tmp_path / "mine.py").write_text("raise SystemExit('run')")
  with pytest.raises(CorpusError, match="fetch or save one"):
    load_tokenizer(tmp_path)
