"""Finds the options that have no effect beside the values of others.

They are no error in a config file, which may be shared by several runs; those
on the command line are printed (overrides.print_unused).
"""

from collections.abc import Iterator

from ml_collections import ConfigDict

from maskedlm.core import own_file
from maskedlm.data.sources import reader
from maskedlm.runtime import buckets

# (an option, another one, whether the value of that leaves it without effect)
Rule = tuple[str, str, bool]


# Options of config.model that LSTMs, of the objective bilm, don't have.
_NOT_OF_LSTMS = (
  *("num_heads", "num_kv_heads", "attention", "attention_dropout"),
  *("activation", "mlp"),
  *("position", "rope_theta", "local_rope_theta", "local_window"),
  *("global_every", "norm_order", "skip_first_norm", "scaled_init"),
)


def unused_options(config: ConfigDict) -> dict[str, str]:
  """Returns {option: "with OTHER=VALUE", why it has no effect}.

  Args:
    config: the whole config of pretraining, validated.
  """
  rules = (
    *_of_text(config),
    *_of_rows(config),
    *_of_model(config),
    *_of_objective(config),
    *of_optimizer(config.optimizer),
    *of_training(config.train),
    (
      "optimizer.start_factor",
      "optimizer.warmup_steps",
      not config.optimizer.warmup_steps,
    ),
  )
  return describe(config, rules)


def describe(config: ConfigDict, rules: Iterator[Rule]) -> dict[str, str]:
  """Returns {option: "with OTHER=VALUE"} by the rules that hold."""
  reasons = {}
  for name, other, holds in rules:
    if holds:
      section, _, key = other.rpartition(".")
      value = (config[section] if section else config)[key]
      reasons[name] = f"with {other}={value!r}"
  return reasons


def _of_text(config: ConfigDict) -> Iterator[Rule]:
  corpus, tokenizer = config.corpus, config.tokenizer
  yield "corpus.source", "corpus.parts", bool(corpus.parts)
  yield "corpus.language", "corpus.parts", bool(corpus.parts)
  yield "corpus.language", "corpus.sentences", corpus.sentences == "lines"
  paths = [corpus.path, *(p.get("corpus.path", "") for p in config.phases)]
  local = not any(map(buckets.is_address, paths))
  yield "corpus.cache_gb", "corpus.path", local
  if not corpus.path:
    source = "corpus.parts" if corpus.parts else "corpus.source"
    yield "corpus.text_field", source, not _has_fields(corpus)
  if not tokenizer.path:
    is_bpe = tokenizer.kind == "bpe"
    yield "tokenizer.character_coverage", "tokenizer.kind", is_bpe
    yield "tokenizer.byte_fallback", "tokenizer.kind", is_bpe
    yield "tokenizer.alpha", "corpus.parts", _is_one_part(corpus)


def _has_fields(corpus: ConfigDict) -> bool:
  """Returns whether a source has records, whose text is in a field."""
  text = corpus.parts or corpus.source
  return any(f"{kind}:" in text for kind in reader.FIELD_TYPES)


def _is_one_part(corpus: ConfigDict) -> bool:
  """Returns whether the text has no parts; a prepared corpus may have some."""
  return not corpus.parts and not corpus.path


def _of_rows(config: ConfigDict) -> Iterator[Rule]:
  data = config.data
  yield "data.alpha", "corpus.parts", _is_one_part(config.corpus)
  yield "data.alpha", "data.shares", bool(data.shares)


def _of_model(config: ConfigDict) -> Iterator[Rule]:
  model = config.model
  for name in ("model.local_rope_theta", "model.global_every"):
    yield name, "model.local_window", not model.local_window
  for name in ("model.rope_theta", "model.local_rope_theta"):
    yield name, "model.position", model.position != "rope"
  name = config.objective.name
  yield "model.causal", "objective.name", name in ("causal", "bilm")
  for option in _NOT_OF_LSTMS:
    yield f"model.{option}", "objective.name", name == "bilm"


def _of_objective(config: ConfigDict) -> Iterator[Rule]:
  """Yields the rules of masking; causal has none of these options."""
  objective = config.objective
  # In a file of one's own they may be other options of these names.
  is_own = objective.name.endswith(own_file.SUFFIX)
  if is_own or "mask_share" not in objective:
    return
  corruption, random = "objective.corruption", "objective.random_tokens"
  if "corruption" in objective:
    masks = objective.corruption == "mask"
    yield "objective.mask_share", corruption, not masks
    yield "objective.random_share", corruption, not masks
    yield random, corruption, objective.corruption in ("shuffle", "delete")
    spans = objective.choose in ("ngrams", "spans")
    yield "objective.max_span_words", "objective.choose", not spans
    no_rows = not config.train.eval_rows
    yield "objective.heldout_mask_rate", "train.eval_rows", no_rows
  else:
    masks = True
  if "sbo_weight" in objective:
    unused = not objective.sbo_weight
    yield "objective.max_span_targets", "objective.sbo_weight", unused
  yield random, "objective.random_share", masks and not objective.random_share


def of_training(train: ConfigDict) -> Iterator[Rule]:
  """Yields the rules of config.train, of pretraining or fine-tuning."""
  yield "train.on_spike", "train.spike_sigma", not train.spike_sigma


def of_optimizer(optimizer: ConfigDict) -> Iterator[Rule]:
  """Yields the rules of config.optimizer, of pretraining or fine-tuning."""
  schedule = optimizer.schedule
  decays = schedule in ("linear", "cosine", "polynomial")
  for name, holds in (
    ("power", schedule != "polynomial"),
    ("decay_share", schedule not in ("wsd", "wsd_sqrt")),
    ("end_factor", schedule == "constant"),
    ("decay_from_zero", not decays),
  ):
    yield f"optimizer.{name}", "optimizer.schedule", holds
  yield (
    "optimizer.warmup_times_decay",
    "optimizer.decay_from_zero",
    not optimizer.decay_from_zero,
  )
  frozen = optimizer.frozen_layers == -1
  yield "optimizer.layer_decay", "optimizer.frozen_layers", frozen
  yield "optimizer.unfreeze_share", "optimizer.frozen_layers", frozen
  # LAMB's trust ratio, too, is only of parameters that decay.
  unused = not optimizer.weight_decay and optimizer.rule != "lamb"
  yield "optimizer.no_decay", "optimizer.weight_decay", unused
