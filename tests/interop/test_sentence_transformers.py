"""sentence-transformers loads an exported encoder and gives our vectors."""

import jax
import numpy as np
import peers
import pytest
import workdirs

from maskedlm.interop import hf_export, modules

library = pytest.importorskip("sentence_transformers")

TEXTS = ("The function returns a list.", "it", "an object, and its keys")


def test_mean_of_the_tokens(tmp_path):
  tokenizer = peers.train_tokenizer("bpe")
  cfg = workdirs.config(tokenizer, max_positions=40, type_vocab_size=0)
  params = workdirs.make_params(cfg, ("pooler", "mlm_head"))
  path = workdirs.save(tmp_path / "ours", params, cfg, tokenizer)
  hf_export.export(path, tmp_path / "theirs", log=print)

  model = library.SentenceTransformer(str(tmp_path / "theirs"), device="cpu")
  assert model.max_seq_length == 40
  theirs = model.encode(list(TEXTS))

  special = tokenizer.special
  rows = [
    np.r_[special.cls, tokenizer.encode(text).ids, special.sep]
    for text in TEXTS
  ]
  ids = np.full((len(rows), 40), special.pad, np.int32)
  for i, row in enumerate(rows):
    ids[i, : len(row)] = row
  real = np.arange(40) < np.array([len(row) for row in rows])[:, None]
  batch = {
    "input_ids": ids,
    "token_type_ids": np.zeros_like(ids),
    "segment_ids": real.astype(np.int32),
  }
  hidden = jax.jit(modules.outputs, static_argnums=1)(params, cfg, batch)
  hidden = np.asarray(hidden["last_hidden_state"]) * real[..., None]
  ours = hidden.sum(axis=1) / real.sum(axis=1, keepdims=True)
  np.testing.assert_allclose(theirs, ours, atol=1e-4)
