"""`maskedlm pretrain`: pretrains an encoder on raw text.

Steps: mesh -> corpus (the workdir's own is prepared if missing) -> objective ->
loop.run -> held-out result, a few filled masks. Run again, it continues.
"""

import argparse
import math
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from ml_collections import ConfigDict

from maskedlm.cli import exit_codes
from maskedlm.config import defaults, existing, overrides
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.core.measured import perplexity
from maskedlm.core.parse_json import parse_json
from maskedlm.core.task import Task
from maskedlm.data.batches import domain_mixture
from maskedlm.data.corpus import integrity, store, streamed
from maskedlm.data.prepare import prepare
from maskedlm.data.sources import domains
from maskedlm.data.tokenizers import tokenizer
from maskedlm.runtime import buckets, console, output_files, startup, waiting
from maskedlm.training.checkpoints import init_from, init_tokens

# Options that decide what is predicted.
_OF_ROWS = re.compile(r"(objective|corpus)\.|data\.length")


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm pretrain",
    description="Pretrains as a config says; run again, it continues from its "
    "newest checkpoint. docs/reference/options.md has every "
    "option.",
  )
  parser.add_argument(
    "--workdir",
    help="checkpoints, logs, results; default: runs/<name>. Without --config, "
    "the run that is there continues with its own config",
  )
  args, config = overrides.parse_config(
    parser,
    argv,
    fit=existing.fit_to_corpus,
    made=lambda args, config: args.workdir or f"runs/{config.name}",
  )
  return pretrain(config, args.workdir or f"runs/{config.name}")


def pretrain(config: ConfigDict, workdir: str | pathlib.Path) -> int:
  """Pretrains in workdir, a folder or gs://...; returns the exit code.

  Call it on every host.

  Writes: config.json, tokenizer/, corpus/ (unless config.corpus.path names
  one), checkpoints/, metrics.jsonl, tensorboard/ and, at the end, result.json.
  """
  from maskedlm.runtime import multihost

  with startup.connected(profile=config.profile):
    startup.enable_compile_cache()
    mesh = _preflight(config)
    with multihost.workdir(workdir) as folder:
      return _pretrain(config, folder, mesh)


def _pretrain(config: ConfigDict, workdir: pathlib.Path, mesh) -> int:
  import jax

  from maskedlm import objectives
  from maskedlm.runtime import multihost
  from maskedlm.training import (
    epochs,
    language_metrics,
    loop,
    phases,
    predictions,
    sharding,
  )
  from maskedlm.training.checkpoints import resume

  multihost.check_shared(workdir)
  multihost.run_on_all_hosts(lambda: resume.check_workdir(workdir, config))
  corpora = multihost.run_on_all_hosts(
    lambda: _open_corpora(config, workdir),
    facts=lambda corpora: resume.flatten(_identity(config, corpora)),
  )
  corpus = corpora[0]
  # A copy, since resolve_packing changes it.
  config = config.copy_and_resolve_references()
  with waiting.explained(f"counting the rows of {corpus.path}"):
    configs = [phase.config for phase in phases.split(config)]
    objectives.resolve_packing(
      config, [*zip(configs, corpora, strict=True)], log=console.log
    )
    parts = phases.split(config)
    tasks = [
      _make_task(phase.config, each, sharding.data_shard(mesh))
      for phase, each in zip(parts, corpora, strict=True)
    ]
  languages = language_metrics.of_corpus(corpus)
  shared = {"languages": languages, "token_counts": corpus.token_counts}
  tasks = [task._replace(**shared) for task in tasks]
  params = jax.eval_shape(tasks[0].init, jax.random.key(0))
  count = sum(math.prod(x.shape) for x in jax.tree.leaves(params))
  console.log(
    f"{config.name} in {buckets.origin(workdir)}: {config.objective.name}, "
    f"{count:,} parameters on {mesh.size} {jax.devices()[0].device_kind} "
    f"device(s), mesh {dict(mesh.shape)}; their shardings are in parameters.txt"
  )

  with waiting.explained("measuring what is predicted in the first rows"):
    for phase, task, each in zip(parts, tasks, corpora, strict=True):
      if phase is parts[0] or any(map(_OF_ROWS.match, phase.changes)):
        predictions.check_rows(phase.config, task, each, log=console.log)
  for line in epochs.warnings(parts, tasks):
    console.log(line)
  multihost.run_on_all_hosts(
    lambda: multihost.is_primary() and _keep_tokenizer(config, corpus, workdir)
  )
  starting = {}
  if config.init_from:
    starting["start_from"] = init_from.initial_weights(
      config.init_from, log=console.log, method=config.grow
    )
  if config.init_tokens:
    starting["start_from"] = init_tokens.initial_tokens(
      config.init_tokens, corpus.tokenizer, log=console.log
    )
  result = loop.run(
    parts,
    tasks,
    workdir,
    mesh=mesh,
    frozen=defaults.frozen_options(config),
    identity=_identity(config, corpora),
    **starting,
  )
  if result.interrupted:
    console.log(
      f"interrupted; step {result.step:,} is saved: the same command continues"
    )
    return exit_codes.INTERRUPTED_AND_SAVED
  if multihost.is_primary():
    finish(workdir, corpus, result, fills_masks="mlm_head" in params)
  return 0


