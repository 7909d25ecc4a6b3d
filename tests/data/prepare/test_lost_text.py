"""Text that a tokenizer reads otherwise than it is written is counted."""

import json

import pytest
import tokenizers

from maskedlm.config import defaults
from maskedlm.data.prepare import lost_text, prepare
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, train_tokenizer

HINDI = ["यहाँ यह की के में", "लड़का घर में है", "के की में यहाँ"]


@pytest.mark.parametrize(
  ("text", "count"),
  [
    ("यहाँ के", 2),  # Signs of category Mc, as in का, stay.
    ("น้ำที่", 3),
    ("が か", 1),
    ("шёл café ά́ ế", 0),
    ("한국어 中国 🙂\ufe0f", 0),
    ("שָׁלוֹם", 3),
  ],
)
def test_signs_that_stripping_loses(text, count):
  assert lost_text.count_signs(text) == count


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


def test_only_a_tokenizer_that_strips_loses_signs(tmp_path):
  for lowercase, signs in ((True, 2), (False, 0)):
    made = load_tokenizer(_tokenizer(tmp_path, lowercase=lowercase))
    counts = lost_text.make_counter(made)(["यहाँ के", "the [MASK]"])
    assert counts[lost_text.SIGNS] == signs
    assert counts[lost_text.SPELT] == 1


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
  corpus = prepare.prepare(config, out, log=lines.append, progress=False)
  return corpus.meta["report"], lines


def test_special_tokens_of_ones_own_are_told_and_counted(tmp_path):
  path = _tokenizer(
    tmp_path / "t", lowercase=False, specials=["[DRUG]", "<e1>"]
  )
  text = "the <e1> cat sees [DRUG].\n\nthe [DRUG] [SEP]\n\nthe cat\n\n"
  report, lines = _prepare(tmp_path, text, path=str(path))
  assert report[lost_text.SPELT] == 4
  assert f"  {lost_text.SPELT}: 4" in lines
  assert any("[DRUG], <e1>: special tokens of its own" in x for x in lines)


@pytest.mark.parametrize("way", ["source", "parts", "path"])
def test_every_way_in_warns_of_stripped_signs(tmp_path, way):
  text = "\n\n".join(HINDI * 9) + "\n"
  options = {}
  if way == "parts":
    options["corpus"] = {"parts": f"hi:{tmp_path}/t.txt"}
  if way == "path":
    options["path"] = str(_tokenizer(tmp_path / "v", lowercase=True))
  report, lines = _prepare(tmp_path, text, **options)
  assert report[lost_text.SIGNS] == 9 * sum(map(lost_text.count_signs, HINDI))
  warnings = [line for line in lines if line.startswith("warning")]
  [warning] = [line for line in warnings if "vowel signs" in line]
  assert ("tokenizer.lowercase=True strips" in warning) == (way != "path")


def test_text_of_latin_letters_is_not_warned_of(tmp_path):
  _, lines = _prepare(tmp_path, "The café sees a naïve cat.\n\n" * 30)
  assert not [line for line in lines if line.startswith("warning")]


def test_unknown_characters_are_warned_of(tmp_path):
  path = _tokenizer(tmp_path / "v", lowercase=False)
  report, lines = _prepare(tmp_path, "the 漢\n\n" * 9, path=str(path))
  assert report["unknown tokens"] == 9
  the = len(load_tokenizer(path).encode("the").ids)
  share = f"warning: {1 / (the + 1):.1%} of the tokens are unknown"
  assert any(share in line for line in lines)
