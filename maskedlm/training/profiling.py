"""Profiles training steps: a trace, and a table of the time by component.

With `--config.profile=N`, `watch` wraps the step and the batches of the loop
(loop.py) so that they trace N steps into WORKDIR/profile. The table is computed
from the trace: each operation that ran is named after an instruction of the
compiled step, whose metadata has the path of scopes (flax modules,
jax.named_scope) in which it was traced. docs/guides/pretrain/profiling.md
explains how to read the table, and the effect of fused operations.
"""

import collections
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax

from maskedlm.runtime import console, output_files

WARMUP = 5  # Steps before the trace, which compile and fill caches.
WAITING = "wait for input"

# (component, regex on the scopes of an operation); the first match wins.
COMPONENTS = (
  ("optimizer", r"/optimizer(/|$)"),
  ("masking", r"/masking(/|$)"),
  ("dropout", r"Dropout_\d|Encoder\.__call__"),  # Also each layer's keys.
  ("attention: projections", r"/attention/(qkv|out|group_\w+)(/|$)"),
  ("attention: the rest", r"/attention(/|$)"),
  ("mlp", r"/mlp(/|$)"),
  ("embedding", r"/(embeddings|project)(/|$)"),
  ("head and loss", r"Head|Pooler"),
  ("norms", r"norm(/|$)"),
  ("encoder: the rest", r"Encoder"),  # Sums, and storing for backward.
  ("head and loss", r"jvp\("),  # All else that has a gradient.
)
OTHER = "other"
INPUT = "waiting for input"  # The device is idle as the host has no batch.
IDLE = "idle"
ROWS = (*dict(COMPONENTS), OTHER, INPUT, IDLE)  # The table's, in order.


class Operation(NamedTuple):
  """An operation that ran once; times in ns."""

  begin: float
  end: float
  name: str  # That of the HLO instruction.
  component: str
  over: float = 0.0  # When other threads finished its work, if after `end`.


class Profile(NamedTuple):
  """The time of the traced steps by component, in ms per step."""

  total: float  # From the first request for a batch to the last operation.
  components: Mapping[str, float]  # One for each of ROWS; they sum to total.
  # (ms, component, instruction, scopes)
  longest: list[tuple[float, str, str, str]]


def watch(
  step: Callable,
  batches: Iterator,
  count: int,
  workdir: pathlib.Path,
  *,
  num_steps: int,
  log: Callable[[str], None] = console.log,
) -> tuple[Callable, Iterator]:
  """Returns (step, batches), wrapped so that they trace `count` steps.

  Args:
    step: the jitted step, (state, batch) -> (state, metrics).
    batches: an iterator over the batches that the loop places on the device.
    count: steps to trace, after WARMUP others; 0 to return both unchanged.
    workdir: receives profile/. If there are several hosts, the first traces.
    num_steps: steps that the run will do; fewer than WARMUP + count are not
      traced, which is logged.
  """
  if count < 1 or jax.process_index():
    return step, batches
  if num_steps < WARMUP + count:
    log(
      f"profile={count} has no effect: it traces {count} steps after {WARMUP} "
      f"others, and the run has {num_steps} left"
    )
    return step, batches
  # A cached program has the scopes of the code that compiled it first.
  jax.config.update("jax_compilation_cache_include_metadata_in_key", True)
  folder = workdir / "profile"
  done, state, shapes, hlo, tracing = 0, None, [], "", False

  def traced_step(old, batch):
    nonlocal done, state, hlo, tracing
    if done == WARMUP:
      hlo = step.lower(old, batch).compile().as_text()  # Compiled already.
    state, stats = step(old, batch)
    done += 1
    if WARMUP < done <= WARMUP + count:
      shapes.append(jax.tree.map(lambda x: x.shape, dict(batch)))
    if done == WARMUP + count:
      jax.block_until_ready(state)
      jax.profiler.stop_trace()
      tracing = False
      text = format_table(read_profile(folder, hlo, count), count)
      if any(other != shapes[0] for other in shapes):
        text += (
          "\nRows had several lengths: only the program of the first is split "
          "by component. data.pack=False gives one length.\n"
        )
      output_files.write_text(folder / "table.txt", text)
      log(f"{text}\nThe trace and this table are in {folder}")
    return state, stats

  def traced_batches():
    nonlocal tracing
    for _ in range(WARMUP):
      yield next(batches)
    jax.block_until_ready(state)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # It would slow down the host.
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
      if tracing:  # The run ended before.
        jax.profiler.stop_trace()

  return traced_step, traced_batches()