def _preflight(config: ConfigDict):
  """Checks the config before any slow work; returns the mesh."""
  import jax

  from maskedlm import objectives
  from maskedlm.data.batches import placeholder_corpus
  from maskedlm.modeling import architecture
  from maskedlm.modeling.attention import layer
  from maskedlm.training import phases, sharding, step, trackers

  trackers.check_installed(config.train.tracker)
  share, rows = config.corpus.heldout_share, config.train.eval_rows
  if not config.corpus.path and not share and rows:
    raise ConfigError(
      f"corpus.heldout_share={share} leaves no text for train.eval_rows={rows}:"
      " raise corpus.heldout_share or set train.eval_rows=0."
    )
  mesh = sharding.make_mesh(config.mesh)
  corpus = placeholder_corpus.make_corpus(config.tokenizer)
  parts = phases.split(config)
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
  phases.join_tasks(parts, tasks)
  if config.init_tokens:
    init_tokens.check(config, jax.eval_shape(tasks[0].init, jax.random.key(0)))
  return mesh


def _make_task(config: ConfigDict, corpus: store.Corpus, shard) -> Task:
  """Returns the Task of a phase, whose batches are checked."""
  from maskedlm import objectives

  task = objectives.make_task(config, corpus, shard)
  return task._replace(batch_at=store.check_batches(task.batch_at, corpus))


def _open_corpora(
  config: ConfigDict, workdir: pathlib.Path
) -> list[store.Corpus]:
  """Returns the corpus of each phase, which is checked.

  Raises:
    ConfigError: as _open_corpus and _open_at, or two corpora have different
      tokenizers.
    CorpusError: there is nothing to predict in a corpus.
  """
  from maskedlm.training import phases, predictions

  configs = [phase.config for phase in phases.split(config)]
  paths = dict.fromkeys(each.corpus.path for each in configs)
  start, *later = paths
  # First the others, as preparing the first phase's text may take hours.
  opened = {path: _open_at(config, path, "phases: ") for path in later}
  first = opened[start] = _open_corpus(configs[0], workdir)
  for path, corpus in opened.items():
    if corpus.tokenizer.sha256 != first.tokenizer.sha256:
      raise ConfigError(
        f"phases: corpus.path={path!r} has another tokenizer: prepare it again "
        f"with --config.tokenizer.path={first.path}/tokenizer."
      )
    predictions.check_corpus(corpus)
  return [opened[each.corpus.path] for each in configs]


def _open_at(config: ConfigDict, path: str, where: str) -> store.Corpus:
  """Opens the corpus at a path, a folder or an address.

  Args:
    config: its corpus.cache_gb is read.
    path: a corpus.path.
    where: the beginning of the message if nothing is there.

  Raises:
    ConfigError: nothing is there, or the address may not be read.
    CorpusError: it can't be opened.
    StorageError: the address can't be read at present.
  """
  if not buckets.is_address(path):
    folder = buckets.folder(path)
    if not path or not os.path.lexists(folder):
      raise ConfigError(
        f"{where}corpus.path={path!r}: nothing is at {folder}. Correct it, or "
        "prepare a corpus there, `maskedlm prepare --config=... "
        f"--out={folder}`."
      )
  cache_gb = config.corpus.cache_gb
  return streamed.open_corpus(path, cache_gb=cache_gb, log=console.warn)


