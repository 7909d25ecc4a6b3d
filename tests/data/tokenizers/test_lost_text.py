"""Text that a tokenizer reads otherwise than it is written is counted."""

import json
from collections import Counter

import pytest
import tokenizers

from maskedlm.config import defaults
from maskedlm.core.errors import CorpusError
from maskedlm.data.prepare import prepare
from maskedlm.data.tokenizers import lost_text
from maskedlm.data.tokenizers.lost_text import DROPPED, LACKS, LONG, MARKS
from maskedlm.data.tokenizers.tokenizer import train_tokenizer

HINDI = ["यहाँ यह की के में", "लड़का घर में है", "के की में यहाँ"]


@pytest.mark.parametrize(
  ("text", "marks"),
  [
    ("यहाँ के", 2),  # Signs of category Mc, as in का, stay.
    ("น้ำที่", 3),
    ("が か", 1),
    ("шёл café ά́ ế e\u0301", 6),
    ("schön schon", 1),
    ("한국어 中国", 0),
    ("שָׁלוֹם", 3),
  ],
)
def test_marks_that_lowercasing_strips(text, marks):
  for lowercase in (True, False):
    made = train_tokenizer(
      [text, "the cat"], kind="wordpiece", vocab_size=99, lowercase=lowercase
    )
    counts = lost_text.count_texts(made, [text])
    assert counts == Counter({MARKS.name: marks * lowercase})


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_the_figure_by_hand(kind):
  lines = [f"the {a}{b} cat sees" for a in "abcdefgh" for b in "ijklmnop"] * 9
  size = 28 if kind == "unigram" else 300
  made = train_tokenizer(lines, kind=kind, vocab_size=size, lowercase=False)
  long = "ab" * 51
  text = f"the cat {long} sees 漢字x, the a\u200cb a\xadb \ue000 cat."
  found = lost_text.count_texts(made, [text, "the cat"])
  expected = {
    # 漢, 字, x, the comma and the full stop.
    "wordpiece": {LONG: 102, LACKS: 5, DROPPED: 3},
    "bpe": {},
    "unigram": {LACKS: 7, DROPPED: 1},  # "漢字x" "," "\xad" "\ue000" "."
  }[kind]
  assert found == {cause.name: n for cause, n in expected.items()}
  shares = dict(lost_text.shares(found, len(text)))
  assert shares == {cause: n / len(text) for cause, n in expected.items()}


def _tokenizer(tmp_path, *, lowercase, specials=()):
  made = train_tokenizer(
    [*HINDI, "the cat sees"],
    kind="wordpiece",
    vocab_size=99,
    lowercase=lowercase,
  )
  made.save(tmp_path)
  file = tmp_path / "tokenizer.json"
  library = tokenizers.Tokenizer.from_file(str(file))
  library.add_special_tokens(list(specials))
  file.write_text(json.dumps(json.loads(library.to_str())))
  return tmp_path


def _prepare(tmp_path, text, **options):
  config = defaults.default()
  config.corpus.update(num_workers=1, heldout_share=0.0)
  (tmp_path / "t.txt").write_text(text)
  config.corpus.source = f"text:{tmp_path}/t.txt"
  config.tokenizer.vocab_size = 120
  config.corpus.update(options.pop("corpus", {}))
  config.tokenizer.update(options)
  lines = []
  out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
  corpus = prepare.prepare(config, out, log=lines.append)
  return corpus.meta["report"], lines


def test_special_tokens_of_ones_own_are_told_and_counted(tmp_path):
  path = _tokenizer(
    tmp_path / "t", lowercase=False, specials=["[DRUG]", "<e1>"]
  )
  text = "the <e1> cat sees [DRUG].\n\nthe [DRUG] [SEP]\n\nthe cat\n\n"
  options = {"path": str(path), "corpus": {"max_lost": 1.0}}
  report, lines = _prepare(tmp_path, text, **options)
  assert report[lost_text.SPELT] == 4
  assert f"  {lost_text.SPELT}: 4" in lines
  assert any("[DRUG], <e1>: special tokens of its own" in x for x in lines)


@pytest.mark.parametrize("way", ["source", "parts", "path"])
def test_every_way_in_warns_once(tmp_path, way):
  text = "\n\n".join(HINDI * 9) + "\n"
  options = {}
  if way == "parts":
    options["corpus"] = {"parts": f"hi:{tmp_path}/t.txt"}
  if way == "path":
    options["path"] = str(_tokenizer(tmp_path / "v", lowercase=True))
  report, lines = _prepare(tmp_path, text, **options)
  assert report[MARKS.name] == 9 * (4 + 4 + 4)
  [warning] = [line for line in lines if line.startswith("warning")]
  share = report[MARKS.name] / report["characters"]
  assert warning.startswith("warning: " + "hi: " * (way == "parts"))
  assert f"{share:.1%} of the characters lose an accent, a tone" in warning


def test_english_is_not_warned_of_and_code_of_indentation(tmp_path):
  _, lines = _prepare(tmp_path, "The old cat sees a small dog.\n\n" * 30)
  assert not [line for line in lines if line.startswith("warning")]
  report, lines = _prepare(tmp_path, "if x:\n    y\n\n" * 30)
  assert report[lost_text.INDENTATION.name] == 4 * 30
  assert any("66.7% of the characters are indentation" in x for x in lines)
  _, lines = _prepare(
    tmp_path, "if x:\n    y\n\n" * 30, kind="bpe", vocab_size=300
  )
  assert not [line for line in lines if line.startswith("warning")]


def test_text_of_unknown_words_is_refused_or_allowed(tmp_path):
  path = str(_tokenizer(tmp_path / "v", lowercase=False))
  text = "the 漢\n\n" * 9  # A fifth of the characters.
  report, lines = _prepare(tmp_path, text, path=path)
  assert report["unknown tokens"] == report[LACKS.name] == 9
  assert any("20.0% of the characters are unknown" in line for line in lines)
  with pytest.raises(CorpusError, match=r"33.3% of the char.* are unknown"):
    _prepare(tmp_path, "he 漢字\n\n" * 9 + "the\n\n" * 3, path=path)
  options = {"path": path, "corpus": {"max_lost": 0.4}}
  _prepare(tmp_path, "he 漢字\n\n" * 9 + "the\n\n" * 3, **options)
  dna = "\n\n".join("ACGT"[i % 4 :] + "ACGT" * 30 for i in range(9))
  with pytest.raises(CorpusError, match="words of over 100 characters"):
    _prepare(tmp_path, dna)
