"""A made-up corpus of three languages, each with its own letters."""

import numpy as np

from maskedlm.config import defaults

LETTERS = {"en": "abcdefg", "de-x": "hijklmn", "yo": "opqrstu"}
DOCUMENTS = {"en": 60, "de-x": 15, "yo": 5}


def make_text(name, seed=5):
  """Returns documents of one to nine sentences, one on each line."""
  rng = np.random.default_rng([seed, ord(LETTERS[name][0])])
  letters = list(LETTERS[name])

  def word():
    return "".join(rng.choice(letters, rng.integers(1, 4)))

  documents = [
    [
      " ".join(word() for _ in range(rng.integers(2, 12)))
      for _ in range(rng.integers(1, 10))
    ]
    for _ in range(DOCUMENTS[name])
  ]
  return "\n\n".join("\n".join(lines) for lines in documents) + "\n"


def make_config(folder, **corpus):
  """Returns a config of the three languages; writes their files to folder."""
  for name in LETTERS:
    (folder / f"{name}.txt").write_text(make_text(name))
  config = defaults.default()
  config.corpus.parts = ",".join(f"{n}:{folder}/{n}.txt" for n in LETTERS)
  config.corpus.sentences = "lines"
  config.corpus.num_workers = 1
  config.corpus.heldout_share = 0.2
  config.corpus.update(corpus)
  config.tokenizer.vocab_size = 90
  return config


def language_of(corpus):
  """Returns [V] int, the language of each token's first letter; -1 = none."""
  names = [
    next((i for i, a in enumerate(LETTERS.values()) if t[:1] in a), -1)
    for t in (
      corpus.tokenizer.tokens(i).removeprefix("##")
      for i in range(corpus.tokenizer.vocab_size)
    )
  ]
  found = np.array(names)
  found[corpus.tokenizer.special_ids] = -1
  return found
