"""The kinds of faults of what is only read: texts, logs, vectors, models."""

import contextlib
import gzip
import json
import os
import random
import re
import shutil
import string
import types

import numpy as np

from faults import kinds, within
from helpers import damage, task_files, web_server

_LONG = 20.0  # Seconds that no small file may take to be read.


def labelled(made, folder, rng):
  """A labelled file is damaged, or hostile, before it is read."""
  from maskedlm.finetune import config as configs

  name = rng.choice(task_files.task_names())
  file = task_files.make_file(name, 12, rng.randrange(9))
  path = folder / f"data{file.suffix}"
  path.write_bytes(_hostile(file.text, rng).encode("utf-8", "surrogatepass"))
  if rng.random() < 0.3:
    rng.choice(damage.CONTENT)(path, rng)
  if rng.random() < 0.2:
    path.write_bytes(gzip.compress(path.read_bytes()))
  task = configs.make_task(name, file.options)
  return _told(lambda: list(task.read_examples(str(path))))


def _hostile(text: str, rng: random.Random) -> str:
  """Returns a text with something in it that people and programs write."""
  place = rng.randrange(len(text) + 1)
  lines = text.splitlines(keepends=True)
  line = rng.randrange(len(lines))
  inserted = rng.choice(
    [
      *('"', "'", "\0", "\ufeff", "\ud800", "\r", "\n\n\n", "\t\t", ",,", "|"),
      *("\u2028", "\x1c", "\u200b", "[" * 5_000, "{" * 200, "9" * 5_000),
      *("NaN", "null", "1e999", "-", "\\", "\x1a", "x" * 300_000, " " * 5_000),
    ]
  )
  return rng.choice(
    [
      lambda: text[:place] + inserted + text[place:],
      lambda: text[:place],
      lambda: "".join(lines[:line] + lines[line + 1 :]),
      lambda: "".join(lines[:line] + [lines[line]] * 2 + lines[line:]),
      lambda: "".join(rng.sample(lines, len(lines))),
      lambda: text.replace(
        rng.choice(["\t", " ", ":", '"', "1"]), inserted[:9]
      ),
      lambda: text.translate({ord(rng.choice(string.printable)): inserted[:9]}),
    ]
  )()


def _told(act) -> str | None:
  """Returns what is wrong with a call that may only raise one line."""
  ended = within.call(lambda argv: act() and None)
  if ended.seconds > _LONG:
    return f"takes {ended.seconds:.0f} s"
  return kinds.untold(ended)


def edited_log(made, folder, rng):
  """The log or the config of a run was edited; then it is looked at."""
  workdir = folder / "run"
  shutil.copytree(made.within / "data", workdir)
  path = workdir / rng.choice(["metrics.jsonl", "config.json", "result.json"])
  text = path.read_text()
  values = ("null", "[]", "{}", '"a"', "true", "-1", "0", "1e999", "NaN")
  values += ("9" * 5_000, "9" * 400, "0.5", '"\\ud800"', "[[1]]", "")
  for _ in range(rng.choice([1, 1, 3])):
    places = list(re.finditer(r"(?<=: )[^,{}\[\]]+", text))
    place = rng.choice(places)
    text = text[: place.start()] + rng.choice(values) + text[place.end() :]
  if rng.random() < 0.2:
    text = text.replace(rng.choice(['"step"', '"loss"', '"train"', "\n"]), "")
  path.write_text(text, errors="surrogatepass")
  if rng.random() < 0.1:
    damage.flip(path, rng)
  picture = folder / "run.svg"
  argv = rng.choice(
    [
      ["status", workdir],
      ["status", workdir],
      ["status", "--json", workdir],
      ["plot", "run", workdir, f"--out={picture}"],
    ]
  )
  return kinds.untold(within.verb(argv), " ".join(map(str, argv[:2])))


