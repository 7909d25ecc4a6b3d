"""The documents of a corpus have the ids of the library."""

import itertools

import pytest

from helpers import tokenizer_kinds
from helpers.prepare_corpus import prepare_corpus
from maskedlm.config import defaults
from maskedlm.data.corpus import concat

NAMES = [
  "wordpiece",
  "byte-level, prefix",
  "byte-level, no prefix",
  "metaspace, first",
  "gemma",
  "unigram, words",
  "sentencepiece unigram",
  "sentencepiece bpe, gemma",
]


@pytest.mark.parametrize("mode", ["split", "lines"])
@pytest.mark.parametrize("name", NAMES)
def test_documents_are_stored_as_the_library_encodes_them(
  any_kind, name, mode, tmp_path
):
  tokenizer, library_ids = any_kind(name)
  tokenizer.save(tmp_path / "saved")
  documents = tokenizer_kinds.SCRIPTS.values()
  text = "\n\n".join("\n".join(lines) for lines in documents)
  (tmp_path / "text.txt").write_text(text, encoding="utf-8")
  config = defaults.default()
  config.corpus.update(source=f"text:{tmp_path}/text.txt", sentences=mode)
  config.corpus.update(max_sentence_tokens=40, num_workers=1, heldout_share=0.0)
  config.corpus.max_lost = 1.0
  config.tokenizer.path = str(tmp_path / "saved")
  corpus = prepare_corpus(config, tmp_path / "corpus")
  tokens, sentences, begins = map(concat.take_all, corpus.train)
  bounds = itertools.pairwise(sentences[begins].tolist())
  expected = [
    library_ids(tokenizer.line_separator.join(lines)) for lines in documents
  ]
  assert [tokens[a:b].tolist() for a, b in bounds] == expected
