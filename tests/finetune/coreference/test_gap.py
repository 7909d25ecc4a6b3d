"""GAP: its format, offsets, and its official metric by hand."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.coreference import gap

TEXT = "Ann met Eve as she left."
ROW = {
  "ID": "d-1",
  "Text": TEXT,
  "Pronoun": "she",
  "Pronoun-offset": "15",
  "A": "Ann",
  "A-offset": "0",
  "A-coref": "TRUE",
  "B": "Eve",
  "B-offset": "8",
  "B-coref": "FALSE",
  "URL": "http://x/y",
}


def write(folder, *rows, without=()):
  columns = [name for name in ROW if name not in without]
  lines = [columns, *([row[name] for name in columns] for row in rows)]
  path = folder / "gap.tsv"
  path.write_text("".join("\t".join(line) + "\n" for line in lines), "utf-8")
  return str(path)


# --- The format ---


def test_read(tmp_path):
  other = {**ROW, "ID": "d-2", "A-coref": "false", "B-coref": "True"}
  neither = {**ROW, "ID": "d-3", "A-coref": "FALSE"}
  path = write(tmp_path, ROW, other, neither)
  examples = gap.read_examples(path)
  assert examples[0] == (
    TEXT,
    (15, 18),
    (0, 3),
    (8, 11),
    "A",
    "d-1",
    "http://x/y",
    f"{path}:2",
  )
  assert [e.answer for e in examples] == ["A", "B", "NEITHER"]
  assert [e.where.rpartition(":")[2] for e in examples] == ["2", "3", "4"]


def test_without_answers_and_page(tmp_path):
  path = write(tmp_path, ROW, without=("A-coref", "B-coref", "URL"))
  (example,) = gap.read_examples(path)
  assert example.answer is None and example.page == ""


def test_quotes_are_text(tmp_path):
  text = '"Ann" met Eve as she left.'
  moved = {"Text": text, "A-offset": "1", "B-offset": "10"}
  (example,) = gap.read_examples(
    write(tmp_path, {**ROW, **moved, "Pronoun-offset": "17"})
  )
  assert [text[slice(*m)] for m in example.mentions] == ["she", "Ann", "Eve"]


ODD = [
  ("\U0001f600 Zoe\u0308", "中文\u200b", "h\u00e9r"),
  ("Å", "A\u030a", "هُوَ"),
  ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\ufb01ne", "İ"),
]


@pytest.mark.parametrize("names", ODD)
def test_offsets_are_of_characters(tmp_path, names):
  """Read from a file, and from a line of predict's JSON."""
  a, b, pronoun = names
  text = f"\u00a0{a} — \U0001f1e9\U0001f1ea{b}, {pronoun}!"
  row = {**ROW, "Text": text}
  for key, name in (("A", a), ("B", b), ("Pronoun", pronoun)):
    row |= {key: name, f"{key}-offset": str(text.index(name))}
  (example,) = gap.read_examples(write(tmp_path, row))
  assert [text[slice(*m)] for m in example.mentions] == [pronoun, a, b]
  fields = {"text": text}
  for key, name in (("pronoun", pronoun), ("a", a), ("b", b)):
    fields |= {key: name, f"{key}_offset": text.index(name)}
  assert gap.parse_line(json.dumps(fields)).mentions == example.mentions
  assert (
    gap.parse_line(json.dumps(fields, ensure_ascii=False))[:4] == example[:4]
  )


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    (
      {"Pronoun-offset": "14"},
      "gap.tsv:3: Pronoun 'she' is not at its offset 14, where the text has "
      "' sh'; it is at 15. Offsets count characters",
    ),
    (
      {"A": "Sue"},
      "gap.tsv:3: A 'Sue' is not at its offset 0, where the text ",
    ),
    ({"A": "Sue"}, "has 'Ann'; the text doesn't contain it."),
    ({"B-offset": "99"}, "where the text has ''; it is at 8."),
    ({"B-offset": "-16"}, "gap.tsv:3: the offset '-16' of B is not a number"),
    ({"B-offset": "8.0"}, "gap.tsv:3: the offset '8.0' of B is not a number"),
    ({"B": " "}, "gap.tsv:3: the B is empty; expected a text"),
    ({"B-coref": "TRUE"}, "gap.tsv:3: A-coref and B-coref are both TRUE; exp"),
    ({"B-coref": "no"}, "gap.tsv:3: B-coref is 'no'; expected TRUE or FALSE."),
    ({"URL": "x\ty"}, "gap.tsv:3: the row has 12 columns; expected 11"),
  ],
)
def test_bad_rows(tmp_path, changes, message):
  path = write(tmp_path, ROW, {**ROW, "ID": "d-2", **changes})
  with pytest.raises(DataError) as error:
    gap.read_examples(path)
  assert message in str(error.value)
  assert "\n" not in str(error.value)


