"""A vocab.txt: its case, its accents, and the tokens of files beside it."""

import json

import pytest
import tokenizers

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def _write(folder, words, **beside):
  """Writes vocab.txt and NAME.json for each argument."""
  text = "\n".join([*SPECIALS, *words]) + "\n"
  (folder / "vocab.txt").write_text(text, encoding="utf-8")
  for name, content in beside.items():
    (folder / f"{name}.json").write_text(json.dumps(content))
  return folder / "vocab.txt"


def _tokens(tokenizer, text):
  [ids] = tokenizer.encode_batch([text])
  assert tokenizer.encode(text).ids.tolist() == ids.tolist()
  return list(map(tokenizer.tokens, ids))


@pytest.mark.parametrize(
  ("words", "cased"),
  [
    (["Мой", "новый", "Чай", "Россия", "ёлка"], True),
    (["Ärzte", "ärzte"], True),
    (["Ελλάδα", "καλή"], True),
    (["Đông", "đông"], True),
    (["ձմեռ", "Ձմեռ"], True),
    (["यहाँ", "यह", "की", "के", "में"], False),
    (["น้ำ", "ที่", "ดี"], False),
    (["שָׁלוֹם", "שלום"], False),
    (["がくせい", "かくせい"], False),
    (["한국어", "한국"], False),
    (["новый", "мои"], False),
    (["中国", "中"], False),
    (["çay", "cay"], False),
  ],
)
def test_the_words_of_a_vocabulary_come_out_of_a_text(tmp_path, words, cased):
  path = _write(tmp_path, words)
  tokenizer = load_tokenizer(path)
  if not any("\u4e00" <= word <= "\u9fff" for word in words):
    assert _tokens(tokenizer, " ".join(words)) == words
  # Where no token has a capital, text is lowercased.
  assert (tokenizer.normalize("Q") == "Q") == cased
  assert ("cased" if cased else "uncased") in tokenizer.notes[0].split()[2]
  peer = tokenizers.BertWordPieceTokenizer(
    str(path), lowercase=not cased, strip_accents=False
  )
  expected = peer.encode(" ".join(words), add_special_tokens=False).tokens
  assert _tokens(tokenizer, " ".join(words)) == expected


def test_accents_are_stripped_if_no_token_has_one(tmp_path):
  tokenizer = load_tokenizer(_write(tmp_path, ["cafe", "мои", "елка"]))
  assert _tokens(tokenizer, "Café мой ЁЛКА") == ["cafe", "мои", "елка"]
  assert "accents stripped" in tokenizer.notes[0]


def test_the_option_decides_over_the_guess(tmp_path):
  path = _write(tmp_path, ["the", "cat"])
  assert _tokens(load_tokenizer(path, lowercase=False), "The") == ["[UNK]"]
  path = _write(tmp_path, ["The", "the", "café"])
  low = load_tokenizer(path, lowercase=True)
  assert _tokens(low, "The Café") == ["the", "café"]
  assert "tokenizer.lowercase" in low.notes[0]


def test_the_config_decides_or_contradicts(tmp_path):
  path = _write(
    tmp_path, ["the", "The", "é"], tokenizer_config={"do_lower_case": True}
  )
  for lowercase in (None, True):
    tokenizer = load_tokenizer(path, lowercase=lowercase)
    assert _tokens(tokenizer, "The") == ["the"]
    assert "do_lower_case" in tokenizer.notes[0]
  with pytest.raises(CorpusError, match=r"lowercase=False.*do_lower_case=true"):
    load_tokenizer(path, lowercase=False)


def test_other_files_must_agree_with_the_option(trained):
  for (_, lowercase), (tokenizer, folder) in trained.items():
    assert load_tokenizer(folder, lowercase=lowercase).sha256 == (
      tokenizer.sha256
    )
    with pytest.raises(CorpusError, match=f"lowercase={not lowercase}"):
      load_tokenizer(folder, lowercase=not lowercase)


WORDS = ["the", "graft", "##s", "covid", "-", "19", "[DRUG]", "drug", "[", "]"]
N = len(SPECIALS) + len(WORDS)


def _token(content, **flags):
  names = ("lstrip", "rstrip", "single_word", "special")
  flags = {"normalized": True, **dict.fromkeys(names, False), **flags}
  return {"content": content, **flags}


