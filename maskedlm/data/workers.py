"""A map over worker processes that keeps order and holds little in memory.

Used by `prepare`. Nothing here knows what is being worked on.
"""

import collections
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from maskedlm.core.errors import CorpusError

_function = None  # In a worker: what `make_function` returned there.


def num_workers(options) -> int:
  """How many processes: config.corpus.num_workers, or one for each core.

  Cores are those that this process may use.
  """
  if options.num_workers:
    return options.num_workers
  if hasattr(os, "sched_getaffinity"):  # Not on macOS.
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def ordered_map(
  make_function: Callable[..., Callable],
  args: tuple,
  items: Iterable,
  *,
  num_workers: int,
) -> Iterator:
  """Yields make_function(*args)(item) for each item, in the items' order.

  make_function, a top-level function, is called once in each process. At most
  2 * num_workers items are under way, so memory does not grow with the items.
  One worker is this very process. Raises CorpusError where a worker dies.
  """
  if num_workers == 1:
    yield from map(make_function(*args), items)
    return
  pool = ProcessPoolExecutor(
    num_workers,
    # Not fork: threads of this process (jax's, say) would not survive it.
    mp_context=multiprocessing.get_context("spawn"),
    initializer=_start,
    initargs=(make_function, args),
  )
  window = collections.deque()
  try:
    for item in items:
      with _without_main():
        window.append(pool.submit(_call, item))
      if len(window) >= 2 * num_workers:
        yield window.popleft().result()
    while window:
      yield window.popleft().result()
  except BrokenProcessPool as error:
    raise CorpusError(
      f"one of {num_workers} worker processes ended early. Its error stands"
      " above; if there is none, the system killed it, for lack of memory"
      " perhaps: set a smaller corpus.num_workers."
    ) from error
  finally:
    pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _without_main():
  """A process spawned meanwhile does not import this program's main module.

  Which is what the spawn method does by default: it would load jax into every
  worker, and run a user's script again that has no `if __name__` guard.
  """
  main = sys.modules["__main__"]
  sys.modules["__main__"] = types.ModuleType("__main__")
  try:
    yield
  finally:
    sys.modules["__main__"] = main


def _start(make_function, args):
  global _function
  # Ctrl-C reaches every process of the terminal; the parent ends the pool.
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  threading.Thread(target=_exit_with_parent, daemon=True).start()
  _function = make_function(*args)


def _exit_with_parent():
  """A killed parent can't end its workers, which would wait for ever."""
  multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
  os._exit(1)


def _call(item):
  return _function(item)
