"""On a terminal, the next line of output replaces the progress line."""

import contextlib
import fcntl
import functools
import os
import pty
import select
import struct
import termios

from maskedlm.cli import main
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console


def _read(terminal):
  """Returns what comes within 0.2 s: two writes may arrive one by one."""
  text = b""
  while select.select([terminal], [], [], 0.2)[0]:
    text += os.read(terminal, 1000)
  return text.decode()


@contextlib.contextmanager
def screen():
  """Yields a function that returns what a 20-column terminal received."""
  ours, theirs = pty.openpty()
  fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 20, 0, 0))
  with open(theirs, "w") as stderr, contextlib.redirect_stderr(stderr):
    yield functools.partial(_read, ours)
  os.close(ours)


CLEAR = "\r\033[K"


def test_a_line_that_would_wrap_is_cut():
  with screen() as sent:
    console.progress("step 100/900 | loss 7.967")
    assert sent() == CLEAR + "step 100/900 | loss"
    console.log("step 100 held out | loss 6")  # A log line is printed in full.
    assert sent() == CLEAR + "step 100 held out | loss 6\r\n"


def test_an_error_replaces_the_progress_line():
  def verb(argv):
    console.progress("step 1")
    raise ConfigError("no")

  with screen() as sent:
    assert main.run(verb, []) == 2
    assert sent() == CLEAR + "step 1" + CLEAR + "error: no\r\n"


def test_without_a_terminal_lines_are_complete(capsys):
  console.progress("step 100/900 | loss 7.967")
  console.clear_progress()
  assert capsys.readouterr().err == "step 100/900 | loss 7.967\n"


def test_a_table_is_as_wide_as_its_cells():
  columns, rows = (
    ("name", "n", "note"),
    [("a", 1_000, "x"), ("long name", None, "")],
  )
  assert console.table(columns, rows, align="<><") == [
    "name          n  note",
    "a          1000  x",
    "long name     -",
  ]
  assert console.markdown_table(columns[:2], [("a", 1)]) == [
    "| name | n |",
    "| --- | ---: |",
    "| a | 1 |",
  ]
