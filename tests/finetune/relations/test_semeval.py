"""SemEval-2010 task 8: its format, and its official metric by hand."""

from collections import Counter

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.relations import semeval

FILE = (
  '1\t"The <e1>child</e1> sat in a <e2>cradle</e2>."\r\n'
  "Other\r\n"
  "Comment: not a <e1>container\r\n"
  "\r\n"
  '27\t""Run," said <e1>Ann Lee</e1> to her <e2>dog</e2>"\r\n'
  "Product-Producer(e2,e1)\r\n"
  "Comment:\r\n"
)


def write(folder, text):
  path = folder / "FILE.TXT"
  path.write_bytes(text.encode())
  return str(path)


# --- The format ---


def test_read(tmp_path):
  path = write(tmp_path, "\ufeff" + FILE)
  first, second = semeval.read_sentences(path)
  assert first == (
    "The child sat in a cradle.",
    (4, 9),
    (19, 25),
    "Other",
    "1",
    f"{path}:1",
  )
  assert second.text == '"Run," said Ann Lee to her dog'
  assert second.text[slice(*second.e1)] == "Ann Lee"
  assert second.text[slice(*second.e2)] == "dog"
  assert (second.relation, second.id) == ("Product-Producer(e2,e1)", "27")
  assert second.where == f"{path}:5"


def test_the_test_file_has_no_relations(tmp_path):
  lines = [f'{i}\t"<e1>a</e1> and <e2>b</e2>"' for i in (8001, 8002, 8003)]
  examples = semeval.read_sentences(write(tmp_path, "\n".join(lines)))
  assert [e.id for e in examples] == ["8001", "8002", "8003"]
  assert {e.relation for e in examples} == {None}


def test_odd_characters_keep_their_places():
  text = "\U0001f600 <e1>cafe\u0301</e1>\u200b, 中<e2>文\U0001f468\u200d</e2>!"
  plain, e1, e2 = semeval.parse_entity_tags(text, where="")
  assert plain == "\U0001f600 cafe\u0301\u200b, 中文\U0001f468\u200d!"
  assert plain[slice(*e1)] == "cafe\u0301"
  assert plain[slice(*e2)] == "文\U0001f468\u200d"


def test_e2_may_come_first_or_contain_e1():
  assert semeval.parse_entity_tags("<e2>a</e2> <e1>b</e1>", where="") == (
    "a b",
    (2, 3),
    (0, 1),
  )
  nested = "<e1>wine <e2>bottle</e2></e1>"
  assert semeval.parse_entity_tags(nested, where="")[1:] == ((0, 11), (5, 11))


SENTENCE = '5\t"The <e1>child</e1> in the <e2>cradle</e2>."\n'


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("", "FILE.TXT: the file is empty"),
    ("\n\r\n", "FILE.TXT: no sentences"),
    (
      SENTENCE + 'Other\n\n6\t"The child in the <e2>cradle</e2>."\nOther\n',
      "FILE.TXT:4: the sentence has no <e1>",
    ),
    ('6\t"A <e1>b in a <e2>c</e2>."', "FILE.TXT:1: the sentence has no </e1>"),
    (
      '6\t"A <e1>b</e1> <e1>c</e1>."',
      "FILE.TXT:1: the sentence has <e1> twice",
    ),
    ('6\t"<e1> </e1> <e2>c</e2>."', "FILE.TXT:1: <e1></e1> is empty"),
    ('6\t"</e1>a<e1> <e2>c</e2>."', "FILE.TXT:1: <e1></e1> is empty"),
    (
      SENTENCE + 'Other\n6\t"<e1>a</e1> <e2>b</e2>"\n',
      "FILE.TXT:3: the sentence has no relation, but others do",
    ),
    (SENTENCE + "Cause-Effect(e1)\n", "FILE.TXT:2: 'Cause-Effect(e1)'; expect"),
    (SENTENCE + "Other\nOther\n", "FILE.TXT:3: 'Other'; expected a sentence"),
    (
      "5\t<e1>a</e1> <e2>b</e2>\tOther\n",
      "FILE.TXT:1: a tab within the sentence",
    ),
    ('"The <e1>child</e1>"', "FILE.TXT:1: '\"The <e1>child</e1>\"'; expected"),
  ],
)
def test_bad_files(tmp_path, text, message):
  with pytest.raises(DataError) as error:
    semeval.read_sentences(write(tmp_path, text))
  assert str(error.value).partition(f"{tmp_path}/")[2].startswith(message)
  assert "\n" not in str(error.value)


def test_no_such_file(tmp_path):
  with pytest.raises(DataError, match=r"none\.TXT: No such file"):
    semeval.read_sentences(tmp_path / "none.TXT")


def test_not_utf8(tmp_path):
  path = tmp_path / "FILE.TXT"
  path.write_bytes(SENTENCE.encode() + b"Other\n\xe9\n")
  with pytest.raises(DataError, match=r"FILE\.TXT:3: not UTF-8"):
    semeval.read_sentences(path)