@pytest.mark.parametrize(
  "beside",
  [
    {"added_tokens": {"covid-19": N, "new york": N + 1}},
    {"added_tokens": {"covid-19": N + 1, "new york": N}},
    {
      "tokenizer_config": {
        "do_lower_case": True,
        "added_tokens_decoder": {
          str(N + 1): _token("new york"),
          str(N): _token("covid-19", single_word=True),
        },
      }
    },
    {
      "added_tokens": {"covid-19": N},
      "tokenizer_config": {
        "added_tokens_decoder": {str(N): _token("covid-19", normalized=False)}
      },
    },
    {
      "added_tokens": {"<e1>": N},
      "special_tokens_map": {"additional_special_tokens": ["<e1>", "<e2>"]},
    },
    {"tokenizer_config": {"additional_special_tokens": ["[DRUG]", "<e1>"]}},
    {"tokenizer_config": {"extra_special_tokens": ["<e1>"]}},
    {"tokenizer_config": {"extra_special_tokens": {"e1_token": "<e1>"}}},
  ],
)
def test_added_tokens_are_those_of_transformers(tmp_path, beside):
  transformers = pytest.importorskip("transformers")
  beside.setdefault("tokenizer_config", {}).setdefault("do_lower_case", True)
  _write(tmp_path, WORDS, **beside)
  peer = transformers.BertTokenizer.from_pretrained(tmp_path)
  tokenizer = load_tokenizer(tmp_path)
  assert tokenizer.vocab_size == len(peer)
  theirs = peer.convert_ids_to_tokens(range(len(peer)))
  assert list(map(tokenizer.tokens, range(len(peer)))) == theirs
  added = peer.added_tokens_decoder.items()
  special = {i for i, token in added if token.special} | {0, 1, 2, 3, 4}
  assert set(tokenizer.special_ids.tolist()) == special
  # Special tokens in a text are text here, so there is none in this one.
  text = "The grafts, COVID-19 covid-19x New York drug"
  assert _tokens(tokenizer, text) == peer.tokenize(text)
  new = [token for token in theirs if token not in [*SPECIALS, *WORDS]]
  assert not new or f"added by files beside it: {', '.join(new)}" in (
    tokenizer.notes
  )
  tokenizer.save(tmp_path / "saved")
  assert load_tokenizer(tmp_path / "saved").sha256 == tokenizer.sha256


@pytest.mark.parametrize(
  "beside",
  [
    {"added_tokens": {"covid-19": N + 1}},
    {
      "tokenizer_config": {
        "added_tokens_decoder": {"3": _token("covid-19")},
      }
    },
    {"special_tokens_map": {"mask_token": "<mask>"}},
  ],
)
def test_tokens_that_do_not_follow_are_refused(tmp_path, beside):
  _write(tmp_path, WORDS, **beside)
  with pytest.raises(CorpusError, match=r"vocab\.txt.*(covid-19|<mask>)"):
    load_tokenizer(tmp_path)


def test_a_vocabulary_in_two_files_is_refused(tmp_path):
  (tmp_path / "vocab.json").write_text('{"<s>": 0}')
  (tmp_path / "merges.txt").write_text("#version: 0.2\n")
  for path in (tmp_path, tmp_path / "vocab.json", tmp_path / "merges.txt"):
    with pytest.raises(CorpusError, match=r"vocab\.json.*save_pretrained"):
      load_tokenizer(path)


def test_tokens_beside_another_file_are_named(trained, tmp_path):
  for kind in ("bpe", "unigram"):
    folder = tmp_path / kind
    trained[kind, False][0].save(folder)
    (folder / "added_tokens.json").write_text('{"<e1>": 1009, "<mask>": 4}')
    [note] = load_tokenizer(folder).notes
    assert "left out" in note and "<e1>" in note


def test_a_vocabulary_in_another_encoding(tmp_path):
  text = "\n".join([*SPECIALS, "Größe", "für", "Mädchen"]) + "\n"
  (tmp_path / "vocab.txt").write_bytes(text.encode("latin-1"))
  with pytest.raises(CorpusError, match="iconv -f ENCODING"):
    load_tokenizer(tmp_path)
