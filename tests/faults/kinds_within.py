"""The kinds of faults of training and writing that need no own process.

As in kinds.py, a trial is (inputs, folder, rng) -> what was wrong, or None.
"""

import errno
import functools
import json
import pathlib
import random
import shutil

from faults import inputs, kinds, readers, within
from helpers import damage, faulty_storage


def _judge(whole, workdir, ended, *, since: int = 0) -> str | None:
  """Returns what is wrong with a run that ended by itself."""
  return kinds.judge(whole, workdir, ended, since=since)


def _verb_argv(made, out: pathlib.Path, rng: random.Random) -> list:
  """Returns a command that writes an output."""
  whole = made.within / "data"
  return rng.choice(
    [
      ["prepare", f"--config={made.config}", f"--out={out}"],
      ["export", f"--checkpoint={whole}", "--to=hf", f"--out={out}"],
      [
        *("embed", f"--checkpoint={whole}", f"--input={made.text}"),
        *("--unit=sentence", f"--out={out}.npz"),
      ],
    ]
  )


def killed(made, folder, rng, name="data"):
  """A run is killed at any call that changes its workdir; then continued."""
  workdir = folder / "run"
  argv = inputs.within(made, name, workdir)
  at = rng.randrange(made.changes[name])
  ended, copy = within.killed(argv, workdir, at)
  if fault := kinds.untold(ended):
    return fault
  again = within.verb(inputs.within(made, name, copy))
  whole = made.within / name
  return _judge(whole, copy, again) or within.left(copy)


def killed_sweep(made, folder, rng):
  """The same for a sweep, whose table must be that of one without a kill."""
  workdir = folder / "run"
  workdir.mkdir()
  at = rng.randrange(made.changes["sweep"])
  ended, copy = within.killed(
    inputs.within(made, "sweep", workdir), workdir, at
  )
  if fault := kinds.untold(ended):
    return fault
  again = within.verb(inputs.within(made, "sweep", copy))
  if fault := kinds.untold(again):
    return fault
  tables = [
    json.loads((place / "sweep.json").read_text())
    for place in (made.within / "sweep", copy)
  ]
  if tables[0] != tables[1]:
    return f"another table in silence: {tables}"
  return within.left(copy)


def killed_output(made, folder, rng):
  """A command that writes an output is killed, and run again."""
  place = folder / "place"
  place.mkdir()
  argv = _verb_argv(made, place / "out", rng)
  ended, copy = within.killed(argv, place, rng.choice([*range(40), 80, 200]))
  again = within.verb(
    [str(word).replace(str(place), str(copy)) for word in argv]
  )
  if again.code and list(copy.glob("out*")) and not ended.code:
    return None  # It was complete already, and isn't overwritten.
  if again.code:
    return f"{argv[0]} again: {again.stderr.strip()[-300:]}"
  return within.left(copy)


def failing_call(made, folder, rng):
  """A call to the file system fails once or for good; then the disk is well."""
  workdir = folder / "run"
  if rng.random() < 0.5:
    shutil.copytree(made.within / "half", workdir)
  argv = inputs.within(made, "data", workdir)
  ended = within.verb(argv, within.failing(workdir, rng))
  if fault := _judge(made.within / "data", workdir, ended):
    return fault
  copy = folder / "left"
  if workdir.exists():
    shutil.copytree(workdir, copy, symlinks=True)
  again = within.verb(inputs.within(made, "data", copy))
  return _judge(made.within / "data", copy, again)


def failing_output(made, folder, rng):
  """A call fails while a command writes its output: nothing half is left."""
  place = folder / "place"
  place.mkdir()
  argv = _verb_argv(made, place / "out", rng)
  ended = within.verb(argv, within.failing(place, rng))
  if fault := kinds.untold(ended, argv[0]):
    return fault
  again = within.verb(argv)
  if again.code and list(place.glob("out*")) and not ended.code:
    return None  # It was complete already, and isn't overwritten.
  if again.code:
    return f"{argv[0]} again: {again.stderr.strip()[-300:]}"
  return None


def damaged_corpus(made, folder, rng):
  """A file of the corpus is damaged before a check, or a run."""
  corpus = shutil.copytree(made.corpus, folder / "corpus")
  damaged = kinds.any_file(corpus, rng)
  rng.choice(damage.ALL)(damaged, rng)
  if rng.random() < 0.03:
    workdir = folder / "run"
    argv = inputs.within(made, "data", workdir, corpus)
    return _judge(made.within / "data", workdir, within.verb(argv))
  ended = within.verb(["prepare", f"--verify={corpus}"])
  if fault := kinds.untold(ended):
    return fault
  if not ended.code and "rows" not in damaged.parts:
    return f"verify passes in silence over {damaged.relative_to(corpus)}"
  return None


