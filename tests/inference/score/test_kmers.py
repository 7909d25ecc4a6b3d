"""Overlapping k-mers are masked with those that spell their last letter."""

import pytest

from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.inference.score.rows import make_row_cutter


@pytest.mark.parametrize("pll", ["original", "l2r"])
@pytest.mark.parametrize(("k", "stride", "hidden"), [(3, 1, 3), (4, 2, 2)])
def test_the_masks_of_a_kmer(pll, k, stride, hidden):
  made = train_tokenizer(
    ["ACGT"], kind="kmers", vocab_size=9, lowercase=False, k=k, stride=stride
  )
  text = "ACGTTGCAAC"
  encoding = made.encode(text)
  n = len(encoding.ids)
  cut = make_row_cutter(made, length=30, reads="both", pll=pll)
  rows = [row.ids.tolist() for row, _ in cut(text, encoding)]
  for i, row in enumerate(rows):
    masked = [at for at, x in enumerate(row[1:-1]) if x == made.special.mask]
    assert masked == [*range(i, min(i + hidden, n))]
  assert len(rows) == n
