"""Flags of fine-tuning that have no effect are named."""

from maskedlm.cli import main


def test_a_finetuning_run_that_is_there_is_not_refused(tmp_path, capsys):
  argv = [
    *("finetune", "--config=configs/ner.py", f"--workdir={tmp_path}"),
    "--config.init_from=nowhere",
    *("--config.task.task=pos", "--config.task.scheme=bioes"),
  ]
  assert main.main(argv) == 2
  error = capsys.readouterr().err
  assert "task.scheme='bioes' has no effect with task.task='pos'" in error
  assert "nowhere: no such folder" in error  # It went on.