def vectors(made, folder, rng):
  """A file of vectors is damaged, or has other arrays."""
  from maskedlm.inference.vectors import search, standardise
  from maskedlm.inference.word_senses import senses

  path = folder / "v.npz"
  with np.load(made.within / "vectors.npz") as file:
    arrays = dict(file)
  arrays["mean"] = arrays["stddev"] = np.zeros(3, np.float32)
  arrays["senses"] = np.frombuffer(json.dumps(_SENSES).encode(), np.uint8)
  if rng.random() < 0.7:
    name = rng.choice(sorted(arrays))
    arrays[name] = rng.choice(_ARRAYS)(arrays[name])
    if rng.random() < 0.2:
      del arrays[name]
    np.savez(path, **arrays)
  else:
    np.savez(path, **arrays)
    rng.choice(damage.ALL[:-1])(path, rng)
  opened = rng.choice(
    [
      lambda: standardise.load_standardiser(path),
      lambda: senses.load_senses(path),
      lambda: search.open_index(path, _ANOTHER),
    ]
  )
  return _told(opened)


_ANOTHER = types.SimpleNamespace(
  tokenizer=types.SimpleNamespace(sha256=""), params={"encoder": {}}
)
_SENSES = {
  "names": ["a"], "examples": ["b"], "candidates": [], "forms": {}, "about": {}
}  # fmt: skip
_ARRAYS = (
  lambda x: x[..., None],
  lambda x: x[:0] if x.ndim else x,
  lambda x: np.zeros(3),
  lambda x: x.astype(str),
  lambda x: np.array(5),
  lambda x: np.frombuffer(b"[1, 2]", np.uint8),
  lambda x: np.array("{}"),
  lambda x: np.array(["a", None], object),
)


def checkpoint(made, folder, rng):
  """A file of a checkpoint is damaged before its parameters are read."""
  import jax

  from maskedlm.training.checkpoints import load

  workdir = shutil.copytree(made.within / "data", folder / "run")
  path = kinds.any_file(workdir / "checkpoints" / "8", rng)
  rng.choice(damage.ALL)(path, rng)
  found = []
  fault = _told(lambda: found.append(load.load_params(workdir)))
  if fault or not found:
    return fault
  params, meta = found[0]
  whole = load.load_params(made.within / "data", step=int(meta["step"]))[0]
  same = jax.tree.map(np.array_equal, params, whole)
  return None if all(jax.tree.leaves(same)) else "other numbers in silence"


def streamed_corpus(made, folder, rng):
  """A streamed corpus lost or damaged files of its cache between two runs."""
  from maskedlm.config import defaults
  from maskedlm.data.batches import text_rows
  from maskedlm.data.corpus import store, streamed
  from maskedlm.runtime import buckets

  buckets.PAUSES = (0.0,) * 6
  config = defaults.default()
  config.data.length, config.data.batch_size = 32, 8
  served = shutil.copytree(made.corpus, folder / "served" / "corpus")
  os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
  with web_server.serve(served.parent) as web:

    def read():
      size = rng.choice([0.001, 0.0001, None])
      address = f"{web.address}/corpus"
      found = streamed.open_corpus(address, cache_gb=size, log=lambda x: None)
      return _batches(text_rows.document_batches(config, found, (0, 1)))

    read()
    for _ in range(rng.choice([1, 1, 4])):
      cache = folder / "cache"
      victims = sorted(
        p for p in cache.rglob("*") if p.is_file() or rng.random() < 0.05
      )
      victim = rng.choice(victims)
      hurt = rng.choice([*[damage.remove] * 4, *damage.ALL[:-1]])
      with contextlib.suppress(OSError):
        hurt(victim, rng)
    share = rng.choice([0, 0, 0, 0.1])
    web.failing = lambda path: (
      rng.choice(["drop", 500]) if rng.random() < share else False
    )
    got = []
    ended = within.call(lambda argv: got.append(read()))
  if fault := kinds.untold(ended):
    return fault
  # What is gone is copied again: only damage may be refused.
  whole = _batches(
    text_rows.document_batches(config, store.open_corpus(made.corpus), (0, 1))
  )
  if got and any((a != b).any() for a, b in zip(got[0], whole, strict=True)):
    return "other batches in silence"
  return None


def _batches(made) -> list[np.ndarray]:
  return [x for step in range(3) for x in made.batch_at("train", step).values()]


# Kind -> (trial, of 10,000).
KINDS = {
  "labelled files": (labelled, 4000),
  "edited logs": (edited_log, 400),
  "vectors": (vectors, 1100),
  "damaged checkpoint, read": (checkpoint, 750),
  "streamed corpora": (streamed_corpus, 200),
}
