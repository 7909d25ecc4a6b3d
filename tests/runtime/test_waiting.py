"""Long waits are explained, short ones are not."""

import time

import pytest

from maskedlm.runtime import waiting


def test_a_short_wait_is_silent(capsys):
  with waiting.explained("compiling the step"):
    pass
  assert not capsys.readouterr().err


def test_a_long_wait_is_explained_while_it_lasts(capsys, monkeypatch):
  monkeypatch.setattr(waiting, "QUIET", 0.05)
  seen = ""
  with waiting.explained("compiling the step"):
    end = time.monotonic() + 20
    while "step ..." not in seen and time.monotonic() < end:
      seen += capsys.readouterr().err
      time.sleep(0.01)
  assert seen == "compiling the step ...\n"
  assert capsys.readouterr().err.startswith("compiling the step took ")


def test_an_error_passes(capsys):
  with pytest.raises(KeyError), waiting.explained("compiling"):
    raise KeyError
  assert not capsys.readouterr().err


@pytest.mark.parametrize(
  ("every", "pace", "line"),
  [
    (100, 12.0, "a step takes 12.0 s; a line follows every 100 steps"),
    (1_000, 0.04, "a step takes 0.0 s; a line follows every 1,000 steps"),
    (100, 0.3, ""),
    (1, 60.0, ""),
  ],
)
def test_the_first_line_is_announced(monkeypatch, capsys, every, pace, line):
  now = [0.0]
  monkeypatch.setattr(waiting.time, "perf_counter", lambda: now[0])
  ended = waiting.announce_lines(every)
  # The first step may take longer than others.
  for seconds in (90.0, pace, pace, pace, 99 * pace):
    now[0] += seconds
    ended()
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == bool(line) and all(x.startswith(line) for x in lines)
