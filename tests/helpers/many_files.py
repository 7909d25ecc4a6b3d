"""A corpus of many small text files."""

import numpy as np

from maskedlm.config import defaults

WORDS = [f"{a}{b}" for a in "bcdfgk" for b in ("a", "e", "in", "ock", "u")]


def make_text(seed, num_documents):
  """Returns documents of one to five lines; every seventh is a duplicate."""
  rng = np.random.default_rng(seed)
  found = []
  for i in range(num_documents):
    lines = [
      " ".join(rng.choice(WORDS, rng.integers(3, 15)))
      for _ in range(rng.integers(1, 6))
    ]
    if i % 7 == 6:
      lines = found[rng.integers(len(found))]
    elif i % 7 == 5:  # The next one is a near duplicate.
      lines = [*max(found, key=lambda d: sum(map(len, d))), WORDS[i % 30]]
    found.append(lines)
  return "\n\n".join("\n".join(lines) for lines in found) + "\n"


def make_config(tmp_path, **options):
  """Returns a config whose source is the folder `text`, with 11 files."""
  folder = tmp_path / "text"
  folder.mkdir(exist_ok=True)
  for i in range(9):
    (folder / f"{i}.txt").write_text(make_text(i, 5 + i))
  (folder / "copy.txt").write_text(make_text(2, 7))
  (folder / "empty.txt").write_text("\n \n")
  config = defaults.default()
  config.corpus.update(
    source=f"text:{folder}", sentences="lines", num_workers=1
  )
  config.corpus.shard_tokens = 500
  config.tokenizer.vocab_size = 80
  for name, value in options.items():
    section, _, option = name.partition("__")
    config[section][option] = value
  return config
