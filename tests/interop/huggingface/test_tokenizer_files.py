"""Exported tokenizers give the ids of ours; theirs are imported as they are."""

import json

import numpy as np
import pytest
import sentencepiece
import tokenizers as hf_tokenizers

from helpers import peers, workdirs
from maskedlm.core.errors import InteropError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.interop.huggingface import parameter_names, tokenizer_files

transformers = pytest.importorskip("transformers")

TEXTS = (
  "The function returns a list of the decoded values.",
  "  two  spaces, a\ttab and\na newline ",
  "Käse, naïve, 北京 and 日本語; ﬁne ½ Ⅷ",
  "emoji 😀 and e\u0301 and \u200b and \xa0.",
  "don't (stop) -- JSON's \"quotes\" 12,345.6",
  "x" * 130,
  "",
)


@pytest.fixture(params=["wordpiece", "bpe", "unigram"])
def tokenizer(request):
  return peers.train_tokenizer(request.param)


def export(tokenizer, folder, **changes):
  """As AutoTokenizer loads it; config.json says of which model it is."""
  cfg = workdirs.config(tokenizer, **changes)
  tokenizer.save(folder / "ours")
  out = folder / "theirs"
  out.mkdir()
  tokenizer_files.export_tokenizer(folder / "ours", out, cfg=cfg)
  (out / "config.json").write_text('{"model_type": "bert"}')
  return transformers.AutoTokenizer.from_pretrained(out)


def test_ids_of_texts(tokenizer, tmp_path):
  theirs = export(tokenizer, tmp_path)
  special = tokenizer.special
  assert len(theirs) == tokenizer.vocab_size
  for text in TEXTS:
    ids = [special.cls, *tokenizer.encode(text).ids.tolist(), special.sep]
    assert theirs(text)["input_ids"] == ids, text
  batch = theirs(list(TEXTS), padding=True, return_tensors="np")
  length = batch["attention_mask"].sum(axis=1)
  beyond = np.arange(batch["input_ids"].shape[1]) >= length[:, None]
  assert (batch["input_ids"][beyond] == special.pad).all()
  assert theirs.model_max_length == workdirs.T


@pytest.mark.parametrize("separators", [1, 2])
def test_ids_of_pairs(tokenizer, tmp_path, separators):
  theirs = export(tokenizer, tmp_path, pair_separators=separators)
  special = tokenizer.special
  a = tokenizer.encode(TEXTS[0]).ids.tolist()
  b = tokenizer.encode(TEXTS[4]).ids.tolist()
  middle = [special.sep] * separators
  made = theirs(TEXTS[0], TEXTS[4])
  ids = [special.cls, *a, *middle, *b, special.sep]
  assert made["input_ids"] == ids
  if separators == 1:
    types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
    assert made["token_type_ids"] == types


def test_masks_in_text(tokenizer, tmp_path):
  theirs = export(tokenizer, tmp_path)
  mask = theirs.mask_token
  text = f"{mask} is a {mask} that returns {mask}, a {mask}."
  if tokenizer.kind == "bpe":  # Theirs puts a space before the comma.
    text = text.replace(",", " ,").replace(".", " .")
  special = tokenizer.special
  ids = tokenizer.encode(text, specials=True).ids.tolist()
  assert ids.count(special.mask) == 4
  assert theirs(text)["input_ids"] == [special.cls, *ids, special.sep]
  assert theirs.mask_token_id == special.mask
  assert theirs.pad_token_id == special.pad
  assert theirs.unk_token_id == special.unk


def test_a_model_without_types_gets_none(tmp_path):
  theirs = export(peers.train_tokenizer("bpe"), tmp_path, type_vocab_size=0)
  assert "token_type_ids" not in theirs("a text", "another")


