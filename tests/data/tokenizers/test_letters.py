"""Tokenizers of letters and k-mers: ids by hand, and as transformers has them.

Longer words than WordPiece's 100 letters, and files of ESM and DNABERT.
"""

import itertools

import numpy as np
import pytest

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.tokenizer import (
  load_tokenizer,
  open_tokenizer,
  train_tokenizer,
)

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def _sequence(size, letters="ACGT"):
  return "".join(np.random.default_rng(size).choice([*letters], size))


def _train(kind, lines=("ACGT",), **options):
  return train_tokenizer(
    lines, kind=kind, **{"vocab_size": 64, "lowercase": False, **options}
  )


def _tokens(tokenizer, text):
  [ids] = tokenizer.encode_batch([text])
  assert tokenizer.encode(text).ids.tolist() == ids.tolist()
  return [tokenizer.tokens(i) for i in ids]


@pytest.mark.parametrize("k", [1, 3, 4, 6])
@pytest.mark.parametrize("stride", [1, 2, 3, 6])
def test_kmers_are_all_slices_of_k_letters(k, stride):
  if stride > k:
    with pytest.raises(CorpusError, match=f"={stride} is more than .*={k},"):
      _train("kmers", k=k, stride=stride)
    return
  made = _train("kmers", k=k, stride=stride)
  assert (made.kind, made.k, made.stride) == ("kmers", k, stride)
  assert made.vocab_size == 4**k + 5
  assert made.overlap == -(-k // stride)
  for size in (1, 2, 5, 6, 7, 8, 30, 301):
    text = _sequence(size)
    whole = range(0, size - k + 1, stride)
    expected = [text[i : i + k] for i in whole]
    # Letters that fill no k-mer are one unknown token.
    left = size - (whole[-1] + k) if whole else size
    assert _tokens(made, text) == expected + ["[UNK]"] * (left > 0)


def test_a_kmer_stands_where_its_own_letters_are():
  made = _train("kmers", k=3)
  encoding = made.encode("ACGTN ACGU")
  assert [made.tokens(i) for i in encoding.ids] == [
    *("ACG", "CGT", "[UNK]", "ACG", "[UNK]")
  ]
  assert encoding.offsets[:, 0].tolist() == [0, 1, 2, 6, 7]
  assert _tokens(made, "ACG CGT\nGTA") == ["ACG", "CGT", "GTA"]
  assert made.line_separator == "\n"
  assert _tokens(_train("kmers", ["ACGU"], k=2), "AUG") == ["AU", "UG"]


def test_letters_are_tokens():
  made = _train("characters", ["MKV LL", "MX*"])
  assert made.kind == "characters"
  assert made.vocab_size == 5 + len({*"MKVLX*"})
  assert _tokens(made, "MK\nVQL") == ["M", "K", "V", "[UNK]", "L"]
  assert made.decode(made.encode("MKVL").ids) == "MKVL"
  assert made.encode("M KV").offsets.tolist() == [[0, 1], [2, 3], [3, 4]]


@pytest.mark.parametrize("kind", ["characters", "kmers", "bpe"])
def test_transformers_has_the_same_ids(kind, tmp_path):
  transformers = pytest.importorskip("transformers")
  text = _sequence(3_000) + "NNRACGT"
  size = {"bpe": 300}.get(kind, 64)
  made = _train(kind, [text[:900], text[900:1_800]], vocab_size=size, k=4)
  made.save(tmp_path)
  peer = transformers.PreTrainedTokenizerFast(
    tokenizer_file=str(tmp_path / "tokenizer.json")
  )
  ids = made.encode(text).ids.tolist()
  assert open_tokenizer(tmp_path).encode(text).ids.tolist() == ids
  cls, sep = made.special.cls, made.special.sep
  assert peer(text).input_ids == [cls, *ids, sep]
  assert peer(text, add_special_tokens=False).input_ids == ids


def test_the_vocabularies_of_dnabert_and_esm(tmp_path):
  path = tmp_path / "vocab.txt"
  words = ["".join(word) for word in itertools.product("ATCG", repeat=3)]
  path.write_text("\n".join([*SPECIALS, *words]) + "\n")
  made = load_tokenizer(path)
  assert (made.kind, made.k, made.overlap) == ("kmers", 3, 3)
  assert made.notes == ("its tokens are 3-mers, one from each base on",)
  text = _sequence(50)
  expected = [5 + words.index(text[i : i + 3]) for i in range(48)]
  assert made.encode(text).ids.tolist() == expected
  # Without one of the k-mers, it is a vocabulary of words.
  path.write_text("\n".join([*SPECIALS, *words[1:]]) + "\n")
  assert load_tokenizer(path).kind == "wordpiece"
  letters = [*"LAGVSERTIDPKQNFYMHWCXBUZO.-"]
  esm = ["<cls>", "<pad>", "<eos>", "<unk>", *letters, "<null_1>", "<mask>"]
  path.write_text("\n".join(esm))
  made = load_tokenizer(path)
  assert made.kind == "characters"
  assert made.encode("MKT*").ids.tolist() == [20, 15, 11, 3]
  assert made.special == (1, 3, 0, 2, 32)
