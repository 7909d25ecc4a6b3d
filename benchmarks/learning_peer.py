"""Trains transformers' masked LMs with its collator, as learning.py's peer.

Written as a user of transformers would, but with maskedlm's tokenizer, rows,
optimizer settings and schedule. Needs the extra `peer`.
"""

import tokenizers
import torch
import transformers

from maskedlm.training import optimizer


def bert(m, vocab_size: int):
  """Returns a BertForMaskedLM with the sizes of config.model."""
  return transformers.BertForMaskedLM(
    transformers.BertConfig(
      vocab_size=vocab_size,
      hidden_size=m.width,
      num_hidden_layers=m.num_layers,
      num_attention_heads=m.num_heads,
      intermediate_size=m.mlp_width,
      max_position_embeddings=m.max_positions,
      initializer_range=m.init_stddev,
      hidden_dropout_prob=m.dropout,
      attention_probs_dropout_prob=m.attention_dropout,
    )
  )


def modern(m, vocab_size: int):
  """Returns a ModernBertForMaskedLM with global attention in all layers."""
  return transformers.ModernBertForMaskedLM(
    transformers.ModernBertConfig(
      vocab_size=vocab_size,
      hidden_size=m.width,
      num_hidden_layers=m.num_layers,
      num_attention_heads=m.num_heads,
      intermediate_size=m.mlp_width,
      max_position_embeddings=m.max_positions,
      initializer_range=m.init_stddev,
      norm_eps=m.norm_epsilon,
      embedding_dropout=m.dropout,
      mlp_dropout=m.dropout,
      attention_dropout=m.attention_dropout,
      global_attn_every_n_layers=1,
      global_rope_theta=m.rope_theta,
      pad_token_id=0,
    )
  )


MODELS = {"learned": bert, "rope": modern}  # By config.model.position.


def train(config, corpus, task, probe, folder):
  """Trains on the task's rows; yields a point at each evaluation.

  A point is (step, nats, accuracy, nats at [MASK] alone) on the probe.
  """
  torch.manual_seed(config.seed)
  m, num_steps = config.model, config.train.num_steps
  model = MODELS[m.position](m, corpus.tokenizer.vocab_size)
  corpus.tokenizer.save(folder)
  tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=tokenizers.Tokenizer.from_file(
      str(folder / "tokenizer.json")
    ),
    pad_token="[PAD]",
    unk_token="[UNK]",
    cls_token="[CLS]",
    sep_token="[SEP]",
    mask_token="[MASK]",
  )
  collate = transformers.DataCollatorForLanguageModeling(
    tokenizer, mlm_probability=0.15
  )
  no_decay = ("bias", "norm")
  named = list(model.named_parameters())
  groups = [
    {
      "params": [
        p for n, p in named if decays != any(x in n.lower() for x in no_decay)
      ],
      "weight_decay": config.optimizer.weight_decay if decays else 0.0,
    }
    for decays in (True, False)
  ]
  o = config.optimizer
  adamw = torch.optim.AdamW(groups, lr=1.0, betas=(o.b1, o.b2), eps=o.eps)
  schedule = optimizer.make_schedule(o, num_steps)
  for step in range(1, num_steps + 1):
    batch = task.batch_at("train", step - 1)
    rows = collate([{"input_ids": r.tolist()} for r in batch["input_ids"]])
    attention = torch.tensor(batch["segment_ids"] > 0)
    model.train()
    loss = model(
      input_ids=rows["input_ids"],
      attention_mask=attention.long(),
      labels=rows["labels"].masked_fill(~attention, -100),
    ).loss
    adamw.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), o.clip_norm)
    for group in adamw.param_groups:
      group["lr"] = float(schedule(step - 1))
    adamw.step()
    if step % config.train.eval_every == 0 or step == num_steps:
      yield step, *on_probe(model, probe, config.data.batch_size)


def on_probe(model, probe, batch_size: int) -> tuple[float, float, float]:
  """Returns (nats, accuracy, nats at [MASK] alone) on the probe."""
  model.eval()
  nats = correct = weight = mask_token_nats = mask_token_weight = 0.0
  for i in range(0, len(probe["input_ids"]), batch_size):
    part = {n: torch.tensor(x[i : i + batch_size]) for n, x in probe.items()}
    with torch.no_grad():
      logits = model(
        input_ids=part["input_ids"].long(),
        attention_mask=(part["segment_ids"] > 0).long(),
      ).logits
    positions = part["masked_positions"].long()
    index = positions[..., None].expand(-1, -1, logits.shape[-1])
    logits = torch.gather(logits, 1, index)
    labels, w = part["masked_labels"].long(), part["masked_weights"]
    nll = torch.nn.functional.cross_entropy(
      logits.flatten(0, 1), labels.flatten(), reduction="none"
    )
    nats += float((nll * w.flatten()).sum())
    correct += float(((logits.argmax(-1) == labels) * w).sum())
    weight += float(w.sum())
    at_mask = part["mask_token_weights"].flatten()
    mask_token_nats += float((nll * at_mask).sum())
    mask_token_weight += float(at_mask.sum())
  return nats / weight, correct / weight, mask_token_nats / mask_token_weight
