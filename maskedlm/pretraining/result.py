"""Writes result.json at the end of a run, and prints what is in it."""

import pathlib
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.measured import perplexity
from maskedlm.data.corpus import store
from maskedlm.runtime import buckets, output_files
from maskedlm.training import language_metrics, loop


def write_and_print(
  workdir: pathlib.Path, corpus: store.Corpus, result: loop.Result
) -> None:
  """Prints the held-out result of a run, and writes it to result.json."""
  path = workdir / "result.json"
  speed = result.tokens_per_second
  if speed is None:  # The run was complete before.
    speed = output_files.read_result(workdir).get("tokens_per_second")
  heldout, each = language_metrics.split_by_language(result.heldout)
  entropy = store.unigram_entropy(corpus)
  values: dict[str, Any] = {
    "heldout_mlm_loss": heldout.get("mlm_loss"),
    "unigram_entropy": entropy,
    "mlm_accuracy": heldout.get("mlm_accuracy"),
    "nsp_accuracy": heldout.get("nsp_accuracy"),
    "tokens_per_second": speed,
    "steps": result.step,
  }
  if "lm_loss" in heldout:  # objective.name=causal or bilm.
    values["heldout_lm_loss"] = heldout["lm_loss"]
    values["lm_accuracy"] = heldout["lm_accuracy"]
  if each:
    values["languages"] = each
  output_files.write_json(path, values)
  print(f"held out, after {counted(result.step, 'step')}:")
  if heldout and not {"mlm_loss", "lm_loss"} & heldout.keys():
    print("  no predictions: nothing could be masked in the held-out rows")
  for name in ("mlm", "lm"):
    if f"{name}_loss" not in heldout:
      continue
    loss, accuracy = (
      heldout[f"{name}_{what}"] for what in ("loss", "accuracy")
    )
    label = name.upper()
    print(
      f"  {label + ' loss':<15} {loss:.3f} nats "
      f"(perplexity {perplexity(loss):,.1f})"
    )
    print(f"  unigram entropy {entropy:.3f} nats: by token frequencies alone")
    print(f"  {label + ' accuracy':<15} {accuracy:.1%}")
  if "nsp_accuracy" in heldout:
    print(f"  NSP accuracy    {heldout['nsp_accuracy']:.1%}")
  if "discriminator_accuracy" in heldout:
    print(
      f"  discriminator   {heldout['discriminator_accuracy']:.1%} right of "
      f"all tokens, of which {heldout['replaced_share']:.1%} are replaced"
    )
  if each:
    print("  by language, as docs/guides/pretrain/multilingual.md explains:")
    for line in language_metrics.format_table(each):
      print(f"    {line}")
  if speed:
    print(f"  speed           {speed:,.0f} tokens/s")
  print(f"  these figures   {buckets.origin(path)}")
