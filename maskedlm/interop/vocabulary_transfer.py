"""Replaces the vocabulary of a trained model (Gee et al. 2022)."""

import dataclasses
import pathlib
from collections.abc import Sequence

import numpy as np
from flax import traverse_util

from maskedlm.core.counts import first_names
from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.runtime import buckets, console, output_options

# Arrays with a row for each token.
TABLES = (
  "encoder/embeddings/token/embedding",
  "generator/embeddings/token/embedding",
  "mlm_head/embedding",
  "mlm_head/bias",
  "sbo_head/bias",
)


def retokenize(checkpoint: str, tokenizer: str, out: pathlib.Path) -> None:
  """Writes the workdir `out`: a checkpoint with another tokenizer.

  Prints how many tokens got the vector of an old one, a mean or a random one;
  logs how many of the new tokens can't come out of any text.

  Raises:
    CheckpointError, ConfigError: the checkpoint can't be opened, or already has
      that tokenizer.
    CorpusError: the tokenizer can't be read.
    InteropError: `out` exists.
  """
  from maskedlm.data.tokenizers import vocabulary_map
  from maskedlm.data.tokenizers.tokenizer import load_tokenizer
  from maskedlm.inference import token_model
  from maskedlm.training.checkpoints import load, write

  with output_options.new_folder(out) as unfinished:
    new = load_tokenizer(tokenizer)
    for note in new.notes:
      console.log(f"--tokenizer={tokenizer}: {note}")
    old = load.open_best(checkpoint)
    if new.sha256 == old.tokenizer.sha256:
      raise ConfigError(
        f"--tokenizer={tokenizer} is the tokenizer of {checkpoint}: give "
        "another."
      )
    _log_case(old.tokenizer, new, old_name=checkpoint, new_name=tokenizer)
    cfg = dataclasses.replace(
      old.cfg, vocab_size=new.vocab_size, mask_id=new.special.mask
    )
    origins = vocabulary_map.map_vocabulary(old.tokenizer, new)
    special = set(old.tokenizer.special_ids.tolist())
    ordinary = [i for i in range(old.cfg.vocab_size) if i not in special]
    params = transfer_params(
      old.params, origins, ordinary, rows=cfg.padded_vocab_size
    )
    new.save(unfinished / "tokenizer")
    task = {**old.meta["task"], "encoder": dataclasses.asdict(cfg)}
    if "generator" in task:
      task["generator"] = {**task["generator"], "vocab_size": new.vocab_size}
    retokenized = {
      "checkpoint": str(buckets.origin(checkpoint)),
      "step": old.meta["step"],
      "tokenizer": tokenizer,
    }
    write.write_workdir(
      unfinished,
      params,
      task,
      origin={
        "retokenized": retokenized,
        "run": token_model.training_config(old),
      },
      corpus="retokenized",
      tokenizer=new.sha256,
      log=console.log,
    )
  _log_unreachable(old.tokenizer, new)
  counts = np.array([len(origin) for origin in origins])
  spelt = counts[counts > 1]
  print(
    f"{out}: {new.vocab_size:,} tokens instead of {old.cfg.vocab_size:,}: "
    f"{np.sum(counts == 1):,} have the vector of an old one, {len(spelt):,} "
    "the mean of several"
    + (f" ({spelt.mean():.1f} on average)" if len(spelt) else "")
    + f", {np.sum(counts == 0):,} a random one"
  )


def _log_case(
  old: Tokenizer, new: Tokenizer, *, old_name: str, new_name: str
) -> None:
  """Logs a line if only one of the tokenizers keeps capitals or accents."""
  for letter, feature, loses in (
    ("A", "capitals", "lowercases"),
    ("\u00e9", "accents", "strips"),
  ):
    old_verb, new_verb = (
      "keeps" if letter in x.normalize(letter) else loses for x in (old, new)
    )
    if old_verb != new_verb:
      console.log(
        f"--tokenizer={new_name} {new_verb} {feature}, but the tokenizer of "
        f"{old_name} {old_verb} them; a vocab.txt keeps {feature} if any of "
        "its words has one and no tokenizer_config.json beside it sets "
        "do_lower_case"
      )
      return  # A cased vocabulary keeps accents, too.


def _log_unreachable(old: Tokenizer, new: Tokenizer) -> None:
  """Logs how many of the new tokens no text gives, with examples."""
  from maskedlm.data.tokenizers import unreachable

  ids = unreachable.unreachable_tokens(new)
  if not ids:
    return
  old_tokens = set(map(old.tokens, range(old.vocab_size)))
  # Tokens that the old vocabulary lacks come first.
  names = sorted(map(new.tokens, ids), key=old_tokens.__contains__)
  console.log(
    f"{len(ids):,} tokens can't come out of any text, as the tokenizer splits "
    f"or changes them: {first_names(names)}"
  )


def transfer_rows(
  table: np.ndarray,
  origins: Sequence[Sequence[int]],
  ordinary: Sequence[int],
  *,
  rows: int,
) -> np.ndarray:
  """Returns rows for new tokens, made from the rows of old tokens.

  Args:
    table: [old rows, ...], a row for each old token.
    origins: for each new token, the old tokens to average; if there are none,
      its row is drawn from normal distributions with the mean and standard
      deviation of each column.
    ordinary: the old tokens that determine these distributions.
    rows: the number of rows of the result; those beyond the new tokens are 0.

  Returns:
    [rows, ...], with the table's dtype.
  """
  new = np.zeros((rows, *table.shape[1:]), table.dtype)
  counts = np.array([len(origin) for origin in origins])
  for count in np.unique(counts[counts > 0]):
    tokens = np.flatnonzero(counts == count).tolist()
    new[tokens] = table[np.array([origins[i] for i in tokens])].mean(axis=1)
  drawn = np.flatnonzero(counts == 0)
  old_rows = table[list(ordinary)]
  rng = np.random.default_rng(0)
  new[drawn] = rng.normal(
    old_rows.mean(axis=0), old_rows.std(axis=0), (len(drawn), *table.shape[1:])
  )
  return new


def transfer_params(params: Params, *args, **kwargs) -> Params:
  """Returns the parameters with `transfer_rows` applied to each of TABLES."""
  flat = traverse_util.flatten_dict(params, sep="/")
  for path in flat.keys() & set(TABLES):
    flat[path] = transfer_rows(flat[path], *args, **kwargs)
  return traverse_util.unflatten_dict(flat, sep="/")
