"""A run of pretraining, in order.

Corpus (the workdir's own is prepared if missing) -> objective -> what its rows
predict -> initial weights -> loop.run -> result. Run again, it continues.
"""

import math
import pathlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
from ml_collections import ConfigDict

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.core.measured import perplexity
from maskedlm.core.task import Params, Task
from maskedlm.data.batches import placeholder_corpus
from maskedlm.data.corpus import store
from maskedlm.modeling import architecture
from maskedlm.modeling.attention import layer
from maskedlm.pretraining import corpora, epochs, objectives, predictions
from maskedlm.pretraining.config import PretrainConfig, decide_packing, split
from maskedlm.pretraining.initial import init_from, init_tokens
from maskedlm.runtime import buckets, console, multihost, output_files, waiting
from maskedlm.training import (
  distil,
  joined_tasks,
  language_metrics,
  loop,
  sharding,
  step,
  trackers,
)
from maskedlm.training.checkpoints import resume


def run(
  config: ConfigDict,
  workdir: pathlib.Path,
  mesh: jax.sharding.Mesh,
  *,
  frozen: Collection[str],
  show_examples: Callable[[pathlib.Path, store.Corpus], None],
) -> bool:
  """Pretrains in a folder; see start.py. Returns False if interrupted."""
  multihost.check_shared(workdir)
  multihost.run_on_all_hosts(lambda: resume.check_workdir(workdir, config))
  opened = multihost.run_on_all_hosts(
    lambda: corpora.open_corpora(config, workdir),
    facts=lambda opened: resume.flatten(_identity(config, opened)),
  )
  corpus = opened[0]
  config = config.copy_and_resolve_references()
  with waiting.explained(f"counting the rows of {corpus.path}"):
    decide_packing(config, opened, log=console.log)
    parts = split(config)
    tasks = [
      _make_task(phase.config, phase_corpus, sharding.data_shard(mesh))
      for phase, phase_corpus in zip(parts, opened, strict=True)
    ]
  if (overlap := corpus.tokenizer.overlap) > 1:
    console.log(
      f"masks cover {overlap} tokens in a row: so many {corpus.tokenizer.k}"
      "-mers share a letter, and neighbours would give away a single one"
    )
  languages = language_metrics.of_corpus(corpus)
  counts = corpus.token_counts
  tasks = [t._replace(languages=languages, token_counts=counts) for t in tasks]
  params = jax.eval_shape(tasks[0].init, jax.random.key(0))
  count = sum(math.prod(x.shape) for x in jax.tree.leaves(params))
  names = dict.fromkeys(phase.config.objective.name for phase in parts)
  console.log(
    f"{config.name} in {buckets.origin(workdir)}: {', then '.join(names)}, "
    f"{count:,} parameters on {mesh.size} {jax.devices()[0].device_kind} "
    f"device(s), mesh {dict(mesh.shape)}; their shardings are in parameters.txt"
  )
  with waiting.explained("measuring what is predicted in the first rows"):
    checked = []
    for phase, task, phase_corpus in zip(parts, tasks, opened, strict=True):
      c = phase.config
      rows = c.objective, c.corpus.path, c.data.length
      if rows not in checked:
        checked.append(rows)
        predictions.check_rows(
          c.objective, task, phase_corpus, seed=c.seed, log=console.log
        )
  for line in epochs.warnings(parts, tasks):
    console.log(line)

  def keep_tokenizer() -> None:
    if multihost.is_primary():
      corpora.keep_tokenizer(config, corpus, workdir)

  multihost.run_on_all_hosts(keep_tokenizer)
  result = loop.run(
    parts,
    tasks,
    workdir,
    mesh=mesh,
    frozen=frozen,
    identity=_identity(config, opened),
    start_from=_first_weights(config, corpus),
    continue_from=config.continue_from,
  )
  if result.interrupted:
    console.log(
      f"interrupted; step {result.step:,} is saved: the same command continues"
    )
    return False
  if multihost.is_primary():
    write_and_print(workdir, corpus, result)
    if "mlm_head" in params:
      show_examples(workdir, corpus)
  return True