def test_missing_columns(tmp_path):
  with pytest.raises(DataError, match=r"gap.tsv:2: no column 'Pronoun-offset'"):
    gap.read_examples(write(tmp_path, ROW, without=("Pronoun-offset",)))
  with pytest.raises(DataError, match=r"gap.tsv:2: no column 'B-coref'; ther"):
    gap.read_examples(write(tmp_path, ROW, without=("B-coref",)))


def test_empty_files(tmp_path):
  path = tmp_path / "gap.tsv"
  path.write_text("")
  with pytest.raises(DataError, match=r"gap\.tsv: the file is empty"):
    gap.read_examples(path)
  with pytest.raises(DataError, match=r"gap\.tsv: has no row"):
    gap.read_examples(write(tmp_path))


@pytest.mark.parametrize(
  ("line", "message"),
  [
    ("Ann met Eve", "input 'Ann met Eve': not a JSON object; expected {"),
    ('{"text": "a"}', "no 'pronoun'; expected {"),
    ("{", "input '{': not JSON"),
  ],
)
def test_bad_input(line, message):
  with pytest.raises(DataError) as error:
    gap.parse_line(line)
  assert message in str(error.value)


def test_the_input_example_can_be_parsed():
  example = gap.parse_line(gap.INPUT_EXAMPLE)
  assert [example.text[slice(*m)] for m in example.mentions] == [
    "she",
    "Ann",
    "Eve",
  ]


def test_the_real_files(data_dir):
  found = [
    gap.read_examples(data_dir / "coref" / "gap" / f"gap-{name}.tsv")
    for name in ("development", "validation")
  ]
  assert [len(examples) for examples in found] == [2000, 454]
  answers = [example.answer for example in found[0]]
  assert [answers.count(a) for a in gap.ANSWERS] == [201, 874, 925]
  genders = [gap.pronoun_gender(example) for example in found[0]]
  assert [genders.count(g) for g in ("masculine", "feminine", "")] == [
    1000,
    1000,
    0,
  ]


# --- The metric ---


def make(pronoun, answer):
  return gap.Example(
    f"{pronoun} did", gap.Mention(0, len(pronoun)), None, None, answer
  )


def test_the_official_scores_by_hand():
  """Two decisions an example: the pronoun means A or not, B or not.

  he A -> A: tp, tn. His A -> B: fn, fp. him NEITHER -> B: tn, fp. she B -> B:
  tp, tn. Her B -> NEITHER: fn, tn. hers A -> A: tp, tn. it B -> A: fn, fp.
  """
  gold = "he A|His A|him NEITHER|she B|Her B|hers A|it B"
  examples = [make(*x.split()) for x in gold.split("|")]
  found = ["A", "B", "B", "B", "NEITHER", "A", "A"]
  values = gap.evaluate_answers(examples, found)
  # tp 3, fp 3, fn 3; masculine tp 1, fp 2, fn 1; feminine tp 2, fp 0, fn 1.
  masculine = 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2)
  feminine = 2 * 1 * (2 / 3) / (1 + 2 / 3)
  assert values == pytest.approx(
    {
      "f1": 3 / 6,
      "precision": 3 / 6,
      "recall": 3 / 6,
      "masculine_f1": masculine,
      "masculine_precision": 1 / 3,
      "masculine_recall": 1 / 2,
      "feminine_f1": feminine,
      "feminine_precision": 1.0,
      "feminine_recall": 2 / 3,
      "bias": feminine / masculine,
      "accuracy": 3 / 7,
    }
  )


def test_no_positive_decision():
  values = gap.evaluate_answers([make("she", "NEITHER")], ["NEITHER"])
  assert values.pop("accuracy") == 1.0
  assert set(values.values()) == {0.0}


def test_one_gender_has_no_bias():
  values = gap.evaluate_answers([make("She", "A")], ["A"])
  assert (values["f1"], values["feminine_f1"], values["bias"]) == (1.0, 1.0, 0)


def test_answers_file():
  assert gap.format_answers(["t-1", "t-2", "t-3"], ["B", "NEITHER", "A"]) == (
    "t-1\tFALSE\tTRUE\nt-2\tFALSE\tFALSE\nt-3\tTRUE\tFALSE\n"
  )


@pytest.mark.parametrize("mark", ["", "-", "?", "-1"])
def test_marks_mean_no_answer(tmp_path, mark):
  labels = {"A-coref": mark, "B-coref": mark}
  path = write(tmp_path, ROW, {**ROW, "ID": "d-2", **labels})
  assert [e.answer for e in gap.read_examples(path)][1] is None
  path = write(tmp_path, {**ROW, "A-coref": "0", "B-coref": "1"})
  assert gap.read_examples(path)[0].answer == "B"
