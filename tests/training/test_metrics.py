"""The files of metrics, and the progress line."""

import errno
import os
import types

import jax
import pytest

from helpers.toy_runs import board_events
from maskedlm.training import metrics

CONFIG = {"name": "toy", "train": {"num_steps": 10, "tracker": ""}}


def test_a_full_disk_loses_no_line_of_the_log(tmp_path, monkeypatch):
  path = tmp_path / "metrics.jsonl"
  text = '{"step": 1}\n\0\n{"step": 2}\n{"ste'  # Not its beginning is kept.
  path.write_text(text)

  def full(descriptor):
    raise OSError(errno.ENOSPC, "No space left on device")

  with monkeypatch.context() as patch:
    patch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
      metrics.open_logbook(tmp_path, 5, CONFIG, lambda step: 0)
  assert path.read_text() == text
  metrics.open_logbook(tmp_path, 5, CONFIG, lambda step: 0).close()
  assert path.read_text() == '{"step": 1}\n{"step": 2}\n'


@pytest.mark.parametrize(
  ("text", "start", "lost"),
  [
    ('{"step": 3}\n{"step": 6}\n{"step": 9}\n', 7, ""),
    ('{"step": 3}\n{"step": 6}\n{"st', 7, ""),  # Killed.
    ('{"step": 3}\n', 7, "no line of steps 4 to 7 is there"),  # Cut short.
    ('{"step": 3}\n\0\0\n{"step": 6}\n', 7, "1 damaged line removed"),
    ("", 7, "no line of steps 1 to 7 is there"),
    (None, 7, "no line of steps 1 to 7 is there"),
    (None, 0, ""),
  ],
)
def test_lost_lines_are_reported(tmp_path, capsys, text, start, lost):
  path = tmp_path / "metrics.jsonl"
  if text is not None:
    path.write_text(text)
  metrics.open_logbook(tmp_path, start, CONFIG, lambda step: 0).close()
  said = capsys.readouterr().err
  assert f"{path}: {lost}" in said if lost else not said


def test_a_kill_loses_no_event(tmp_path):
  """Events are in the file at once, in TensorBoard's format."""
  book = metrics.open_logbook(tmp_path, 0, CONFIG, lambda step: 0)
  for step in (1, 2):
    book.heldout(step, {"loss": step / 2})
    found = [x for x in board_events(tmp_path) if x.HasField("summary")]
    assert [(x.step, x.summary.value[0].simple_value) for x in found] == [
      (s, s / 2) for s in range(1, step + 1)
    ]
  book.close()
  from tensorboardX import record_writer  # Imported above, without PyTorch.

  (file,) = (tmp_path / "tensorboard").iterdir()
  whole = tmp_path / "theirs"
  theirs = record_writer.RecordWriter(str(whole))
  for event in board_events(tmp_path):
    theirs.write(event.SerializeToString())
  theirs.close()
  assert file.read_bytes() == whole.read_bytes()


def test_a_full_disk_does_not_block_the_run(tmp_path, monkeypatch):
  book = metrics.open_logbook(tmp_path, 5, CONFIG, lambda step: 0)
  book.heldout(6, {"loss": 1.0})
  book.close()
  *_, restart, event = board_events(tmp_path)
  assert restart.session_log.status == restart.session_log.START
  assert (restart.step, event.step) == (6, 6)  # Events after 5 are purged.
  folder = tmp_path / "tensorboard"
  folder.rename(tmp_path / "before")
  folder.mkdir()
  monkeypatch.setattr(metrics.time, "time", lambda: 7.0)
  monkeypatch.setattr(metrics.socket, "gethostname", lambda: "h")
  (folder / "events.out.tfevents.7.h").symlink_to("/dev/full")
  book = metrics.open_logbook(tmp_path, 5, CONFIG, lambda step: 0)
  with pytest.raises(OSError, match="No space left"):
    book.heldout(6, {"loss": 1.0})


@pytest.mark.parametrize(
  ("kind", "peak"),
  [
    ("NVIDIA H100 80GB HBM3", 2 * 989e12),
    ("NVIDIA H100 PCIe", 2 * 756e12),
    ("TPU v5 lite", 2 * 197e12),
    ("cpu", None),
  ],
)
def test_the_peak_is_that_of_the_present_devices(monkeypatch, kind, peak):
  device = types.SimpleNamespace(device_kind=kind)
  monkeypatch.setattr(jax, "devices", lambda: [device] * 2)
  monkeypatch.setattr(jax, "device_count", lambda: 2)
  assert metrics.peak_flops() == peak


def test_a_single_term_is_not_repeated():
  shown = metrics.format_values
  one = {"loss": 7.312, "mlm_loss": 7.31, "mlm_accuracy": 0.121}
  assert shown(one) == "loss 7.312 | mlm_accuracy 12.1%"
  two = {"loss": 7.5, "mlm_loss": 7.0, "nsp_loss": 0.5}
  assert shown(two) == "loss 7.500 | mlm_loss 7.000 | nsp_loss 0.500"
  more = {"loss": 7.5, "mlm_loss": 7.0}  # The loss has an unnamed penalty too.
  assert shown(more) == "loss 7.500 | mlm_loss 7.000"


def test_a_small_loss_is_not_shown_as_zero():
  values = {"loss": 0.000413, "f1": 0.004}
  assert metrics.format_values(values) == "loss 4.13e-04 | f1 0.004"


def test_a_loss_of_no_predictions_is_not_shown():
  shown = metrics.format_values
  assert shown({"accuracy": 0.5}) == "no predictions | accuracy 50.0%"
  assert shown({"learning_rate": 0.5, "skipped": 0.0}) == (
    "no predictions | lr 5.00e-01"
  )
  assert shown({"skipped": 1.0}) == ""  # Its line says why there is no loss.


def test_a_log_is_not_replaced_under_a_writer(tmp_path):
  """As of another run, where the file system has no locks."""
  path = tmp_path / "metrics.jsonl"
  path.write_text('{"step": 1}\n{"step": 9}\n')
  with path.open("a") as writer:
    metrics.open_logbook(tmp_path, 5, CONFIG, lambda step: 0).close()
    assert path.read_text() == '{"step": 1}\n'
    writer.write('{"step": 6}\n')
  assert path.read_text() == '{"step": 1}\n{"step": 6}\n'
