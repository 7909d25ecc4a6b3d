"""Flags of fine-tuning that have no effect are named."""

from maskedlm.cli import main


def test_a_finetuning_run_that_is_there_is_not_refused(tmp_path, capsys):
  argv = [
    *("finetune", "--config=configs/ner.py", f"--workdir={tmp_path}"),
    "--config.init_from=nowhere",
    *("--config.task.crf=True", "--config.task.tag_all_subwords=False"),
  ]
  assert main.main(argv) == 2
  error = capsys.readouterr().err
  assert "task.tag_all_subwords=False has no effect beside" in error
  assert "nowhere: no such folder" in error  # It went on.


def test_what_a_sweep_sets_is_named(tmp_path, capsys):
  main.main(
    [
      *("finetune", "--config=configs/ner.py", f"--workdir={tmp_path}"),
      *("--config.init_from=nowhere", "--config.sweep.learning_rate=(1e-5,)"),
      *("--config.optimizer.learning_rate=1e-4", "--config.train.epochs=2.0"),
      *("--config.train.num_steps=3", "--config.optimizer.warmup_steps=0"),
    ]
  )
  error = capsys.readouterr().err
  for name, other in (
    ("optimizer.learning_rate", "sweep.learning_rate=(1e-05,)"),
    ("train.epochs", "train.num_steps=3"),
    ("optimizer.warmup_steps", "train.warmup_share=0.1"),
  ):
    assert f"--config.{name} has no effect with {other}" in error
