"""Profiles of training steps by part: a trace, and a table by part.

`watch` stands between the loop (train.py) and what it calls; with
`--config.profile=N` it traces N steps into WORKDIR/profile. The table is made
from what any profiler shows: each operation that ran has the name of an
instruction of the compiled step, and the instruction carries the path of
scopes (flax's modules, jax.named_scope) that it was traced in. How to read it,
and what a fused operation does to it: docs/guides/pretrain/profiling.md.
"""

import collections
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import jax

from maskedlm.runtime import console

WARMUP = 5  # Steps before the trace: they compile, and fill the caches.
WAITING = "wait for input"

# (part, regex on the scopes of an operation); the first that is found counts.
PARTS = (
  ("optimizer", r"/optimizer(/|$)"),
  ("masking", r"/masking(/|$)"),
  ("dropout", r"Dropout_\d|Encoder\.__call__"),  # And its keys, layer by layer.
  ("attention: projections", r"/attention/(qkv|out)(/|$)"),
  ("attention: the rest", r"/attention(/|$)"),
  ("mlp", r"/mlp(/|$)"),
  ("embedding", r"/(embeddings|project)(/|$)"),
  ("head and loss", r"Head|Pooler"),
  ("norms", r"norm(/|$)"),
  ("encoder: the rest", r"Encoder"),  # Sums, what is kept for backward.
  ("head and loss", r"jvp\("),  # Whatever else has a gradient.
)
OTHER = "other"
INPUT = "waiting for input"  # The device is idle, and the host has no batch.
IDLE = "idle"
ROWS = (*dict(PARTS), OTHER, INPUT, IDLE)  # In the table's order.


class Operation(NamedTuple):
  """An operation that ran once; times in ns."""

  begin: float
  end: float
  name: str  # Of the HLO instruction.
  part: str
  over: float = (
    0.0  # Later than end: what it has left to other threads is done.
  )


class Profile(NamedTuple):
  """The time of the traced steps by part, in ms a step."""

  total: float  # From the first request for a batch to the last operation.
  parts: Mapping[str, float]  # Of ROWS; they add up to total.
  longest: list[tuple[float, str, str, str]]  # (ms, part, instruction, scopes)


def watch(
  step: Callable,
  batches: Iterator,
  count: int,
  workdir: pathlib.Path,
  *,
  log: Callable[[str], None] = console.log,
) -> tuple[Callable, Iterator]:
  """Wraps (step, batches) so that they trace `count` steps on the way.

  Args:
    step: the jitted step, (state, batch) -> (state, metrics).
    batches: an iterator over what the loop places on the device.
    count: steps to trace, after WARMUP others; 0 = return both as they are.
    workdir: receives profile/. Several hosts: the first one traces.
    log: prints a line.
  """
  if count < 1 or jax.process_index():
    return step, batches
  # A program in the cache has the scopes of the code that first compiled it.
  jax.config.update("jax_compilation_cache_include_metadata_in_key", True)
  folder = workdir / "profile"
  done, state, shapes, hlo, tracing = 0, None, [], "", False

  def watched(old, batch):
    nonlocal done, state, hlo, tracing
    if done == WARMUP:
      hlo = step.lower(old, batch).compile().as_text()  # It is compiled.
    state, stats = step(old, batch)
    done += 1
    if WARMUP < done <= WARMUP + count:
      shapes.append(jax.tree.map(lambda x: x.shape, dict(batch)))
    if done == WARMUP + count:
      jax.block_until_ready(state)
      jax.profiler.stop_trace()
      tracing = False
      text = format_table(read(folder, hlo, count), count)
      if any(other != shapes[0] for other in shapes):
        text += (
          "\nRows were of several lengths: the parts are those of the first "
          "one's program alone; data.pack=False gives one shape.\n"
        )
      (folder / "table.txt").write_text(text, encoding="utf-8")
      log(f"{text}\nThe trace and this table are in {folder}")
    return state, stats

  def asked():
    nonlocal tracing
    for _ in range(WARMUP):
      yield next(batches)
    jax.block_until_ready(state)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # It would slow the host down.
    jax.profiler.start_trace(
      folder, create_perfetto_trace=True, profiler_options=options
    )
    tracing = True
    try:
      for _ in range(count):
        with jax.profiler.TraceAnnotation(WAITING):
          batch = next(batches)
        yield batch
      yield from batches
    finally:
      if tracing:  # The run was over before.
        jax.profiler.stop_trace()

  return watched, asked()


def read(folder: pathlib.Path, hlo: str, count: int) -> Profile:
  """Returns the profile of the newest trace in a folder.

  Args:
    folder: what jax.profiler.start_trace was given.
    hlo: the text of the compiled step.
    count: steps that were traced.
  """
  path = max(folder.rglob("*.xplane.pb"), key=os.path.getmtime)
  planes = list(jax.profiler.ProfileData.from_file(str(path)).planes)
  waits = [
    (event.start_ns, event.end_ns)
    for plane in planes
    for line in plane.lines
    for event in line.events
    if event.name == WAITING
  ]
  program = instructions(hlo)
  ran = operations(planes, hlo.split(maxsplit=2)[1].rstrip(","), program)
  begin = min(start for start, _ in waits)
  ours = [max(x.end, x.over) for x in ran if x.part != OTHER]
  end = max(ours or [x.end for x in ran] or [begin])
  spent = share_out(ran, waits, begin, end)
  scale = 1e-6 / count
  parts = dict.fromkeys(ROWS, 0.0)
  for (part, _), ns in spent.items():
    parts[part] += ns * scale
  return Profile(
    (end - begin) * scale,
    parts,
    [
      (ns * scale, part, name, program.get(name) or "")
      for (part, name), ns in spent.most_common()
      if name
    ][:12],
  )