def _open_corpus(config: ConfigDict, workdir: pathlib.Path) -> store.Corpus:
  """Opens the corpus of corpus.path, or the workdir's, prepared if missing.

  Raises:
    ConfigError: there is none at corpus.path; or corpus.path is empty, and the
      workdir is an address, or has no corpus and there are several hosts, or
      holds a run with another corpus.
  """
  import jax

  from maskedlm.training.checkpoints import resume

  if config.corpus.path:
    # If it is misspelt, preparing would hide the mistake.
    corpus = _open_at(config, config.corpus.path, "")
    return prepare.check_tokenizer(config, corpus, log=console.warn)
  path = workdir / "corpus"
  if not integrity.is_complete(path):
    resume.check_corpus_options(workdir, _values(config))
  if buckets.is_address(buckets.origin(workdir)):
    raise ConfigError(
      f"{buckets.origin(workdir)} can't hold the corpus, mapped from a "
      "disk: prepare it, and give --config.corpus.path=FOLDER, or =gs://... if "
      "you copy it there."
    )
  if not integrity.is_complete(path):
    # Checked now, not after hours of preparing.
    names = [
      part.name for part in domains.parse_domains(config.corpus) if part.name
    ]
    domain_mixture.parse_domain_shares(config.data.shares, names)
    if jax.process_count() > 1:
      raise ConfigError(
        f"no corpus at {path}: several hosts don't prepare one. Do that first, "
        "on one machine: `maskedlm prepare --config=... --out=FOLDER`; then "
        "give all hosts --config.corpus.path=FOLDER."
      )
  return prepare.prepare(config, path, log=console.warn)


def _identity(
  config: ConfigDict, corpora: Sequence[store.Corpus]
) -> dict[str, Any]:
  """Returns what identifies the run, for resume.py to compare."""
  return {
    "config": _values(config),
    "corpus": "+".join(dict.fromkeys(c.fingerprint for c in corpora)),
    "tokenizer": corpora[0].tokenizer.sha256,
  }


def _values(config: ConfigDict) -> dict[str, Any]:
  """Returns a config as config.json has it."""
  return parse_json(config.to_json_best_effort())


def _keep_tokenizer(
  config: ConfigDict, corpus: store.Corpus, workdir: pathlib.Path
) -> None:
  """Copies the corpus's tokenizer into the workdir.

  Raises:
    ConfigError: the workdir has another tokenizer, or a damaged one.
  """
  from maskedlm.training.checkpoints import resume

  path = workdir / "tokenizer"
  tokenizer.save_if_absent(corpus.tokenizer, path)
  try:
    found = tokenizer.open_tokenizer(path).sha256
  except CorpusError as error:
    raise ConfigError(
      f"{path} is damaged ({error}): remove it, and the same command writes it "
      "again."
    ) from error
  if found != corpus.tokenizer.sha256:
    resume.check_corpus_options(workdir, _values(config))
    raise ConfigError(
      f"{path} is not the corpus's tokenizer ({found[:12]}, the corpus has "
      f"{corpus.tokenizer.sha256[:12]}): this workdir holds another run, or a "
      "damaged copy: give another --workdir, or remove the copy."
    )


def finish(
  workdir: pathlib.Path, corpus: store.Corpus, result, *, fills_masks: bool
) -> None:
  """Prints the held-out result and filled masks, and writes result.json."""
  from maskedlm.inference import fill_mask, masked_examples
  from maskedlm.training import language_metrics

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
  if not fills_masks:
    return
  model = fill_mask.load_mask_filler(workdir)
  for text, word in masked_examples.mask_words(corpus, 3):
    (filled,) = fill_mask.fill_masks(model, [text], top_k=5)
    print(f"{fill_mask.format_filled(filled)}  (it was: {word})")