def test_the_real_file(data_dir):
  path = data_dir / "relation" / "semeval2010_task8" / "TRAIN_FILE.TXT"
  examples = semeval.read_sentences(path)
  assert [e.id for e in examples] == [str(i) for i in range(1, 8001)]
  counts = Counter(e.relation for e in examples)
  # As grep -c counts them.
  assert counts["Other"] == 1410
  assert counts["Cause-Effect(e2,e1)"] == 659
  assert counts["Entity-Destination(e2,e1)"] == 1
  labels = semeval.directed_labels(
    [e.relation for e in examples], other="Other"
  )
  assert len(labels) == 19
  for example in examples:
    assert "<e" not in example.text and example.e1.end <= example.e2.begin


def test_labels_have_both_directions():
  found = ["B-C(e2,e1)", "none", "A-D(e1,e2)", "kin", "B-C(e2,e1)"]
  expected = ["none", "A-D(e1,e2)", "A-D(e2,e1)", "B-C(e1,e2)"]
  expected += ["B-C(e2,e1)", "kin"]
  assert semeval.directed_labels(found, other="none") == expected
  assert semeval.directed_labels(["kin", "ab"], other="none") == ["ab", "kin"]


# --- The metric ---

CE, EC = "Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)"
MT, TM = "Message-Topic(e1,e2)", "Message-Topic(e2,e1)"
GOLD = [CE, CE, EC, EC, MT, MT, TM, "Other", "Other", "Other", "Other"]
FOUND = [CE, EC, EC, MT, MT, "Other", CE, "Other", CE, TM, MT]


def test_the_official_score_by_hand():
  """By definition: 3 of Cause-Effect are predicted, correctly or reversed.

  Cause-Effect: 2 correct, 1 reversed, 5 predicted (1 for Message-Topic, 1 for
  Other), 4 gold. Message-Topic: 1 correct, 0 reversed, 4 predicted, 3 gold.
  """
  assert semeval.count_relations(GOLD, FOUND, other="Other") == {
    "Cause-Effect": (2, 1, 5, 4),
    "Message-Topic": (1, 0, 4, 3),
  }
  p1, r1, p2, r2 = 2 / 5, 2 / 4, 1 / 4, 1 / 3
  f1, f2 = 2 * p1 * r1 / (p1 + r1), 2 * p2 * r2 / (p2 + r2)
  # Without directions 3 of Cause-Effect are correct.
  u1 = 2 * (3 / 5) * (3 / 4) / (3 / 5 + 3 / 4)
  p, r = 3 / 9, 3 / 7
  assert semeval.evaluate_relations(GOLD, FOUND) == pytest.approx(
    {
      "f1": (f1 + f2) / 2,
      "precision": (p1 + p2) / 2,
      "recall": (r1 + r2) / 2,
      "micro_f1": 2 * p * r / (p + r),
      "undirected_f1": (u1 + f2) / 2,
      "accuracy": 4 / 11,
    }
  )


def test_relations_that_gold_lacks_are_not_averaged():
  values = semeval.evaluate_relations([CE, "Other"], [CE, MT])
  assert values["f1"] == values["micro_f1"] == 1.0
  assert values["accuracy"] == 0.5
  # A relation that is never predicted is.
  assert semeval.evaluate_relations([CE, MT], [CE, "Other"])["f1"] == 0.5


def test_only_other_gives_zero():
  values = semeval.evaluate_relations(["Other"], ["Other"])
  assert values.pop("accuracy") == 1.0
  assert set(values.values()) == {0.0}


def test_another_name_for_other():
  values = semeval.evaluate_relations(["no", "kin"], ["no", "kin"], other="no")
  assert values["f1"] == 1.0
  assert semeval.evaluate_relations(["no", "kin"], ["kin", "kin"], other="no")[
    "f1"
  ] == (pytest.approx(2 / 3))


def test_report_and_answers():
  lines = semeval.format_report(GOLD, FOUND).splitlines()
  assert [line.split("\t")[0] for line in lines[1:]] == [
    "Cause-Effect",
    "Message-Topic",
    "Other",
  ]
  assert lines[1] == "Cause-Effect\t2\t1\t5\t4\t0.4000\t0.5000\t0.4444"
  assert semeval.format_answers(["7", "9"], [CE, "Other"]) == (
    "7\tCause-Effect(e1,e2)\n9\tOther\n"
  )


def test_marks_mean_no_relation(tmp_path):
  text = '1\t"<e1>a</e1> <e2>b</e2>"\nX\n\n2\t"<e1>c</e1> <e2>d</e2>"\n-\n'
  path = tmp_path / "a.txt"
  path.write_text(text)
  found = [e.relation for e in semeval.read_sentences(path)]
  assert found == ["X", None]
  found = [e.relation for e in semeval.read_sentences(path, other="-")]
  assert found == ["X", "-"]
