"""Exported tokenizers give the same ids; imported ones are kept as they are."""

import json

import numpy as np
import pytest
import tokenizers as hf_tokenizers

from helpers import peers, workdirs
from maskedlm.core.errors import InteropError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, train_tokenizer
from maskedlm.interop.huggingface import tokenizer_files

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
  """Returns the exported tokenizer as AutoTokenizer loads it."""
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
  if tokenizer.kind == "bpe":  # transformers puts a space before the comma.
    text = text.replace(",", " ,").replace(".", " .")
  special = tokenizer.special
  ids = tokenizer.encode(text, specials=True).ids.tolist()
  assert ids.count(special.mask) == 4
  assert theirs(text)["input_ids"] == [special.cls, *ids, special.sep]
  assert theirs.mask_token_id == special.mask
  assert theirs.pad_token_id == special.pad
  assert theirs.unk_token_id == special.unk


def test_import_keeps_ids_and_fills_up(tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  tokenizer.save(tmp_path / "theirs")
  made = tokenizer_files.import_tokenizer(
    tmp_path / "theirs",
    tmp_path / "ours",
    vocab_size=tokenizer.vocab_size + 5,
    log=print,
  )
  assert made.vocab_size == tokenizer.vocab_size + 5
  assert made.tokens(tokenizer.vocab_size) == "[unused row 131]"
  # The added rows are never masked or drawn.
  assert set(range(131, 136)) <= set(made.special_ids.tolist())
  for text in TEXTS:
    np.testing.assert_array_equal(
      made.encode(text).ids, tokenizer.encode(text).ids
    )
  again = load_tokenizer(tmp_path / "ours")
  assert again.sha256 == made.sha256


def test_unusual_pair_templates_are_logged(tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  tokenizer.save(tmp_path)
  cfg = workdirs.config(tokenizer)
  lines = []

  def with_pairs():
    return tokenizer_files.with_pairs(
      cfg, tmp_path, tokenizer.special, log=lines.append
    )

  assert with_pairs() == cfg  # The file has no template.
  library = hf_tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
  library.post_processor = hf_tokenizers.processors.TemplateProcessing(
    single="$A", pair="$A $B", special_tokens=[]
  )
  library.save(str(tmp_path / "tokenizer.json"))
  assert with_pairs() == cfg
  assert len(lines) == 1 and "predictions will differ" in lines[0]
  library.post_processor = hf_tokenizers.processors.BertProcessing(
    ("[SEP]", tokenizer.special.sep), ("[CLS]", tokenizer.special.cls)
  )
  library.enable_padding(length=32)
  library.enable_truncation(3)
  library.save(str(tmp_path / "tokenizer.json"))
  assert with_pairs().num_types == 2
  config = tmp_path / "tokenizer_config.json"
  config.write_text('{"model_input_names": ["input_ids", "attention_mask"]}')
  assert with_pairs().num_types == 1
  assert len(lines) == 1


def test_gemmas_vocabulary(tmp_path):
  """As mmBERT's: BPE with ▁, <bos> and <eos>; its <s> and </s> are HTML."""
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
  made = peers.import_tokenizer(
    folder, tmp_path / "ours", vocab_size=len(tokens)
  )
  special = made.special
  assert (special.cls, special.sep, special.pad, special.mask) == (2, 1, 0, 4)
  for text in ("ab cab", "  <s>a</s> ü", "c"):
    ids = [2, *made.encode(text).ids.tolist(), 1]
    assert theirs(text)["input_ids"] == ids, text
  assert theirs("ab c")["input_ids"] == [2, tokens.index("ab"), 266, 1]


@pytest.mark.parametrize(
  ("kind", "rows", "expected"),
  [
    ("wordpiece", 130, "has 131 tokens, the model 130 rows"),
    ("unigram", 116, "has 117 tokens, the model 116 rows"),
  ],
)
def test_another_number_of_tokens_than_rows(tmp_path, kind, rows, expected):
  peers.train_tokenizer(kind).save(tmp_path)
  with pytest.raises(InteropError, match=expected):
    peers.import_tokenizer(tmp_path, tmp_path / "ours", vocab_size=rows)


def test_a_sentencepiece_model_that_is_to_lowercase_is_refused(tmp_path):
  peers.train_tokenizer("unigram").save(tmp_path)
  with pytest.raises(
    InteropError, match=r"do_lower_case=true.*tokenizer\.json"
  ):
    peers.import_tokenizer(
      tmp_path, tmp_path / "ours", vocab_size=117, lowercase=True
    )


@pytest.mark.parametrize("rows", [131, 134])
def test_tokens_that_tokenizer_json_lacks(tmp_path, rows):
  """They are added if the model has rows for them."""
  peers.train_tokenizer("wordpiece").save(tmp_path)
  config = {"tokenizer_class": "BertTokenizer", "do_lower_case": False}
  config |= {"additional_special_tokens": ["[MASK]", "<e1>"]}
  (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
  lines = []
  made = peers.import_tokenizer(
    tmp_path, tmp_path / "ours", vocab_size=rows, log=lines.append
  )
  assert made.vocab_size == rows
  if rows > 131:
    assert made.tokens(131) == "<e1>"
    assert "<e1> in a text is ordinary text" in lines[-1]
  else:
    assert "no row in the model, so left out: <e1>" in lines[-1]


@pytest.mark.parametrize("special", [False, True])
def test_added_unused_tokens_are_reported(special, tmp_path):
  """transformers reads them in a text; here no text can forge them."""
  words = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  words += ["[", "]", "the", "cat", "un", "##used", "##1"]
  library = hf_tokenizers.Tokenizer(
    hf_tokenizers.models.WordPiece(
      {token: i for i, token in enumerate(words)}, unk_token="[UNK]"
    )
  )
  library.pre_tokenizer = hf_tokenizers.pre_tokenizers.BertPreTokenizer()
  added = hf_tokenizers.AddedToken("[unused1]", special=special)
  add = library.add_special_tokens if special else library.add_tokens
  add([added])
  library.save(str(tmp_path / "tokenizer.json"))
  lines = []
  ours = peers.import_tokenizer(
    tmp_path, tmp_path / "ours", vocab_size=len(words) + 3, log=lines.append
  )
  (lost, line) = lines
  assert f"{tmp_path}: its tokenizer loses characters that" in lost
  assert f"{tmp_path}: [unused1] in a text is ordinary text" in line
  assert 1 not in ours.encode("the [unused1] cat").ids


def test_byte_pieces_are_the_same_and_decode(tmp_path):
  """Of a unigram model that spells unknown characters by their bytes."""
  ours = train_tokenizer(
    ["plain words in a text of words", "a text in plain letters"] * 9,
    kind="unigram",
    vocab_size=278,
    lowercase=False,
    byte_fallback=True,
  )
  theirs = export(ours, tmp_path)
  text = "words 漢, \U0001f600 letters"
  ids = theirs(text, add_special_tokens=False)["input_ids"]
  assert ids == ours.encode(text).ids.tolist()
  assert "<0xE6>" in theirs.convert_ids_to_tokens(ids)
  assert theirs.decode(ids) == ours.decode(ids) == text