def instructions(hlo: str) -> dict[str, str | None]:
  """Returns {instruction: scopes}; None for those that only call others.

  What the compiler put in, such as copies, has the scopes of its first reader.
  """
  found: dict[str, str | None] = {}
  readers: dict[str, str] = {}
  for line in reversed(hlo.splitlines()):  # Readers come first.
    made = re.match(r"\s+(?:ROOT )?%([\w.\-]+) = (.*)", line)
    if not made:
      continue
    name, rest = made.groups()
    own = re.search(r'op_name="([^"]*)"', rest)
    scopes = own[1] if own else readers.get(name, "")
    calls = re.search(r"[\])}] (while|conditional|call)\(", rest)
    found[name] = None if calls else scopes
    if scopes:
      readers.update(dict.fromkeys(re.findall(r"%([\w.\-]+)", rest), scopes))
  return found


def part_of(scopes: str) -> str:
  """Returns the part that an operation of these scopes belongs to."""
  return next((part for part, r in PARTS if re.search(r, scopes)), OTHER)


def operations(
  planes: Iterable, module: str, program: Mapping[str, str | None]
) -> list[Operation]:
  """Returns the operations of one device; outside the step, part is OTHER.

  GPUs and TPUs have planes of their own; a CPU's operations are on the threads
  of the host. Of several devices, it is the first that has any.
  """
  devices = sorted(
    (plane for plane in planes if plane.name.startswith("/device:")),
    key=lambda plane: plane.name,
  )
  for plane in (*devices, *(p for p in planes if p.name == "/host:CPU")):
    if found := list(_of_plane(plane, module, program)):
      return found
  return []


def _of_plane(plane, module, program) -> Iterator[Operation]:
  lines = list(plane.lines)
  # Where the profiler has put the operations of all streams together.
  lines = [line for line in lines if line.name == "XLA Ops"] or lines
  for line in lines:
    open_ones = {}
    for event in sorted(line.events, key=lambda event: event.start_ns):
      stats = dict(event.stats)
      if event.name.startswith("end: "):  # On a CPU, of one that went on.
        began = open_ones.pop(stats.get("_c"), None)
        if began:
          yield began._replace(over=event.start_ns)
        continue
      # TPUs name an event by the whole instruction.
      name = re.match(r"%?([\w.\-]*)", stats.get("hlo_op", event.name))[1]
      if ("hlo_op" not in stats and name not in program) or stats.get(
        "device_ordinal", 0
      ):
        continue
      scopes: str | None = ""
      if stats.get("hlo_module", module) == module:
        scopes = program.get(name, "")
      if scopes is None:
        continue
      found = Operation(event.start_ns, event.end_ns, name, part_of(scopes))
      if "_p" in stats:
        open_ones[stats["_p"]] = found
      else:
        yield found
    yield from open_ones.values()


def share_out(
  ran: Iterable[Operation],
  waits: Iterable[tuple[float, float]],
  begin: float,
  end: float,
) -> collections.Counter:
  """(part, name) -> ns of the time from begin to end, each moment counted once.

  A moment is shared by the operations that run then; if none does, by those
  that aren't over, as other threads, or a queue, have what is left of them.
  Else it is INPUT while the host waits for a batch, or IDLE.
  """
  running, left, waiting = range(3)
  changes = [(end, waiting, (IDLE, ""), 0)]
  for x in ran:
    spans = [(running, x.begin, x.end), (left, x.end, max(x.end, x.over))]
    for state, start, stop in spans:
      changes.append((start, state, (x.part, x.name), 1))
      changes.append((stop, state, (x.part, x.name), -1))
  for start, stop in waits:
    changes.append((start, waiting, (INPUT, ""), 1))
    changes.append((stop, waiting, (INPUT, ""), -1))
  spent: collections.Counter = collections.Counter()
  active = [collections.Counter() for _ in range(3)]
  last = begin
  for now, state, key, change in sorted(changes):
    now = min(max(now, begin), end)
    if now > last:
      those = next((some for some in active if some), {(IDLE, ""): 1})
      for name, number in those.items():
        spent[name] += (now - last) * number / sum(those.values())
      last = now
    active[state][key] += change
    if not active[state][key]:
      del active[state][key]
  return spent


def format_table(profile: Profile, count: int) -> str:
  """Returns the profile as a table of text."""
  lines = [
    f"a step takes {profile.total:,.2f} ms (of {count} traced)",
    "",
    f"{'part':<24}{'ms':>10}{'share':>9}",
  ]
  for part, ms in profile.parts.items():
    lines.append(f"{part:<24}{ms:>10,.2f}{ms / profile.total:>9.1%}")
  lines += ["", "the longest operations, ms a step:"]
  for ms, part, name, scopes in profile.longest:
    lines.append(f"{ms:>10,.2f}  {name} ({part}) {_short(scopes)}")
  return "\n".join(line.rstrip() for line in lines) + "\n"


def _short(scopes: str) -> str:
  """Returns the end of a path of scopes, without what jax puts between them."""
  steps = re.sub(r"(jit\(step\)|while/body|closed_call)/", "", scopes)
  return "/".join(steps.split("/")[-4:])
