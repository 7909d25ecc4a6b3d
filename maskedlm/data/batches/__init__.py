"""Turns a corpus into batches, as a pure function of the step.

The modules, in the order in which text passes through them:

  row_tables      where rows begin and end, kept next to the corpus
  text_rows       rows of running text (document_batches,
                  full_sentence_batches)
  pair_table      which sentences make a row of two segments
  pair_rows       rows of two segments (nsp_batches, sop_batches,
                  adjacent_batches)
  row_source      the rows of a split, and the order in which epochs read them
  bin_packing     which short rows share a packed one
  packed_rows     several short rows side by side in one
  domain_mixture  the rows of several domains, mixed by their shares
  batching        which rows a step reads: epochs, hosts, held-out rows
  batch_costs     padding and cost of batches, for the planner and the log

token_spans copies ranges of tokens into rows; placeholder_corpus replaces a
corpus where only shapes matter.
"""
