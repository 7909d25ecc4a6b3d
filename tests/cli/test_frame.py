"""The frame of verbs: flags are obeyed or refused; old names work."""

import dataclasses
import pathlib
import re
import subprocess

import pytest

from helpers.repository import ROOT
from maskedlm.cli import completion, flags, frame, groups, main, verbs
from maskedlm.cli.flags import REQUIRED, argument, flag
from maskedlm.core.errors import ConfigError

# A new verb or flag is a decision: it costs everybody who reads --help.
NUM_VERBS, NUM_FLAGS = 21, 109


@dataclasses.dataclass(frozen=True)
class Group:
  layers: str = flag("last", "Which.", old=("--layer",))


@dataclasses.dataclass(frozen=True)
class Toy:
  """A verb."""

  ONE_OF = ("input", "text")

  group: Group
  input: tuple[str, ...] = flag((), "Files.", reads=True)
  unit: str = flag("word", "Of what.", choices=("word", "token"))
  pool: str = flag("", "How.", needs={"unit": ("word",)})
  wic: str | None = flag(None, "Pairs.")
  dev: str | None = flag(None, "Others.", needs="wic")
  top_k: int = flag(5, "How many.", low=1)
  share: float = flag(0.0, "Of all.", low=0, below=1)
  json: bool = flag(False, "Print JSON.")
  out: str | None = flag(None, "Written.", writes=(".npz",))
  keys: str | None = flag(None, "Written, too.", writes=flags.ANY)
  data: tuple[str, ...] = flag((), "Labelled.", nargs=1)
  beam: tuple[str, ...] = flag((), "Others' flags.", prefix="--beam.")
  from_: str = flag(REQUIRED, "What.")
  text: tuple[str, ...] = argument((), "Texts.", not_beside=("unit",))

  def check(self):
    if self.text == ("x",):
      raise ConfigError("x is refused.")


def parse(*argv):
  return frame.parse(Toy, "toy", ["--from=a", *argv])


def test_values():
  made = parse()
  assert (made.group.layers, made.top_k, made.from_) == ("last", 5, "a")
  assert (made.input, made.json, made.text) == ((), False, ())
  made = parse("--layer", "-1,-2", "--json", "a", "b", "--beam.x=1")
  assert (made.group.layers, made.text) == ("-1,-2", ("a", "b"))
  assert made.json and made.beam == ("--beam.x=1",)
  assert parse("--top-k", "3").top_k == 3
  assert parse("--", "--top-k").text == ("--top-k",)
  made = parse("--data", "a,b", "x y", "--data=c")
  assert (made.data, made.text) == (("a,b", "c"), ("x y",))


def test_files_of_a_flag_that_is_given_twice_are_all_read(tmp_path):
  paths = [tmp_path / name for name in "abc"]
  for path in paths:
    path.touch()
  a, b, c = map(str, paths)
  assert parse("--input", a, b, "--input", c).input == (a, b, c)


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    ("--input a b", "--input=a: no such file"),
    ("--input {tmp}", "is a folder; give its files"),
    ("--input {file} --pool=x y", "give one of --input and texts"),
    ("--unit=wrd", "--unit='wrd' is unknown (did you mean \"word\"?)"),
    ("--unit=token --pool=x", "--pool=x has no effect with --unit=token"),
    ("--dev=x", "--dev=x has no effect without --wic"),
    ("--top_k=0", "--top_k=0: expected 1 or more."),
    ("--share=1", "--share=1.0: expected 0 or more, below 1"),
    ("--unit=word y", "TEXT has no effect beside --unit"),
    ("x", "x is refused"),
    ("--json a.json", "--json takes no value; to write JSON to a file, give"),
    ("--out=a.txt", "--out=a.txt: the name ends in '.txt'; expected .npz"),
    ("--out=none/a.npz", "there is no folder none"),
    ("--out={file} --input {file}", "--out={file} is an input, too"),
    ("--out=a.npz --keys=a.npz", "--out and --keys are both a.npz"),
    ("--topk=3", 'unknown argument --topk=3 (did you mean "--top_k"?)'),
  ],
)
def test_refused(argv, message, tmp_path):
  file = tmp_path / "a.npz"
  file.touch()
  names = {"tmp": tmp_path, "file": file}
  words = argv.format(**names).split()
  # Of a verb without arguments that have no name.
  cls = Toy
  if "json" in argv or "topk" in argv:
    fields = [f for f in dataclasses.fields(Toy) if f.name != "text"]
    cls = dataclasses.make_dataclass(
      "Named", [(f.name, Toy.__annotations__[f.name], f) for f in fields]
    )
  with pytest.raises(ConfigError) as error:
    frame.parse(cls, "toy", ["--from=a", *words])
  assert message.format(**names) in str(error.value)