def damaged_run(made, folder, rng):
  """A file of a half-finished run is damaged; then it is continued."""
  workdir = shutil.copytree(made.within / "half", folder / "run")
  damaged = kinds.any_file(workdir, rng)
  rng.choice(damage.ALL)(damaged, rng)
  since = 5 if damaged.name == "metrics.jsonl" else 0
  ended = within.verb(inputs.within(made, "data", workdir))
  return _judge(made.within / "data", workdir, ended, since=since)


def odd_checkpoints(made, folder, rng):
  """Checkpoint folders are swapped, renamed, or stand beside strange files."""
  workdir = shutil.copytree(made.within / "half", folder / "run")
  steps = workdir / "checkpoints"

  def swap():
    (steps / "2").rename(steps / "x")
    (steps / "4").rename(steps / "2")
    (steps / "x").rename(steps / "4")

  def unverified():
    for manifest in steps.glob("*/manifest.sha256"):
      manifest.unlink()
    damage.flip(kinds.any_file(steps / "4", rng), rng)

  rng.choice(
    [
      swap,
      unverified,
      lambda: (steps / "4").rename(steps / rng.choice(["6", "7", "100"])),
      lambda: shutil.copytree(steps / "2", steps / rng.choice("56")),
      lambda: (steps / rng.choice(["6", "²", "6.damaged", "a"])).touch(),
      lambda: (steps / rng.choice(["6", "²", "8.damaged", "a"])).mkdir(),
      lambda: (steps / "4.damaged").touch(),
      lambda: (steps / "6").symlink_to("6"),
      lambda: (steps / "6").symlink_to("4"),
    ]
  )()
  ended = within.verb(inputs.within(made, "data", workdir))
  return _judge(made.within / "data", workdir, ended)


def leftovers(made, folder, rng):
  """Killed commands have left files; the next one removes them."""
  workdir = shutil.copytree(made.within / "half", folder / "run")
  corpus = shutil.copytree(made.corpus, folder / "corpus")
  digest = f"{rng.getrandbits(128):032x}"
  steps = workdir / "checkpoints"
  places = [
    *(workdir / f".{name}.{digest}" for name in _NAMES),
    *(steps / f".{step}.unfinished.{digest}" for step in (5, 6, 8)),
    *(corpus / "rows" / f".{x}.npy.{digest}" for x in (digest, "0" * 32)),
    workdir / f".shared-{digest[:16]}",
    steps / "6.orbax-checkpoint-tmp-17" / "params" / "d" / "x",
    steps / "6" / "params" / "d" / "x",
    workdir / f".tokenizer.{digest}" / "tokenizer.json",
  ]
  for place in rng.sample(places, rng.randint(1, 6)):
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(rng.randbytes(rng.choice([0, 9, 999])))
  # The tables are made again: it is then that their folder is cleared.
  for table in (corpus / "rows").glob("*.npy"):
    table.unlink()
  ended = within.verb(inputs.within(made, "data", workdir, corpus))
  fault = _judge(made.within / "data", workdir, ended)
  return fault or within.left(workdir) or within.left(corpus)


_NAMES = ("config.json", "metrics.jsonl", "parameters.txt", "result.json", "x")


def no_locks(made, folder, rng):
  """Without locks, a run starts in the workdir of one that is in progress."""
  from maskedlm.training import progress

  workdir, at = folder / "run", rng.randrange(1, 8)
  argv, advance = (
    inputs.within(made, "data", workdir),
    progress.Progress.advance,
  )
  second = None

  def also(self, rows):
    nonlocal second
    if self.step == at and second is None:
      second = True
      second = within.verb(argv)
    return advance(self, rows)

  fault = faulty_storage.Fault(errno.ENOLCK, "flock", str(folder))
  progress.Progress.advance = also
  try:
    first = within.verb(argv, lambda: faulty_storage.injected(fault))
  finally:
    progress.Progress.advance = advance
  if "has started to write" not in first.stderr or first.code != 2:
    return f"two runs in silence: {first.code} {first.stderr.strip()[-300:]}"
  if first.stderr.count("has no locks") + second.stderr.count("no locks") > 1:
    return "more than one warning"
  return kinds.untold(first) or _judge(made.within / "data", workdir, second)


# Kind -> (trial, of 10,000).
KINDS = {
  "killed at a call": (killed, 90),
  "killed at a call, fsdp": (functools.partial(killed, name="fsdp"), 25),
  "killed at a call, tensor": (functools.partial(killed, name="tensor"), 25),
  "killed at a call, grow": (functools.partial(killed, name="grow"), 20),
  "killed at a call, sweep": (killed_sweep, 12),
  "killed at a call, other verbs": (killed_output, 200),
  "failing call": (failing_call, 50),
  "failing call, other verbs": (failing_output, 200),
  "damaged corpus": (damaged_corpus, 2700),
  "damaged run": (damaged_run, 60),
  "odd checkpoints": (odd_checkpoints, 40),
  "leftovers": (leftovers, 30),
  "no locks": (no_locks, 20),
  **readers.KINDS,
}