def write_and_print(
  workdir: pathlib.Path, corpus: store.Corpus, ended: loop.Result
) -> None:
  """Prints the held-out result of a run, and writes it to result.json."""
  path = workdir / "result.json"
  speed = ended.tokens_per_second
  if speed is None:  # The run was complete before.
    speed = output_files.read_result(workdir).get("tokens_per_second")
  heldout, languages = language_metrics.split_by_language(ended.heldout)
  entropy = store.unigram_entropy(corpus)
  values: dict[str, Any] = {
    "heldout_mlm_loss": heldout.get("mlm_loss"),
    "unigram_entropy": entropy,
    "mlm_accuracy": heldout.get("mlm_accuracy"),
    "nsp_accuracy": heldout.get("nsp_accuracy"),
    "tokens_per_second": speed,
    "steps": ended.step,
  }
  if "lm_loss" in heldout:  # objective.name=causal or bilm.
    values["heldout_lm_loss"] = heldout["lm_loss"]
    values["lm_accuracy"] = heldout["lm_accuracy"]
  if languages:
    values["languages"] = languages
  output_files.write_json(path, values)
  print(f"held out, after {counted(ended.step, 'step')}:")
  if heldout and not {"mlm_loss", "lm_loss"} & heldout.keys():
    print("  no predictions: nothing could be masked in the held-out rows")
  for name in ("mlm", "lm"):
    if f"{name}_loss" not in heldout:
      continue
    loss, accuracy = (
      heldout[f"{name}_{metric}"] for metric in ("loss", "accuracy")
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
  if languages:
    print("  by language, as docs/guides/pretrain/multilingual.md explains:")
    for line in language_metrics.format_table(languages):
      print(f"    {line}")
  if speed:
    print(f"  speed           {speed:,.0f} tokens/s")
  print(f"  these figures   {buckets.origin(path)}")


def check(config: ConfigDict) -> jax.sharding.Mesh:
  """Checks a config before any slow work; returns the mesh.

  Raises:
    ConfigError: an option is wrong, or doesn't suit the devices.
  """
  trackers.check_installed(config.train.tracker)
  share, rows = config.corpus.heldout_share, config.train.eval_rows
  if not config.corpus.path and not share and rows:
    raise ConfigError(
      f"corpus.heldout_share={share} leaves no text for train.eval_rows={rows}:"
      " raise corpus.heldout_share or set train.eval_rows=0."
    )
  mesh = sharding.make_mesh(config.mesh)
  corpus = placeholder_corpus.make_corpus(config.tokenizer)
  parts = split(config)
  tasks = []
  for phase in parts:
    c = phase.config
    sharding.check_batch(c.data.batch_size, c.train.accumulate, mesh)
    cfg = architecture.encoder_config(
      c.model, c.tokenizer.vocab_size, c.data.length
    )
    architecture.check_attention(cfg, **layer.machine())
    tasks.append(objectives.make_task(c, corpus))
    step.over_mesh(c, tasks[-1], mesh, rates=phase.rates)
  joined_tasks.join_tasks(parts, tasks)
  if config.init_tokens:
    init_tokens.check(config, jax.eval_shape(tasks[0].init, jax.random.key(0)))
  return mesh


def _make_task(config: PretrainConfig, corpus: store.Corpus, shard) -> Task:
  """Returns the Task of a phase, whose batches are checked."""
  task = objectives.make_task(config, corpus, shard)
  return task._replace(batch_at=store.check_batches(task.batch_at, corpus))


def _first_weights(
  config: ConfigDict, corpus: store.Corpus
) -> Callable[[Params], Params]:
  """Returns start_from of loop.run: fresh parameters -> the first ones."""
  if config.init_from:
    return init_from.initial_weights(
      config.init_from, log=console.log, method=config.grow
    )
  if config.init_tokens:
    return init_tokens.initial_tokens(
      config.init_tokens, corpus.tokenizer, log=console.log
    )
  return lambda params: params


def _identity(
  config: ConfigDict, opened: Sequence[store.Corpus]
) -> dict[str, Any]:
  """Returns what identifies the run, for resume.py to compare."""
  return {
    "config": corpora.values(config),
    "corpus": "+".join(dict.fromkeys(c.fingerprint for c in opened)),
    "tokenizer": opened[0].tokenizer.sha256,
    **distil.identity(config.teacher),
  }