def test_import_keeps_ids_and_fills_up(tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  tokenizer.save(tmp_path / "theirs")
  made = tokenizer_files.import_tokenizer(
    tmp_path / "theirs",
    tmp_path / "ours",
    vocab_size=tokenizer.vocab_size + 5,
    architecture=parameter_names.BERT,
    log=print,
  )
  assert made.vocab_size == tokenizer.vocab_size + 5
  assert made.tokens(tokenizer.vocab_size) == "[unused row 131]"
  # They are never masked, nor drawn.
  assert set(range(131, 136)) <= set(made.special_ids.tolist())
  for text in TEXTS:
    np.testing.assert_array_equal(
      made.encode(text).ids, tokenizer.encode(text).ids
    )
  again = load_tokenizer(tmp_path / "ours")
  assert again.sha256 == made.sha256


def read(folder, out, **kwargs):
  kwargs = {
    "vocab_size": 131,
    "architecture": parameter_names.BERT,
    "log": print,
    **kwargs,
  }
  return tokenizer_files.import_tokenizer(folder, out, **kwargs)


def test_import_of_a_vocabulary(tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  folder = tmp_path / "theirs"
  folder.mkdir()
  lines = [tokenizer.tokens(i) for i in range(tokenizer.vocab_size)]
  (folder / "vocab.txt").write_text("\n".join(lines) + "\n", "utf-8")
  made = read(folder, tmp_path / "ours")
  np.testing.assert_array_equal(
    made.encode(TEXTS[0]).ids, tokenizer.encode(TEXTS[0]).ids
  )


def test_what_surrounds_texts_otherwise_is_told(tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  tokenizer.save(tmp_path)
  cfg = workdirs.config(tokenizer)
  lines = []

  def with_pairs():
    return tokenizer_files.with_pairs(
      cfg, tmp_path, tokenizer.special, log=lines.append
    )

  assert with_pairs() == cfg  # The file doesn't say.
  library = hf_tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
  library.post_processor = hf_tokenizers.processors.TemplateProcessing(
    single="$A", pair="$A $B", special_tokens=[]
  )
  library.save(str(tmp_path / "tokenizer.json"))
  assert with_pairs() == cfg
  assert len(lines) == 1 and "predictions will differ" in lines[0]
  library.post_processor = tokenizer_files._template(
    {"cls": "[CLS]", "sep": "[SEP]"},
    tokenizer.special,
    tokenizer_files.PairTemplate(1, 1),
  )
  library.enable_padding(length=32)
  library.enable_truncation(3)
  library.save(str(tmp_path / "tokenizer.json"))
  assert with_pairs().num_types == 2
  config = tmp_path / "tokenizer_config.json"
  config.write_text('{"model_input_names": ["input_ids", "attention_mask"]}')
  assert with_pairs().num_types == 1
  assert len(lines) == 1


@pytest.mark.parametrize("class_name", ["BertTokenizer", "TokenizersBackend"])
def test_the_case_is_that_of_transformers(tmp_path, class_name):
  """BertTokenizer prefers tokenizer_config.json to tokenizer.json."""
  folder = tmp_path / "theirs"
  peers.train_tokenizer("wordpiece").save(folder)  # Cased.
  config = {"tokenizer_class": class_name, "do_lower_case": True}
  (folder / "tokenizer_config.json").write_text(json.dumps(config))
  (folder / "config.json").write_text('{"model_type": "bert"}')
  lines = []
  made = read(folder, tmp_path / "ours", log=lines.append)
  theirs = transformers.AutoTokenizer.from_pretrained(folder)
  found = made.encode("The Naïve").ids.tolist()
  assert found == theirs.encode("The Naïve", add_special_tokens=False)
  assert len(lines) == (class_name == "BertTokenizer")


@pytest.mark.parametrize(
  "class_name", ["RobertaTokenizer", "TokenizersBackend"]
)
def test_the_space_before_a_text_is_that_of_transformers(tmp_path, class_name):
  """RobertaTokenizer takes it of tokenizer_config.json; NER often sets it."""
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
  made = read(
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


def test_what_a_file_may_leave_out(tmp_path):
  """No added tokens; an option that is null is none."""
  folder = tmp_path / "theirs"
  tokenizer = peers.train_tokenizer("wordpiece")
  tokenizer.save(folder)
  path = folder / "tokenizer.json"
  definition = json.loads(path.read_text("utf-8"))
  del definition["added_tokens"]
  path.write_text(json.dumps(definition))
  config = {"do_lower_case": None, "tokenize_chinese_chars": None}
  (folder / "tokenizer_config.json").write_text(json.dumps(config))
  made = read(folder, tmp_path / "ours", vocab_size=133)
  assert made.vocab_size == 133
  np.testing.assert_array_equal(
    made.encode(TEXTS[0]).ids, tokenizer.encode(TEXTS[0]).ids
  )


def state(folder, **fields):
  (folder / "tokenizer_config.json").write_text(json.dumps(fields))


def test_a_case_that_is_not_stated_is_told(tmp_path):
  """transformers lowercases then, whatever tokenizer.json has."""
  folder, lines = tmp_path / "theirs", []
  tokenizer = peers.train_tokenizer("wordpiece")  # Cased.
  tokenizer.save(folder)
  state(folder, do_lower_case=False)
  read(folder, tmp_path / "a", log=lines.append)
  assert not lines
  state(folder)
  made = read(folder, tmp_path / "b", log=lines.append)
  assert made.sha256 == tokenizer.sha256
  assert len(lines) == 1 and "uses do_lower_case=True; maskedlm" in lines[0]


def test_special_tokens_are_those_that_are_stated(tmp_path):
  """A vocabulary may have both [CLS] and <s>; and the names may be others."""
  folder = tmp_path / "theirs"
  peers.train_tokenizer("wordpiece").save(folder)
  library = hf_tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
  library.add_special_tokens(["<s>"])
  library.save(str(folder / "tokenizer.json"))
  state(folder, cls_token="<s>")
  with pytest.raises(
    InteropError, match=r"cls_token is '<s>', but .*'\[CLS\]'"
  ):
    read(folder, tmp_path / "ours", vocab_size=132)
  state(folder, cls_token={"content": "[CLS]"}, sep_token="[END]")
  with pytest.raises(InteropError, match=r"'\[END\]'; known: \[SEP\], <s"):
    read(folder, tmp_path / "ours", vocab_size=132)
  state(folder, cls_token="[CLS]", sep_token=None)
  lines = []
  read(folder, tmp_path / "ours", vocab_size=132, log=lines.append)
  assert "<s> in a text is ordinary text" in lines[-1]


def test_a_vocabulary_as_gemma_has_it(tmp_path):
  """mmBERT's: BPE of ▁, <bos> and <eos>; its <s> and </s> are HTML."""
  names_of_roles = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
  tokens = [*names_of_roles, *(f"<0x{i:02X}>" for i in range(256))]
  tokens += [*"▁abc", "ab", "▁c", "<s>", "</s>"]
  library = hf_tokenizers.Tokenizer(
    hf_tokenizers.models.BPE(
      {token: i for i, token in enumerate(tokens)},
      [("a", "b"), ("▁", "c")],
      byte_fallback=True,
      fuse_unk=True,
      unk_token="<unk>",
    )
  )
  library.normalizer = hf_tokenizers.normalizers.Replace(" ", "▁")
  library.add_special_tokens(names_of_roles)
  library.add_tokens(["<s>", "</s>"])
  library.post_processor = hf_tokenizers.processors.TemplateProcessing(
    single="<bos> $A <eos>",
    pair="<bos> $A <eos> $B <eos>",
    special_tokens=[("<bos>", 2), ("<eos>", 1)],
  )
  roles = ("pad", "sep", "cls", "unk", "mask")
  folder = tmp_path / "theirs"
  theirs = transformers.PreTrainedTokenizerFast(
    tokenizer_object=library,
    **{f"{r}_token": n for r, n in zip(roles, names_of_roles, strict=True)},
  )
  theirs.save_pretrained(folder)
  made = read(
    folder,
    tmp_path / "ours",
    vocab_size=len(tokens),
    architecture=parameter_names.MODERNBERT,
  )
  special = made.special
  assert (special.cls, special.sep, special.pad, special.mask) == (2, 1, 0, 4)
  for text in ("ab cab", "  <s>a</s> ü", "c"):
    ids = [2, *made.encode(text).ids.tolist(), 1]
    assert theirs(text)["input_ids"] == ids, text
  assert theirs("ab c")["input_ids"] == [2, tokens.index("ab"), 266, 1]


@pytest.mark.parametrize(
  "stated",
  [
    {"added_tokens_decoder": {"131": {"content": "<e1>"}}},
    {"additional_special_tokens": ["[MASK]", "<e1>"]},
    {"extra_special_tokens": {"e1_token": "<e1>"}},
  ],
)
def test_tokens_that_no_tokenizer_json_has(tmp_path, stated):
  folder = tmp_path / "theirs"
  tokenizer = peers.train_tokenizer("wordpiece")
  tokenizer.save(folder)
  (folder / "config.json").write_text('{"model_type": "bert"}')
  state(folder, do_lower_case=False, **stated)
  with pytest.raises(InteropError, match=r"in tokenizer.json: <e1>; python"):
    read(folder, tmp_path / "ours", vocab_size=132)
  # Its remedy.
  theirs = transformers.AutoTokenizer.from_pretrained(folder)
  theirs.save_pretrained(folder)
  made = read(folder, tmp_path / "ours", vocab_size=132)
  assert made.tokens(131) == "<e1>"
  # Where the model has no row for it, there is none.
  state(tmp_path, **stated)
  tokenizer.save(tmp_path)
  assert read(tmp_path, tmp_path / "other").vocab_size == 131


@pytest.mark.parametrize(
  ("file", "class_name"),
  [
    ("vocab.txt", "BertJapaneseTokenizer"),
    ("sentencepiece.bpe.model", "XLMRobertaTokenizer"),  # Its ids are shifted.
  ],
)
@pytest.mark.parametrize("place", ["config.json", "tokenizer_config.json"])
def test_classes_with_rules_of_their_own(tmp_path, file, class_name, place):
  names_of = peers.train_tokenizer("wordpiece").tokens
  (tmp_path / file).write_text("\n".join(map(names_of, range(131))))
  (tmp_path / place).write_text(json.dumps({"tokenizer_class": class_name}))
  with pytest.raises(
    InteropError, match=f"'{class_name}' adds its own rules to {file}: "
  ):
    read(tmp_path, tmp_path / "ours")
  if file == "vocab.txt":
    (tmp_path / place).write_text('{"tokenizer_class": "BertTokenizerFast"}')
    read(tmp_path, tmp_path / "ours")


def test_added_tokens_need_the_file_that_has_them_all(tmp_path):
  names_of = peers.train_tokenizer("wordpiece").tokens
  (tmp_path / "vocab.txt").write_text("\n".join(map(names_of, range(131))))
  added = tmp_path / "added_tokens.json"
  added.write_text("{}")
  read(tmp_path, tmp_path / "ours")
  added.write_text('{"<e1>": 131}')
  with pytest.raises(InteropError, match=r"added_tokens.json.*save_pretrained"):
    read(tmp_path, tmp_path / "ours", vocab_size=132)


@pytest.mark.parametrize(
  ("files", "architecture", "expected"),
  [
    (
      (),
      parameter_names.BERT,
      "has no tokenizer: expected tokenizer.json, vocab.txt",
    ),
    (("vocab.json", "merges.txt"), parameter_names.ROBERTA, "AutoTokenizer"),
    (
      ("sentencepiece.bpe.model",),
      parameter_names.XLM_ROBERTA,
      "are not those of xlm-",
    ),
  ],
)
def test_files_that_do_not_say_it(tmp_path, files, architecture, expected):
  for name in files:
    (tmp_path / name).write_text("")
  with pytest.raises(InteropError, match=expected):
    read(tmp_path, tmp_path / "ours", architecture=architecture)


def test_a_tokenizer_of_another_model(tmp_path):
  peers.train_tokenizer("wordpiece").save(tmp_path)
  with pytest.raises(InteropError, match="has 131 tokens, the model 130 rows"):
    read(tmp_path, tmp_path / "ours", vocab_size=130)


def test_a_model_file_that_can_not_be_filled_up(tmp_path):
  peers.train_tokenizer("unigram").save(tmp_path)
  with pytest.raises(InteropError, match="117 tokens, the model 131 rows, and"):
    read(tmp_path, tmp_path / "ours")


def test_only_unigram_models_are_converted(tmp_path):
  model = tmp_path / "m.model"
  with model.open("wb") as file:
    sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=iter(["a text of a few words"] * 50),
      model_writer=file,
      model_type="bpe",
      vocab_size=25,
      minloglevel=2,
    )
  tokenizer = load_tokenizer(model)
  with pytest.raises(InteropError, match="of type BPE; only UNIGRAM"):
    export(tokenizer, tmp_path)