def test_each_verb_has_a_help_and_documented_flags():
  for called in verbs.each():
    cls = verbs.load(called)
    text = frame.make_parser(cls, called).format_help()
    assert f"maskedlm {called}" in text.partition("\n")[0]
    for one in flags.flags_of(cls):
      assert one.about["doc"].endswith((".", ":.", "...")), (called, one.name)
      assert not one.about["choices"] or one.default in (
        *(REQUIRED, ""),
        *one.about["choices"],
      )


def test_what_help_says_of_a_flag():
  docs = {each.name: each.doc for each in flags.flags_of(Toy)}
  assert docs["unit"] == "Of what. Values: word | token. Default: word."
  assert docs["pool"] == "How. Only with --unit=word."
  assert docs["dev"] == "Others. Only with --wic."
  assert docs["top_k"] == "How many. Values: 1 or more. Default: 5."
  assert docs["share"] == "Of all. Values: 0 or more, below 1. Default: 0.0."
  assert docs["json"] == "Print JSON." and docs["from_"] == "What. Required."


def test_the_number_of_verbs_and_flags():
  assert len(verbs.VERBS) == NUM_VERBS
  pages = set((ROOT / "maskedlm/cli").glob("*.py"))
  pages -= {pathlib.Path(module.__file__) for module in (flags, frame)}
  declared = re.compile(r"\b(flag|argument|config_flag)\(")
  found = [declared.findall(page.read_text()) for page in pages]
  assert sum(map(len, found)) == NUM_FLAGS


@pytest.mark.parametrize(
  ("old", "new"),
  [
    ("runs run", "status --checkpoints run"),
    ("search --checkpoint=x", "vectors search --checkpoint=x"),
    ("similarity --layers -1", "vectors similarity --layers -1"),
    ("transfer --data=en:a", "evaluate --data=en:a"),
    ("retokenize --out=x", "tokenizer replace --out=x"),
    ("wsd train --out=x", "word-senses train --out=x"),
    ("tokenizer --try=x a", "tokenizer show --try=x a"),
    ("tokenizer --config=x --out=y", "tokenizer train --config=x --out=y"),
    ("tokenizer report --png=x", "tokenizer report --png=x"),
  ],
)
def test_old_spellings(old, new):
  called, rest = verbs.find(old.split())
  assert f"{called} {' '.join(rest)}" == new and verbs.load(called)


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    ("emebd", "unknown verb 'emebd' (did you mean \"embed\"?)"),
    ("plot atention", "unknown verb 'atention' (did you mean \"attention\"?)"),
  ],
)
def test_an_unknown_verb(argv, message, capsys):
  assert main.main(argv.split()) == 2
  assert message in capsys.readouterr().err


def test_completion(tmp_path):
  script = tmp_path / "complete.sh"
  script.write_text(completion.script("bash"))

  def complete(*words):
    listed = " ".join(words[:-1]) + f" '{words[-1]}'"
    code = (
      f"source {script}; COMP_WORDS=(maskedlm {listed}); "
      f"COMP_CWORD={len(words)}; _maskedlm; echo ${{COMPREPLY[*]}}"
    )
    made = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
    assert not made.stderr
    return made.stdout.split()

  assert complete("pl") == ["plan", "plot"]
  assert complete("plot", "i") == ["instances", "isotropy"]
  assert complete("embed", "--uni") == ["--unit"]
  assert complete("embed", "--unit", "w") == ["word"]
  assert complete("embed", "--unit", "=", "s") == ["sentence"]
  assert complete("vectors", "search", "--v") == ["--vectors"]
  assert complete("embed", "--checkpoint", "ru") == []
  assert completion.script("zsh").startswith("autoload")
  with pytest.raises(ConfigError, match="'fish' is unknown"):
    completion.script("fish")


@pytest.mark.parametrize(
  ("combine", "layers", "default", "named"),
  [
    ("concat", "last", "mean", True),
    ("sum", "-2", "mean", True),
    ("sum", "", "sum", False),
    ("mean", "last", "mean", False),
    ("concat", "-1,-2", "mean", False),
  ],
)
def test_one_layer_is_not_combined(combine, layers, default, named, capsys):
  groups.check_layers(layers, combine, default=default)
  assert (f"--combine={combine} has no effect" in capsys.readouterr().err) == (
    named
  )


@pytest.mark.parametrize(
  ("file", "form"), [("x.jsonl", ""), ("x.jsonl.gz", ""), ("x", "jsonl")]
)
def test_field_is_for_json_lines(file, form):
  groups.check_field("body", ["a.txt", file], form)
