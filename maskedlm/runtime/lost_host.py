"""Ends a host in one line where JAX would abort it, as another one is lost.

JAX's coordination service hears of that in a thread of C++, which prints a page
of frames and aborts the process. So what C++ prints passes through a pipe, from
which that page is left out, and SIGABRT has a handler.
"""

import ctypes
import io
import os
import re
import signal
import sys
import threading

# What JAX prints first, in any of its threads.
_LOST = re.compile(rb"coordination_?.?service|another task died")
_kept: list = []  # A handler must live as long as the process.


def watch(message: str, code: int) -> None:
  """Makes the abort of a lost host print a message, and end with a code.

  Only a process that is the command may call it, once: it gets another stderr.
  """
  shown, lost = os.dup(2), threading.Event()
  read, write = os.pipe()
  os.dup2(write, 2)
  os.close(write)
  sys.stderr = io.TextIOWrapper(
    io.FileIO(shown, "w"),
    encoding=sys.stderr.encoding,
    errors="backslashreplace",
    write_through=True,
  )

  def pass_on() -> None:
    with open(read, "rb") as lines:
      for line in lines:
        if _LOST.search(line):
          lost.set()
        if not lost.is_set():
          os.write(shown, line)

  libc = ctypes.CDLL(None)

  def aborted(number: int) -> None:
    if lost.wait(1):  # The thread below reads the page meanwhile.
      os.write(shown, f"{message}\n".encode())
      os._exit(code)
    libc.signal(number, None)  # Another abort goes on.

  threading.Thread(target=pass_on, daemon=True).start()
  _kept.append(ctypes.CFUNCTYPE(None, ctypes.c_int)(aborted))
  libc.signal(signal.SIGABRT, _kept[0])
