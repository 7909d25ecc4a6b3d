"""An ESM-2 as it lies on the hub: letters, contacts and rotary buffers."""

import numpy as np

from helpers import peers
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.interop.huggingface import importer

# The order of the published vocab.txt.
LETTERS = [*"LAGVSERTIDPKQNFYMHWCXBUZO.-"]
ALPHABET = ["<cls>", "<pad>", "<eos>", "<unk>", *LETTERS, "<null_1>", "<mask>"]


def test_a_published_folder(tmp_path):
  folder, out, lines = tmp_path / "esm2", tmp_path / "ours", []
  (tmp_path / "vocab.txt").write_text("\n".join(ALPHABET))
  theirs = peers.transformers.EsmTokenizer(tmp_path / "vocab.txt")
  assert len(theirs) == len(ALPHABET) == 33
  model = peers.make_model(
    "Esm", "ForMaskedLM", load_tokenizer(tmp_path / "vocab.txt")
  )
  model.save_pretrained(folder)
  theirs.save_pretrained(folder)

  def add_buffers(tensors):
    layer = "esm.encoder.layer.0.attention.self.rotary_embeddings.inv_freq"
    table = "esm.embeddings.position_embeddings.weight"
    return tensors | {layer: np.ones(4, np.float32), table: np.ones((9, 24))}

  peers.change_tensors(folder, add_buffers)
  found = importer.import_model(folder, out, log=lines.append)
  assert found.cfg.token_dropout and found.cfg.mask_id == 32
  (line,) = (x for x in lines if x.startswith("left out"))
  assert "contact_head" in line and "(5 tensors)" in line

  ours = load_tokenizer(out / "tokenizer")
  assert [ours.tokens(i) for i in range(33)] == ALPHABET
  special = ours.special
  for text in ("MKTAYIAKQR", "LAGXBUZO.-J", "MK<mask>A"):
    ids = [special.cls, *ours.encode(text).ids, special.sep]
    if "<mask>" not in text:  # Ordinary letters here, for safety.
      assert ids == theirs(text)["input_ids"]
