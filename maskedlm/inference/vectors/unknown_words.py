"""Reports how many words of a text the vocabulary lacks.

Of static vectors, these have the vector 0; of other encoders, that of [UNK] in
its context.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.labelled.text_lines import Text
from maskedlm.data.labelled.words import split_words
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.runtime import console


def count_words(texts: Iterable[Text], counts: Counter) -> Iterator[Text]:
  """Yields the texts; adds the words of each to `counts`, as written."""
  for text in texts:
    spans = () if text.words is not None else split_words(text.text)
    counts.update(text.words or (text.text[a:b] for a, b in spans))
    yield text


def log_unknown(tokenizer: Tokenizer, counts: Mapping[str, int]) -> None:
  """Logs a line if words have a token [UNK], with the most frequent ones.

  `counts` says how often each word occurs.
  """
  words, unk = list(counts), tokenizer.special.unk
  unknown = Counter(
    {
      word: counts[word]
      for word, ids in zip(words, tokenizer.encode_batch(words), strict=True)
      if np.any(ids == unk)
    }
  )
  if not unknown:
    return
  count, total = unknown.total(), sum(counts.values())
  examples = ", ".join(word for word, _ in unknown.most_common(5))
  console.log(
    f"{count:,} of {counted(total, 'word')} ({count / total:.1%}) are not in "
    f"the vocabulary and are read as {tokenizer.tokens(unk)}: "
    f"{examples}{', ...' * (len(unknown) > 5)}"
  )
