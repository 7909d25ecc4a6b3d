"""`maskedlm evaluate` of several languages: XNLI, the table, the verb."""

import functools
import json

import pytest

from helpers import untrained
from maskedlm.cli import by_language, main
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune.classification import classification

# The columns of xnli.dev.tsv and xnli.test.tsv.
HEADER = (
  "language gold_label sentence1_binary_parse sentence2_binary_parse "
  "sentence1_parse sentence2_parse sentence1 sentence2 promptID pairID genre "
  "label1 label2 label3 label4 label5 sentence1_tokenized sentence2_tokenized "
  "match"
)
XNLI = [
  ("en", "neutral", 'And he said, "Mama, I\'m home."', "He called his mom."),
  ("en", "contradiction", "It is red.", "It is blue."),
  ("vi", "neutral", "Và anh ấy nói, Mẹ ơi.", "Anh gọi cho mẹ."),
  ("vi", "entailment", "Nó màu đỏ.", "Nó có màu."),
  ("vi", "contradiction", "Nó màu đỏ.", "Nó màu xanh."),
]
POS = {
  "en": "the\tDET\ncat\tNOUN\nsat\tVERB\n\na\tDET\ndog\tNOUN\n",
  "vi": "con\tNOUN\nmèo\tNOUN\nngồi\tVERB\n",
}


@pytest.fixture
def xnli(tmp_path):
  columns = HEADER.split()
  lines = ["\t".join(columns)]
  for language, label, a, b in XNLI:
    row = dict.fromkeys(columns, "") | {"language": language}
    row |= {"gold_label": label, "sentence1": a, "sentence2": b}
    lines.append("\t".join(row.values()))
  path = tmp_path / "xnli.test.tsv"
  path.write_text("\n".join(lines) + "\n", encoding="utf-8")
  return str(path)


def test_xnli_by_language(xnli):
  options_of = functools.partial(classification.Options, layout="mnli")
  found = classification.make_task(options_of(language="vi")).read_examples(
    xnli
  )
  assert [(e.label, e.text, e.text_b) for e in found] == [
    (label, a, b) for language, label, a, b in XNLI if language == "vi"
  ]
  assert found[0].where == f"{xnli}:4"
  everything = classification.make_task(options_of(language="")).read_examples(
    xnli
  )
  assert len(everything) == 5 and everything[0].text == XNLI[0][2]
  with pytest.raises(DataError, match=r"language 'fr'; known: en, vi\."):
    classification.make_task(options_of(language="fr")).read_examples(xnli)


def test_xnlis_translated_training_set(tmp_path, capsys):
  # It has no language column, and spells a label in its own way.
  path = tmp_path / "multinli.train.vi.tsv"
  path.write_text("premise\thypo\tlabel\nNó đỏ.\tNó xanh.\tcontradictory\n")
  options = classification.Options(layout="mnli", language="vi")
  (example,) = classification.make_task(options).read_examples(str(path))
  assert example[:3] == ("Nó đỏ.", "Nó xanh.", "contradiction")
  assert "no column 'language'; all rows are taken as 'vi'" in (
    capsys.readouterr().err
  )


@pytest.mark.parametrize(
  ("data", "expected"),
  [
    ("en:a.tsv,vi:b:c.tsv", {"en": "a.tsv", "vi": "b:c.tsv"}),
    ("en:a,vi", "ends without a file"),
    ("a/b.tsv", {}),
    ("en:a,a/b.tsv", "expected a language's code"),
    ("en:a,en:b", "'en' is there twice"),
  ],
)
def test_parse_files(data, expected):
  if isinstance(expected, dict):
    assert by_language.parse_files(data) == expected
    return
  with pytest.raises(ConfigError, match=expected):
    by_language.parse_files(data)


def test_scores_by_hand():
  scores = {
    "en": {"file": "a", "examples": 1200, "accuracy": 0.9, "macro_f1": 0.875},
    "vi": {"file": "b", "examples": 800, "accuracy": 0.5, "macro_f1": 0.25},
    "mr": {"file": "c", "examples": 47, "accuracy": 0.25, "macro_f1": 0.125},
  }
  result = by_language.compare_scores(scores, "en", "accuracy")
  assert result["languages"]["vi"]["difference"] == pytest.approx(-0.4)
  assert result["average"] == 0.375
  assert [line.split() for line in by_language.format_scores(result)] == [
    ["examples", "accuracy", "from", "en", "macro_f1"],
    ["en", "1,200", "0.9000", "0.8750"],
    ["vi", "800", "0.5000", "-0.4000", "0.2500"],
    ["mr", "47", "0.2500", "-0.6500", "0.1250"],
    ["others", "0.3750", "-0.5250"],
  ]
  alone = by_language.compare_scores({"en": scores["en"]}, "en", "accuracy")
  assert alone["average"] is None and len(by_language.format_scores(alone)) == 2


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
  """Returns an untrained workdir, and files of two languages."""
  folder = tmp_path_factory.mktemp("transfer")
  files = {}
  for name, text in POS.items():
    files[name] = folder / f"{name}.conll"
    files[name].write_text(text, encoding="utf-8")
  about = {"labels": ["DET", "NOUN", "VERB"]}
  untrained.save_tuned(folder / "run", "tagging", {"task": "pos"}, about)
  return folder / "run", files


def test_the_verb(tagger, capsys):
  workdir, files = tagger
  data = ",".join(f"{name}={file}" for name, file in files.items())
  argv = ["evaluate", "--checkpoint", str(workdir), "--data", data]
  assert main.main([*argv, "--json"]) == 0
  result = json.loads(capsys.readouterr().out)
  assert result["metric"] == "accuracy" and result["source"] == "en"
  for name, file in files.items():
    one = ["evaluate", "--checkpoint", str(workdir), "--data", str(file)]
    assert main.main([*one, "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert evaluated.items() <= result["languages"][name].items()
  english, vietnamese = (result["languages"][name] for name in ("en", "vi"))
  assert vietnamese["examples"] == 1 and english["examples"] == 2
  assert vietnamese["difference"] == pytest.approx(
    vietnamese["accuracy"] - english["accuracy"]
  )
  assert main.main(argv) == 0
  head, *rows = capsys.readouterr().out.splitlines()
  assert head.split() == ["examples", "accuracy", "from", "en"]
  assert [row.split()[0] for row in rows] == ["en", "vi", "others"]


def test_errors_are_one_line(tagger, capsys):
  workdir, files = tagger
  argv = ["transfer", "--checkpoint", str(workdir), "--data"]
  assert main.main([*argv, f"en:{files['en']}", "--source=vi"]) == 2
  assert "--source='vi' is unknown; known: en" in capsys.readouterr().err
  assert main.main([*argv, f"en={files['en']}x"]) == 2
  assert capsys.readouterr().err.count("\n") == 1
  english = f"en={files['en']}"
  for more, message in (
    ("--config.task.language=fr", "--data names the language of each file"),
    ("--out=x.jsonl", "--out=x.jsonl is for one file"),
  ):
    assert main.main([*argv, english, more]) == 2
    assert message in capsys.readouterr().err
  assert main.main([*argv, str(files["en"]), "--source=en"]) == 2
  assert "--source=en has no effect without" in capsys.readouterr().err