def read_profile(folder: pathlib.Path, hlo: str, count: int) -> Profile:
  """Returns the profile of the newest trace in a folder, of `count` steps.

  `hlo` is the text of the compiled step.
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
  ends = [max(x.end, x.over) for x in ran if x.component != OTHER]
  end = max(ends or [x.end for x in ran] or [begin])
  spent = divide_time(ran, waits, begin, end)
  scale = 1e-6 / count
  components = dict.fromkeys(ROWS, 0.0)
  for (component, _), ns in spent.items():
    components[component] += ns * scale
  return Profile(
    (end - begin) * scale,
    components,
    [
      (ns * scale, component, name, program.get(name) or "")
      for (component, name), ns in sorted(
        spent.items(), key=lambda item: item[1], reverse=True
      )
      if name
    ][:12],
  )


def instructions(hlo: str) -> dict[str, str | None]:
  """Returns {instruction: scopes}, with None for those that only call others.

  Instructions inserted by the compiler, such as copies, have the scopes of the
  first instruction that reads them.
  """
  program: dict[str, str | None] = {}
  readers: dict[str, str] = {}
  for line in reversed(hlo.splitlines()):  # Readers come first.
    instruction = re.match(r"\s+(?:ROOT )?%([\w.\-]+) = (.*)", line)
    if not instruction:
      continue
    name, rest = instruction.groups()
    op_name = re.search(r'op_name="([^"]*)"', rest)
    scopes = op_name[1] if op_name else readers.get(name, "")
    calls = re.search(r"[\])}] (while|conditional|call)\(", rest)
    program[name] = None if calls else scopes
    if scopes:
      readers.update(dict.fromkeys(re.findall(r"%([\w.\-]+)", rest), scopes))
  return program


def component_of(scopes: str) -> str:
  """Returns the component of an operation with these scopes."""
  return next((name for name, r in COMPONENTS if re.search(r, scopes)), OTHER)


def operations(
  planes: Iterable, module: str, program: Mapping[str, str | None]
) -> list[Operation]:
  """Returns the operations of one device; OTHER for those outside the step.

  GPUs and TPUs have their own planes; a CPU's operations are on the threads of
  the host. If there are several devices, the first with operations is used.
  """
  devices = sorted(
    (plane for plane in planes if plane.name.startswith("/device:")),
    key=lambda plane: plane.name,
  )
  for plane in (*devices, *(p for p in planes if p.name == "/host:CPU")):
    if ran := list(_operations_of(plane, module, program)):
      return ran
  return []


def _operations_of(plane, module, program) -> Iterator[Operation]:
  lines = list(plane.lines)
  # This line, if present, has the operations of all streams.
  lines = [line for line in lines if line.name == "XLA Ops"] or lines
  for line in lines:
    open_ones: dict[Any, Operation] = {}
    for event in sorted(line.events, key=lambda event: event.start_ns):
      stats = dict(event.stats)
      if event.name.startswith("end: "):  # Of work left to other CPU threads.
        began = open_ones.pop(stats.get("_c"), None)
        if began:
          yield began._replace(over=event.start_ns)
        continue
      # TPUs name an event by the whole instruction.
      name = stats.get("hlo_op", event.name).removeprefix("%")
      name = re.split(r"[^\w.\-]", name, maxsplit=1)[0]
      if ("hlo_op" not in stats and name not in program) or stats.get(
        "device_ordinal", 0
      ):
        continue
      scopes: str | None = ""
      if stats.get("hlo_module", module) == module:
        scopes = program.get(name, "")
      if scopes is None:
        continue
      component = component_of(scopes)
      operation = Operation(event.start_ns, event.end_ns, name, component)
      if "_p" in stats:
        open_ones[stats["_p"]] = operation
      else:
        yield operation
    yield from open_ones.values()


def divide_time(
  ran: Iterable[Operation],
  waits: Iterable[tuple[float, float]],
  begin: float,
  end: float,
) -> dict[tuple[str, str], float]:
  """Divides the time from begin to end among the operations.

  A moment is shared equally by the operations that run then; if there are none,
  by those whose work other threads or a queue still hold. Otherwise it counts
  as INPUT while the host waits for a batch, or as IDLE.

  Args:
    waits: (begin, end) of each wait for a batch, in ns.
    begin, end: in ns.

  Returns:
    (component, name) -> ns; these sum to end - begin.
  """
  running, left, waiting = range(3)
  changes = [(end, waiting, (IDLE, ""), 0)]
  for x in ran:
    spans = [(running, x.begin, x.end), (left, x.end, max(x.end, x.over))]
    for state, start, stop in spans:
      changes.append((start, state, (x.component, x.name), 1))
      changes.append((stop, state, (x.component, x.name), -1))
  for start, stop in waits:
    changes.append((start, waiting, (INPUT, ""), 1))
    changes.append((stop, waiting, (INPUT, ""), -1))
  spent: dict[tuple[str, str], float] = collections.defaultdict(float)
  active: list[collections.Counter] = [collections.Counter() for _ in range(3)]
  last = begin
  for now, state, key, change in sorted(changes):
    now = min(max(now, begin), end)
    if now > last:
      sharing = next((counts for counts in active if counts), {(IDLE, ""): 1})
      for name, number in sharing.items():
        spent[name] += (now - last) * number / sum(sharing.values())
      last = now
    active[state][key] += change
    if not active[state][key]:
      del active[state][key]
  return spent


def format_table(profile: Profile, count: int) -> str:
  """Returns the profile as a text table."""
  lines = [
    f"a step takes {profile.total:,.2f} ms (of {count} traced)",
    "",
    f"{'component':<24}{'ms':>10}{'share':>9}",
  ]
  for component, ms in profile.components.items():
    lines.append(f"{component:<24}{ms:>10,.2f}{ms / profile.total:>9.1%}")
  lines += ["", "the longest operations, ms per step:"]
  for ms, component, name, scopes in profile.longest:
    lines.append(f"{ms:>10,.2f}  {name} ({component}) {_short(scopes)}")
  return "\n".join(line.rstrip() for line in lines) + "\n"


def _short(scopes: str) -> str:
  """Returns the end of a path of scopes, without those that jax inserts."""
  steps = re.sub(r"(jit\(step\)|while/body|closed_call)/", "", scopes)
  return "/".join(steps.split("/")[-4:])
