"""Maps a function over worker processes, in order and in bounded memory."""

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

_function = None  # In a worker: the result of `make_function`.


def num_workers(options) -> int:
  """Returns config.corpus.num_workers, or the number of usable cores."""
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
  2 * num_workers items are in progress, so memory does not grow with the items.
  With num_workers=1, everything runs in this process.

  Raises:
    CorpusError: a worker died.
  """
  if num_workers == 1:
    yield from map(make_function(*args), items)
    return
  pool = ProcessPoolExecutor(
    num_workers,
    # Not fork: threads of this process, such as jax's, would not survive it.
    mp_context=multiprocessing.get_context("spawn"),
    initializer=_start,
    initargs=(make_function, args),
  )
  window: collections.deque = collections.deque()
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
      f"one of {num_workers} worker processes died. Its error is above; if"
      " there is none, the system killed it, perhaps for lack of memory: set a"
      " smaller corpus.num_workers."
    ) from error
  finally:
    pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _without_main():
  """Keeps processes spawned in this context from importing the main module.

  The spawn method does so by default, which would load jax into every worker,
  and run a user's script again if it has no `if __name__` guard.
  """
  main = sys.modules["__main__"]
  sys.modules["__main__"] = types.ModuleType("__main__")
  try:
    yield
  finally:
    sys.modules["__main__"] = main


def _start(make_function, args):
  global _function
  # Ctrl-C reaches every process of the terminal; the parent stops the pool.
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  threading.Thread(target=_exit_with_parent, daemon=True).start()
  _function = make_function(*args)


def _exit_with_parent():
  """Exits when the parent does: a killed parent can't stop its workers."""
  multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
  os._exit(1)


def _call(item):
  return _function(item)
