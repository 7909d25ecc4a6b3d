"""EuroBERT's tokenizer: no [PAD] of its own, and pairs without a [SEP]."""

import json
import json.decoder

import numpy as np
import tokenizers
from tokenizers import models, pre_tokenizers, processors, trainers

from helpers import peers
from maskedlm.data.batches.text_pairs import pair_row
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.interop.huggingface import exporter, importer

BEGIN, END, MASK = "<|begin_of_text|>", "<|end_of_text|>", "<|mask|>"


def save_tokenizer(folder):
  """Saves byte-level BPE with Llama's names, as EuroBERT's folder has it."""
  library = tokenizers.Tokenizer(models.BPE())
  library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
  library.train_from_iterator(
    (json.decoder.__doc__ or "").splitlines(),
    trainers.BpeTrainer(
      vocab_size=270,
      special_tokens=[BEGIN, END, MASK],
      initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
      show_progress=False,
    ),
  )
  library.post_processor = processors.TemplateProcessing(
    single=[BEGIN, "$A", END],
    pair=[BEGIN, "$A", "$B", END],
    special_tokens=[(BEGIN, 0), (END, 1)],
  )
  library.save(str(folder / "tokenizer.json"))
  options = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": BEGIN,
    "eos_token": END,
    "pad_token": END,
    "mask_token": MASK,
    "model_input_names": ["input_ids", "attention_mask"],
  }
  (folder / "tokenizer_config.json").write_text(json.dumps(options))
  return library


def test_a_published_folder(tmp_path):
  folder = tmp_path / "euro"
  model = peers.make_model(
    "EuroBert",
    "ForMaskedLM",
    peers.train_tokenizer("bpe"),
    vocab_size=270,
    pad_token_id=1,
    eos_token_id=1,
    bos_token_id=0,
  )
  model.save_pretrained(folder)
  library = save_tokenizer(folder)
  found = importer.import_model(folder, tmp_path / "ours", log=print)
  assert (found.cfg.pair_separators, found.cfg.num_types) == (0, 0)
  ours = load_tokenizer(tmp_path / "ours/tokenizer")
  assert ours.special._asdict() == {
    "pad": 1,
    "unk": 1,
    "cls": 0,
    "sep": 1,
    "mask": 2,
  }
  a, b = "JSON objects", " and arrays"
  row = pair_row(
    ours,
    *(ours.encode(text).ids for text in (a, b)),
    length=99,
    separators=found.cfg.pair_separators,
  )
  assert row.input_ids.tolist() == library.encode(a, b).ids

  # What is written has the same ids, and is read by transformers.
  exporter.export_huggingface(tmp_path / "ours", tmp_path / "out", log=print)
  theirs = peers.transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
  assert theirs(a, b)["input_ids"] == library.encode(a, b).ids
  batch = theirs([a, f"{a}{b}"], padding=True, return_tensors="pt")
  again = peers.transformers.EuroBertForMaskedLM.from_pretrained(
    tmp_path / "out"
  )
  with peers.torch.no_grad():
    expected, got = (m.eval()(**batch).logits for m in (model, again))
  np.testing.assert_array_equal(got, expected)
