"""Imported workdirs work like maskedlm's own."""

import json

import numpy as np
import pytest
import tokenizers as hf_tokenizers

from helpers import peers
from maskedlm.cli import main
from maskedlm.core.errors import ConfigError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.finetune import predict
from maskedlm.inference import fill_mask
from maskedlm.interop.huggingface import exporter, importer
from maskedlm.training.checkpoints import load, resume

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXT = "The function returns a list of the values."


def imported(tmp_path, architecture, ending, **changes):
  """Returns (transformers' model, tokenizer, the workdir)."""
  folder = tmp_path / "theirs"
  changes = {"max_position_embeddings": 90, **changes}
  model, tokenizer = peers.save_model(folder, architecture, ending, **changes)
  out = tmp_path / "runs" / "x"
  importer.import_model(folder, out, log=print)
  return model, tokenizer, out


def predict_line(path, line=TEXT):
  """Returns (fine-tuned model, its prediction)."""
  opened = predict.open_model(path)
  example = opened.task.parse_line(line)
  return opened, predict.predict(opened, [example])[0]


def row_of(tokenizer):
  """Returns the ids of TEXT between [CLS] and [SEP]."""
  special = tokenizer.special
  return np.r_[special.cls, tokenizer.encode(TEXT).ids, special.sep]


def their_logits(model, ids, **rows):
  rows = {"input_ids": ids, **rows}
  feed = {n: torch.tensor(np.int64([row])) for n, row in rows.items()}
  with torch.no_grad():
    return model(**feed).logits[0].numpy()


def test_fill_mask(tmp_path):
  model, tokenizer, path = imported(tmp_path, "Roberta", "ForMaskedLM")
  opened = fill_mask.load_mask_filler(path)
  mask = opened.tokenizer.tokens(opened.tokenizer.special.mask)
  text = f"The {mask} returns a list ."
  filled = fill_mask.fill_masks(opened, [text], top_k=5)[0].masks[0]
  special = tokenizer.special
  ids = tokenizer.encode(text, specials=True).ids
  ids = np.r_[special.cls, ids, special.sep]
  logits = their_logits(model, ids)[int(np.argmax(ids == special.mask))]
  # Special tokens are no candidates in maskedlm.
  logits = np.delete(logits, tokenizer.special_ids)
  shares = np.exp(logits - logits.max())
  shares /= shares.sum()
  np.testing.assert_allclose(
    [p for _, p in filled], np.sort(shares)[::-1][:5], atol=1e-4
  )


def test_a_cross_encoder_takes_pairs(tmp_path):
  """config.json doesn't say so."""
  model, tokenizer, path = imported(
    tmp_path, "Bert", "ForSequenceClassification", id2label={0: "x"}
  )
  opened, made = predict_line(path, f"{TEXT}\tA list.")
  ids = row_of(tokenizer)
  ids_b = np.r_[tokenizer.encode("A list.").ids, tokenizer.special.sep]
  types = np.repeat([0, 1], [len(ids), len(ids_b)])
  logits = their_logits(model, np.r_[ids, ids_b], token_type_ids=types)
  assert made["score"] == pytest.approx(logits[0], abs=1e-4)
  assert opened.task.format_prediction(made) == f"{made['score']:.3f}"


@pytest.mark.parametrize(
  ("architecture", "separators", "second"), [("Roberta", 1, 1), ("Bert", 2, 0)]
)
def test_pairs_follow_the_imported_tokenizer(
  architecture, separators, second, tmp_path
):
  """A RoBERTa with BERT's tokenizer (klue); a BERT with XLM-R's (MiniLM)."""
  tokenizer = peers.train_tokenizer("wordpiece")
  model = peers.make_model(
    architecture,
    "ForSequenceClassification",
    tokenizer,
    max_position_embeddings=90,
  )
  folder = peers.save(model, tokenizer, tmp_path / "theirs")
  special = tokenizer.special
  library = hf_tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
  between = " [SEP]" * separators
  library.post_processor = hf_tokenizers.processors.TemplateProcessing(
    single="[CLS] $A [SEP]",
    pair=f"[CLS] $A{between} $B:{second} [SEP]:{second}",
    special_tokens=[("[CLS]", special.cls), ("[SEP]", special.sep)],
  )
  library.save(str(folder / "tokenizer.json"))
  importer.import_model(folder, tmp_path / "out", log=print)
  _, made = predict_line(tmp_path / "out", f"{TEXT}\tA list.")
  rows = library.encode(TEXT, "A list.")
  has_types = architecture == "Bert"
  types = {"token_type_ids": rows.type_ids} if has_types else {}
  logits = their_logits(model, rows.ids, **types)
  assert rows.ids.count(special.sep) == 1 + separators
  found = np.log(list(made["probabilities"].values()))
  np.testing.assert_allclose(
    found - found[0], logits - logits[0], atol=1e-4, rtol=1e-4
  )
  exporter.export_huggingface(tmp_path / "out", tmp_path / "back", log=print)
  theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
  again = theirs(TEXT, "A list.")
  assert again["input_ids"] == rows.ids
  assert not any(again.get("token_type_ids", []))
  # With this pair format, RoBERTa's encoder is exported as BERT's.
  back = transformers.BertForSequenceClassification
  back = back.from_pretrained(tmp_path / "back").eval()
  found = their_logits(back, again["input_ids"])
  np.testing.assert_allclose(found, logits, atol=1e-4)


def test_the_workdir(tmp_path):
  _, tokenizer, path = imported(tmp_path, "Roberta", "ForMaskedLM")
  assert sorted(p.name for p in path.iterdir()) == [
    "checkpoints",
    "config.json",
    "tokenizer",
  ]
  params, meta = load.load_params(path)
  assert sorted(params) == ["encoder", "mlm_head"]
  assert meta["step"] == 0
  assert meta["task"]["objective"] == "hf:RobertaForMaskedLM"
  about = json.loads((path / "config.json").read_text())["imported"]
  assert about["model_type"] == "roberta"
  assert load_tokenizer(path / "tokenizer").sha256 == tokenizer.sha256
  # transformers counts the 90 positions from [PAD] + 1 = 2.
  start = load.open_checkpoint(path)
  assert start.cfg.max_positions == 88
  assert start.cfg.pair_separators == 2
  # Pretraining doesn't continue in this workdir.
  with pytest.raises(ConfigError, match="this workdir holds another run"):
    new = {"config": {}, "corpus": "5f3a", "tokenizer": tokenizer.sha256}
    resume.check_identity(meta["identity"], new, frozen=(), log=print)


def test_commands(tmp_path, capsys):
  folder = tmp_path / "theirs"
  peers.save_model(folder, "Bert", "ForPreTraining")
  ours, back = tmp_path / "ours", tmp_path / "back"
  assert not main.main(
    ["import", "--from", "hf", str(folder), "--out", str(ours)]
  )
  said = capsys.readouterr().out
  assert "encoder, mlm_head, nsp_head, pooler; " in said
  argv = ["export", "--to", "hf", "--checkpoint", str(ours), "--out", str(back)]
  assert not main.main(argv)
  assert "BertForPreTraining.from_pretrained" in capsys.readouterr().out
  names = {p.name for p in back.iterdir()}
  assert names == {
    "1_Pooling",
    "README.md",
    "config.json",
    "model.safetensors",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
  }
  card = (back / "README.md").read_text()
  assert "| imported from | theirs |" in card
  assert main.main(argv) == 2
  assert "exists: give another" in capsys.readouterr().err
