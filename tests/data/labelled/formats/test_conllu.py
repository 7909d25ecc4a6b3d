"""CoNLL-U: what is read, what is written, and bad files."""

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.dependency import conllu, text

FILE = """\
# sent_id = 1
# text = I don't
1\tI\tI\tPRON\tPRP\tCase=Nom\t2\tnsubj\t2:nsubj\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t0:root\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t2:advmod\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t2:ccomp\t_

1\tNew York\t_\t_\t_\t_\t_\t_\t_\t_

"""


def line(number, word, head, label="dep"):
  return f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{label}\t_\t_\n"


def test_by_hand(file, capsys):
  path = file(FILE, "a.conllu")
  first, second = conllu.read_sentences(path)
  assert first.words == ("I", "do", "n't")
  assert (first.heads, first.labels) == ((2, 0, 2), ("nsubj", "root", "advmod"))
  assert first.lines == (3, 5, 6) and first.where == f"{path}:3"
  assert (second.words, second.heads, second.labels) == (
    ("New York",),
    None,
    None,
  )
  assert "1 empty node (such as 3.1 in line 7)" in capsys.readouterr().err
  # Ranges, comments and the other columns are kept; DEPS is of another tree.
  written = conllu.format_sentence(first, (0, 3, 1), ("root", "x:y", "z"))
  lines = FILE.splitlines()
  assert written.splitlines() == [
    *lines[:2],
    "1\tI\tI\tPRON\tPRP\tCase=Nom\t0\troot\t_\t_",
    lines[3],
    "2\tdo\tdo\tAUX\tVBP\t_\t3\tx:y\t_\t_",
    "3\tn't\tnot\tPART\tRB\t_\t1\tz\t_\t_",
  ]


def test_what_is_written_is_read(file):
  example = text.parse_line('{"tokens": ["New\\tYork", "#", "is"]}')
  written = conllu.format_sentence(example, (3, 3, 0), ("a", "b", "root"))
  (found,) = conllu.read_sentences(file(written, "b.conllu"))
  assert found.words == ("New York", "#", "is")
  assert (found.heads, found.labels) == ((3, 3, 0), ("a", "b", "root"))
  assert found.comments == ("# text = New York # is",)


def test_ewt_comes_back_to_the_byte(data_dir):
  path = data_dir / "ud_pos/English-EWT/en_ewt-ud-dev.conllu"
  if not path.exists():
    pytest.skip("there is no ud_pos/English-EWT in MASKEDLM_DATA")
  written = "".join(
    f"{conllu.format_sentence(x, x.heads, x.labels)}\n"
    for x in conllu.read_sentences(path)
  )
  lines = path.read_text().splitlines()
  kept = [x for x in lines if "." not in x.split("\t")[0] or x[0] == "#"]
  assert written.splitlines() == kept


@pytest.mark.parametrize(
  ("content", "number", "told"),
  [
    ("1\ta\t_\n", 1, "3 columns between tabs"),
    ("the cat\n", 1, "1 column between tabs"),
    (line(1, "a", 0) + "# b\n" + line(2, "b", 1), 2, "comment within"),
    (line(1, "a", 0) + line(3, "b", 1), 2, "ID '3'"),
    (line(1, "a", 0) + line(1, "b", 0), 2, "ID '1'"),
    (line(1, "a", 0) + line("x", "b", 1), 2, "ID 'x'"),
    (line(1, "a", 0) + line("1-2", "b", "_"), 2, "ID '1-2'"),
    (line("1-1", "a", "_") + line(1, "a", 0), 1, "ID '1-1'"),
    (line("1-3", "a", "_") + line(1, "a", 0), 2, "ends with 3"),
    (line(1, "a", 0) + line("1.1", "b", "_") + line(2, "", 1), 3, "is empty"),
    (line(1, "a", 0) + line(2, "b", 3), 2, "HEAD '3'"),
    (line(1, "a", 0) + line(2, "b", "-1"), 2, "HEAD '-1'"),
    (line(1, "a", 0) + line(2, "b", "_"), 2, "HEAD '_'"),
    (line(1, "a", 0) + line(2, "b", 1, "_"), 2, "DEPREL '_'"),
    (line(1, "a", 0) + line(2, "b", 0), 2, "second root"),
    (line(1, "a", 0) + line(2, "b", 2), 2, "cycle of heads, 2 -> 2"),
    (
      line(1, "a", 2) + line(2, "b", 4) + line(3, "c", 0) + line(4, "d", 2),
      2,
      "cycle of heads, 2 -> 4 -> 2",
    ),
    (line("0.1", "a", "_"), 1, "without words"),
    ("\n# a\n", None, "no sentence"),
  ],
)
def test_bad_files_are_one_line(file, content, number, told):
  path = file(content, "bad.conllu")
  with pytest.raises(DataError) as error:
    conllu.read_sentences(path)
  message = str(error.value)
  assert message.startswith(f"{path}:{number}: " if number else f"{path}: ")
  assert told in message and "\n" not in message


def test_a_missing_file_is_named(tmp_path):
  with pytest.raises(DataError, match=r"none\.conllu: No such file"):
    conllu.read_sentences(tmp_path / "none.conllu")


def test_input():
  example = text.parse_line("He  said : no .")
  assert example.words == ("He", "said", ":", "no", ".")
  with pytest.raises(DataError, match="--data"):
    text.parse_line(line(1, "a", 0))
