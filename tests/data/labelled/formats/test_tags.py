"""Sentences of words with tags, from columns, CoNLL-U, CoNLL-2012 and JSON."""

import pytest

from maskedlm.data.labelled.formats import tags

CONLLU = """\
# sent_id = 1
# text = Don't!
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
3\t!\t!\tPUNCT\t.\t_\t1\tpunct\t_\tSpaceAfter=No

1\t#\t#\tSYM\tNN\t_\t0\troot\t_\t_
2\tTrả lời\ttrả lời\tVERB\tV\t_\t0\troot\t_\t_
"""


def read(path, **options):
  """Returns the words, tags and lines of each sentence."""
  return [(x.words, x.tags, x.lines) for x in tags.read_file(path, **options)]


def test_columns_between_tabs(file):
  path = file("EU\tB-ORG\n#\tO\n.\tO\n\nTrả lời\tO\n")
  assert read(path) == [
    (("EU", "#", "."), ("B-ORG", "O", "O"), (1, 2, 3)),
    (("Trả lời",), ("O",), (5,)),
  ]
  assert [x.where for x in tags.read_file(path)] == [f"{path}:1", f"{path}:5"]


def test_columns_between_spaces_with_documents(file):
  path = file(
    "-DOCSTART- -X- -X- O\n\nEU NNP  B-NP B-ORG\nrejects VBZ B-VP O \n"
    "-DOCSTART- -X- O O\n\n \n\t\n\nPeter NNP B-NP B-PER\n\n\n"
  )
  assert read(path) == [
    (("EU", "rejects"), ("B-ORG", "O"), (3, 4)),
    (("Peter",), ("B-PER",), (10,)),
  ]
  assert [x[1] for x in read(path, tag_column=1)] == [("NNP", "VBZ"), ("NNP",)]
  swapped = read(path, token_column=1, tag_column=0)
  assert [x[0] for x in swapped] == [("NNP", "VBZ"), ("NNP",)]


def test_words_without_tags(file):
  assert read(file("EU\nrejects\n\nPeter\n")) == [
    (("EU", "rejects"), None, (1, 2)),
    (("Peter",), None, (4,)),
  ]
  assert read(file("a\t_\nb\t_\n"))[0][1] is None
  assert read(file('{"words": ["a"]}\n')) == [(("a",), None, (1,))]


@pytest.mark.parametrize("name", ["f.conllu", "f.txt"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_conllu(file, name, end):
  path = file(CONLLU.replace("\n", end), name)
  assert read(path) == [
    (("Do", "n't", "!"), ("AUX", "PART", "PUNCT"), (4, 5, 7)),
    (("#", "Trả lời"), ("SYM", "VERB"), (9, 10)),
  ]
  assert read(path, conllu_tag="xpos")[0][1] == ("VBP", "RB", ".")


def test_conll2012(file):
  """The entities or parts of speech, unless columns are asked for."""
  path = file(
    "#begin document (a); part 000\n"
    "a 0 0 Ann NNP (TOP(S* - - - x (PERSON* (ARG0* (1\n"
    "a 0 1 Lee NNP * - - - x *) *) 1)\n"
    "a 0 2 left VBD *)) leave 01 - x * (V*) -\n\n#end document\n"
  )
  words = ("Ann", "Lee", "left")
  found = [(words, ("B-PERSON", "I-PERSON", "O"), (2, 3, 4))]
  assert read(path, entities=True) == found
  assert read(path)[0][1] == ("NNP", "NNP", "VBD")
  assert read(path, token_column=3, tag_column=6)[0][1] == ("-", "-", "leave")


def test_lists_of_words_and_tags(file, capsys):
  text = (
    '{"tokens": ["Eve", "\xa0"], "ner_tags": ["B-X", "O"], "pos_tags": ["N", '
    '"V"], "xpos": ["n", "v"]}\n\n{"tokens": []}\n'
    '{"tokens": ["a"], "ner_tags": ["O"], "pos_tags": [7], "xpos": ["d"]}\n'
  )
  for name in ("f.jsonl", "f.txt"):
    path = file(text, name)
    for options, found in (
      ({"entities": True}, ["B-X O", "O"]),
      ({}, ["N V", "7"]),
      ({"conllu_tag": "xpos"}, ["n v", "d"]),
    ):
      assert [" ".join(x[1]) for x in read(path, **options)] == found
    assert [x[2] for x in read(path)] == [(1, 1), (4,)]
    assert "1 row without words, left out" in capsys.readouterr().err


def test_real_files(data_dir):
  """The words and sentences were counted with grep."""
  for path, sentences, words in (
    ("ner/wnut17/wnut17train.conll", 3394, 62730),
    ("ner/wnut17/emerging.dev.conll", 1009, 15733),
    ("ud_pos/Marathi-UFAL/mr_ufal-ud-train.conllu", 373, 2997),
    ("ud_pos/Vietnamese-VTB/vi_vtb-ud-train.conllu", 1400, 20215),
  ):
    found = tags.read_file(str(data_dir / path))
    assert len(found) == sentences
    assert sum(len(x.words) for x in found) == words
    assert all(len(x.words) == len(x.tags) for x in found)


def test_what_is_written_is_read_again(file):
  words = [("EU", "a b", "\u2028"), ("#",)]
  found = [("B-ORG", "O", "O"), ("O",)]
  for name in ("upos", "xpos"):
    text = tags.format_conllu(zip(words, found, strict=True), conllu_tag=name)
    made = read(file(text, "f.conllu"), conllu_tag=name)
    assert [x[:2] for x in made] == [*zip(words, found, strict=True)]
