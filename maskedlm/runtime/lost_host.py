"""Ends a host in one line where JAX would abort it, as another one is lost.

JAX's coordination service hears of that in a thread of C++, which prints a page
of frames and aborts the process. So what C++ prints passes through a pipe, from
which that page is left out, and SIGABRT has a handler. Gloo's line for each
connection is left out, too.
"""

import ctypes
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable

# What JAX prints first, in any of its threads.
_LOST = re.compile(rb"coordination_?.?service|another task died")
_handlers: list = []  # A handler must live as long as the process.


def watch(message: str, code: int) -> None:
  """Makes the abort of a lost host print a message, and end with a code.

  Only a process that is the command may call it, once: it gets other streams.
  """
  lost = threading.Event()

  def is_page(line: bytes) -> bool:
    if _LOST.search(line):
      lost.set()
    return lost.is_set()

  shown = _leave_out("stderr", is_page)
  _leave_out("stdout", lambda line: line.startswith(b"[Gloo] Rank "))
  libc = ctypes.CDLL(None)

  def aborted(number: int) -> None:
    if lost.wait(1):  # The pipe's thread reads the page meanwhile.
      os.write(shown, f"{message}\n".encode())
      os._exit(code)
    libc.signal(number, None)  # Another abort goes on.

  _handlers.append(ctypes.CFUNCTYPE(None, ctypes.c_int)(aborted))
  libc.signal(signal.SIGABRT, _handlers[0])


def _leave_out(name: str, is_left_out: Callable[[bytes], bool]) -> int:
  """Filters the lines that C++ prints; Python's go to the fd it returns."""
  stream = getattr(sys, name)
  shown = os.dup(stream.fileno())
  read, write = os.pipe()
  os.dup2(write, stream.fileno())
  os.close(write)
  direct = io.TextIOWrapper(
    io.BufferedWriter(io.FileIO(shown, "w")),
    encoding=stream.encoding,
    errors="backslashreplace",
    line_buffering=True,
  )
  setattr(sys, name, direct)

  def pass_on() -> None:
    with open(read, "rb") as lines:
      for line in lines:
        if not is_left_out(line):
          os.write(shown, line)

  threading.Thread(target=pass_on, daemon=True).start()
  return shown
