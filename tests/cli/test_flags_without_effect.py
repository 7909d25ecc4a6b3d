"""Flags that are given are obeyed or refused."""

import argparse
import pathlib

import pytest

from maskedlm.cli import main, options

CONFIG = "--config=configs/quickstart.py"


@pytest.mark.parametrize(
  ("command", "message"),
  [
    ("tokenizer --try=x --out=y text", "--out has no effect with --try"),
    (f"tokenizer {CONFIG} --out=y text", "the text 'text'"),
    ("prepare --verify=x --out=y", "--out has no effect"),
    ("prepare --verify=x --runner=beam", "--runner has no effect"),
    ("prepare --verify=x --beam.runner=y", "--beam.runner=y has no"),
    (f"tokenizer report {CONFIG} --parts=x", "--parts has no effect"),
    (f"tokenizer report {CONFIG} --text_field=x", "--text_field has no"),
    (
      "tokenizer report --tokenizer=x --parts=en:x.txt --text_field=body",
      "--text_field=body has no effect",
    ),
    (
      "transfer --checkpoint=x --data=en:x.tsv --config.task.language=fr",
      "--config.task.language=fr has no effect",
    ),
    (
      "isotropy --checkpoint=x --input=x.txt --field=body",
      "--field=body has no effect",
    ),
    (
      "plot instances --checkpoint=x --word=x --out=x.png --data=x.txt "
      "--field=body",
      "--field=body has no effect",
    ),
    (
      "word-senses predict --checkpoint=x --senses=x.npz --format=jsonl *text*",
      "--format is for --input",
    ),
    (
      "embed --checkpoint=x --input=x.txt --out=x.npz --pool=max",
      "--pool=max has no effect with --unit=token",
    ),
    (
      f"plan {CONFIG} --topology=h100:8 --phase=2",
      "--phase=2: the run has 1 phase",
    ),
    (f"inspect {CONFIG} --json --rows=2", "--rows=2 has no effect"),
    (
      "finetune --config=configs/ner.py --config.data.dev=x "
      "--config.data.dev_share=0.2",
      "data.dev_share=0.2 has no effect beside data.dev",
    ),
    (
      "finetune --config=configs/pos.py --config.task.tag_column=2 "
      "--config.task.conllu_tag=xpos",
      "task.conllu_tag='xpos' has no effect beside task.tag_column=2",
    ),
    *(
      (
        f"export --checkpoint=none --out=x --to={to} {flag}",
        f"{flag.partition('=')[0]} has no effect with --to={to}",
      )
      for to, flag in (
        ("stablehlo", "--architecture=bert"),
        ("onnx", "--platforms=cpu"),
        ("hf", "--platforms=cpu"),
        ("hf", "--int8"),
      )
    ),
  ],
)
def test_a_flag_without_effect_is_refused(
  command, message, capsys, tmp_path, monkeypatch
):
  (tmp_path / "configs").symlink_to(pathlib.Path("configs").absolute())
  (tmp_path / "x.txt").write_text("a text")
  monkeypatch.chdir(tmp_path)
  assert main.main(command.split()) == 2
  assert message in capsys.readouterr().err


def test_files_of_a_flag_that_is_given_twice_are_all_read():
  parser = argparse.ArgumentParser()
  options.add_input(parser)
  options.add_data(parser, "", required=False)
  args = parser.parse_args(["--input", "a", "b", "--input", "c"])
  assert (args.input, args.data) == (["a", "b", "c"], None)
  args = parser.parse_args(["--data=a,b", "--data", "c"])
  assert (args.input, args.data) == ([], "a,b,c")


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


@pytest.mark.parametrize(
  ("combine", "layers", "default", "named"),
  [
    ("concat", "last", "mean", True),
    ("sum", "-2", "mean", True),
    ("mean", "3", "sum", True),
    ("sum", "", "sum", False),
    ("concat", "", "sum", False),
    ("mean", "last", "mean", False),
    ("concat", "-1,-2", "mean", False),
    ("concat", "all", "mean", False),
  ],
)
def test_one_layer_is_not_combined(combine, layers, default, named, capsys):
  args = argparse.Namespace(combine=combine, layers=layers)
  options.check_combine(args, default=default)
  assert (f"--combine={combine} has no effect" in capsys.readouterr().err) == (
    named
  )


@pytest.mark.parametrize(
  ("file", "form"), [("x.jsonl", ""), ("x.jsonl.gz", ""), ("x", "jsonl")]
)
def test_field_is_for_json_lines(file, form):
  args = argparse.Namespace(field="body", format=form)
  options.check_field(args, ["a.txt", file])
