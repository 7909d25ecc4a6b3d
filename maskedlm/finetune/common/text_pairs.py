"""Where tasks of one's own import data/batches/text_pairs.py from."""

from maskedlm.data.batches.text_pairs import cut_sizes as cut_sizes
from maskedlm.data.batches.text_pairs import pair_row as pair_row
from maskedlm.data.batches.text_pairs import text_row as text_row
from maskedlm.data.batches.text_pairs import text_tokens as text_tokens
