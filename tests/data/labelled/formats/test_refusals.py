"""What breaks a format is refused in one line that names the file and line.

A table of (what reads the file, the file, the line of the error or None for the
file, and a part of the error). What several formats share is tested with one of
them: columns and tags with "tags", objects with "tags" and test_fields.py.
"""

import functools
import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import (
  chains,
  conllu,
  layers,
  relations,
  roles,
  tags,
  treebanks,
)

READERS = {
  "tags": functools.partial(tags.read_file, entities=True),
  "pos": tags.read_file,
  "xpos": functools.partial(tags.read_file, conllu_tag="xpos"),
  "layers": layers.read_layers,
  "conllu": conllu.read_file,
  "roles": roles.read_file,
  "chains": chains.read_file,
  "trees": treebanks.read_file,
  "relations": relations.read_file,
}
CONLLU = (
  "# text = Don't!\n1-2\tDon't" + "\t_" * 8 + "\n"
  "1\tDo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_\n"
  "2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_\n"
  "3\t!\t!\tPUNCT\t.\t_\t1\tpunct\t_\t_\n\n"
)
PROPS = """\
The     DT  -     (A1*  (A0*
shop    NN  -     *)    *
they    PRP -     (A0*) *
like    VBP like  (V*)  *)
shut    VBD shut  *     (V*)
its     PRP -     *     (A1*
doors   NNS -     *     *)
down    RP  -     *     (C-V*)
.       .   -     *     *

Yes     UH  -
"""
ROLES_2012 = """\
#begin document (a/b); part 000
a/b 0 0 They PRP * - - - x * (A0*) (1)
a/b 0 1 like VBP * like 01 - x * (V*) -
a/b 0 2 cats NNS * - - - x * (A1*) -
#end document
"""
E = '5\t"The <e1>child</e1> in the <e2>cradle</e2>."\n'


def change(text, old, new):
  assert old in text
  return text.replace(old, new, 1)


def line(number, word, head, label="dep"):
  return f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{label}\t_\t_\n"


def chain_file(*cells, end="#end document\n"):
  """Returns a document of words "word" or "word/marks"."""
  pairs = [cell.partition("/")[::2] for cell in cells]
  lines = (
    f"d 0 {i} {word} NN * - - - - * {marks or '-'}\n"
    for i, (word, marks) in enumerate(pairs)
  )
  return "".join(["#begin document (d); part 000\n", *lines, end])


def rows(*objects):
  return "".join(f"{json.dumps(x)}\n" for x in objects)


def bad_args(*args, index=3):
  words = list("abcdefghi")
  predicate = {"index": index, "args": [list(x) for x in args]}
  return rows({"words": words}, {"words": words, "predicates": [predicate]})


# Reader -> (file, line of the error, part of it).
FILES = {
  "tags": [
    ("", None, "the file is empty"),
    ("\n\n-DOCSTART- O\n \n", None, "the file has no words"),
    ("a\tO\nb\tX\tO\n", 2, "3 columns between tabs, 'b X O'; expect"),
    ("a O\nb\n", 2, "1 column between spaces, 'b'; expected 2"),
    ("a\tO\nb\t_\n", 2, "the word has no tag (_)"),
    (b"a\tO\nb\xe9\tO\n", 2, "not UTF-8 (byte 0xe9 at 2 of the line)"),
    ("a O\n# a comment here\nb O\n", 2, "4 columns between spaces, '#"),
    ("0\tEve\tO\n1\tran\tO\n", 1, "column 0 numbers the words; set"),
    ("1-2 _ O\n1 I O\n2 do O\n2.1 x O\n", 2, "column 0 numbers the words"),
    ("bc/x Eve O\nbc/x ran O\n", 1, "column 0 is always 'bc/x'"),
    ("Word\tTag\na\tO\n", 1, "'Word' and 'Tag' name the columns; expe"),
  ],
  "chains": [
    ("\n\n", None, "the file has no words"),
    (chain_file("a/(1", "b"), 2, "begins a mention that does not end"),
    (chain_file("a", "b/1)"), 3, "but none is open"),
    (chain_file("a/(1", "b/(2)|1)|1)"), 3, "but none is open"),
    (chain_file("a/(x)"), 2, "the last column is '(x)'; expected -"),
    (chain_file("a/7"), 2, "the last column is '7'; expected -"),
    (chain_file("a", end=""), 1, "the document does not end"),
    (chain_file("a", end="") + chain_file("b"), 3, "within a document"),
    ("d 0 0 a NN -\n", 1, "a word outside of a document"),
    ("#end document\nd 0 0 a NN -\n", 1, "'#end document' outside"),
    ("#begin document (d); part 000\nd 0 0 a\n", 2, "4 columns; expect"),
  ],
  "conllu": [
    ("\n# a\n", None, "the file has no words"),
    ("1\ta\t_\n", 1, "3 columns between tabs, '1 a _'; expecte"),
    (line(1, "a", 0) + "# b\n" + line(2, "b", 1), 2, "a comment before"),
    (line(1, "a", 0) + line(3, "b", 1), 2, "ID '3'"),
    (line("1-1", "a", "_") + line(1, "a", 0), 1, "ID '1-1'"),
    (line("1-3", "a", "_") + line(1, "a", 0), 2, "ends with 3"),
    (line(1, "a", 0) + line("1.1", "b", "_") + line(2, "", 1), 3, "emp"),
    (line("0.1", "a", "_"), 1, "without words"),
    (line(1, "a", 0) + line(2, "b", 3), 2, "HEAD '3'"),
    (line(1, "a", 0) + line(2, "b", "-1"), 2, "HEAD '-1'"),
    (line(1, "a", 0) + line(2, "b", "_"), 2, "HEAD '_'"),
    (line(1, "a", 0) + line(2, "b", 1, "_"), 2, "DEPREL '_'"),
    (line(1, "a", 0) + line(2, "b", 0), 2, "second root"),
    (
      line(1, "a", 2) + line(2, "b", 4) + line(3, "c", 0) + line(4, "d", 2),
      2,
      "cycle of heads, 2 -> 4 -> 2",
    ),
  ],
  "xpos": [("a O\nb X\n", None, "task.conllu_tag=xpos has no effect")],
  "layers": [
    ("a\tO\tO\nb\tO\n", 2, "2 columns between tabs, 'b O'; expected 3"),
    ("a\tO\tO\nb\tO\tI-X\n", 2, "I-X after O is ill-formed BIO"),
    ("a\tO\tB-X\n\nb\tB-Y\tI-X\n", 3, "I-X at the start of a sentence"),
    ("a\tO\tNN\n", 1, "'NN' is not an entity tag"),
    (CONLLU, None, "CoNLL-U, whose columns are no layers"),
  ],
  "pos": [
    (change(CONLLU, "\t_\t1\tpunct", "\t1\tpunct"), 5, "9 columns betwe"),
    (change(CONLLU, "3\t!", "4\t!"), 5, "ID '4'; expected 3, or a blank"),
    (change(CONLLU, "2\tn't", "2\t"), 4, "the word is empty"),
    ("1-2\tab" + "\t_" * 8 + "\n", 1, "a sentence without words"),
  ],
  "roles": [
    ("The\nshop\n", 1, "no column of predicates"),
    (change(PROPS, "(A0*\n", "(A0* *\n"), 2, "5 columns between spa"),
    (change(PROPS, "UH  -", "UH"), 11, "2 columns; expected at least 3"),
    (change(PROPS, "(A0*\nshop", "*\nshop"), 4, "not open"),
    (change(PROPS, "*     (A1*", "*     *"), 7, "closes a bracket that"),
    (change(PROPS, "(A0*) *", "(A0*) (A2*)"), 3, "a bracket within A0"),
    (change(PROPS, "(V*)  *)", "(V*)  )"), 4, "')' in column 5; expected"),
    (change(ROLES_2012, "0 2 cats", "0 3 cats"), 4, "the word number '3'"),
    (change(ROLES_2012, "(A1*)", "(A1*"), 4, "is not closed in the sent"),
    (change(ROLES_2012, "(A1*) -", "(A1*) - -"), 4, "14 columns between"),
  ],
  "trees": [
    ("d 0 0 The DT (S* x\nd 0 1 a NN x x\n", 2, "'x'; expected bracket"),
    ("d 0 0 The DT (S*) x\nd 0 1 a NN (S*) x\n", 1, "2 trees for a sen"),
    ("d 0 0 The DT (S(NP*) x\n\n", 1, "not closed: a ) missing"),
    ("The/DT cat/NN\n", 1, "outside of all brackets"),
    ("(S (NP (-NONE- *)))\n", None, "no tree with words"),
    ("(S (NN a)))", 1, "closes no bracket"),
    ("(S (NN a)\n(S (NN b))\n", 1, "not closed: a ) missing, perhaps before"),
    ("(S " * 100_000, 1, "not closed: 100,000 ) missing"),
    ("\n()", 2, "() has no word"),
    ("(S (NN a) (NP ))", 1, "(NP) has no word"),
    ("(S ((NN a)))", 1, "a bracket has no label"),
    ("(S (NP the dog))", 1, "'dog' is beside"),
    ("(S (DT the) dog)", 1, "'dog' is beside"),
  ],
  "relations": [
    ("", None, "the file is empty"),
    ("\n\r\n", None, "no sentences"),
    (E + 'Other\n\n6\t"A <e2>b</e2>."\nOther\n', 4, "the sentence has no <e1>"),
    ('6\t"A <e1>b in a <e2>c</e2>."', 1, "the sentence has no </e1>"),
    ('6\t"A <e1>b</e1> <e1>c</e1>."', 1, "the sentence has <e1> twice"),
    ('6\t"</e1>a<e1> <e2>c</e2>."', 1, "<e1></e1> is empty"),
    (
      E + 'Other\n6\t"<e1>a</e1> <e2>b</e2>"\n',
      3,
      "the sentence has no relation",
    ),
    (E + "Cause-Effect(e1)\n", 2, "'Cause-Effect(e1)'; expected a sentence"),
    (E + "Other\nOther\n", 3, "'Other'; expected a sentence"),
    ("5\t<e1>a</e1> <e2>b</e2>\tOther\n", 1, "a tab within the sentence"),
  ],
}

# Reader -> (object in line 2, part of the error).
OBJECTS = {
  "tags": [
    ({"tokens": ["a", "b"], "tags": ["O"]}, "2 words, but 1 tags"),
    ({"text": "a"}, "no 'tokens' or 'words'; there are 'text'"),
    ({"tokens": "a"}, "'tokens' is 'a'; expected a list of texts"),
    ({"tokens": ["a"], "tags": [-100]}, "(the tag -100 is none)"),
    ({"tokens": ["a"], "tags": [None]}, "'tags' is '[None]'"),
    ({"tokens": ["a"], "tags": [["O"]]}, "expected a list of tags"),
    ({"tokens": ["a"]}, "the word has no tag (_), but others do"),
    ([1], "a JSON list; expected an object"),
  ],
  "conllu": [
    ({"text": "a"}, "no 'tokens' or 'words'; there are 'text'"),
    ({"tokens": ["a"], "head": [0, 1]}, "1 words, but 2 heads"),
    ({"tokens": ["a"], "head": ["x"], "deprel": ["y"]}, "HEAD 'x'"),
    ({"tokens": ["a"], "head": [5], "deprel": ["x"]}, "HEAD '5'"),
    ({"tokens": ["a"], "head": [0]}, "DEPREL '_'"),
    (
      {"tokens": ["a", "b"], "head": [0, 0], "deprel": ["x", "y"]},
      "a second root (HEAD 0), word 2, beside word 1",
    ),
  ],
  "roles": [
    ({"words": "The shop"}, "'words' is 'The shop'; expected a list"),
    ({"words": ["a"], "predicates": [3]}, "expected a list of objects"),
    ({"words": ["a"], "predicates": [{}]}, "no 'index'"),
    (
      {
        "words": ["a", "b"],
        "predicates": [{"index": 0, "args": []}, {"index": 1}],
      },
      "the predicate 1 of the list has no 'args', but others do",
    ),
    (
      {"words": ["a"], "predicates": [{"index": 0}, {"index": 0}]},
      "two predicates have the index 0",
    ),
    (
      {"words": ["a"], "srl_frames": [{"frames": ["B-A0"]}]},
      "expected 'frames', a BIO tag for each word, one of them B-V",
    ),
  ],
  "chains": [
    ({"sentences": [{"words": "a"}]}, "'words' is 'a'; expected a list"),
    ({"words": ["a"]}, "no 'sentences'; there are 'words'"),
    (
      {"sentences": [{"words": ["a"], "coref_spans": [[7, 0, 1]]}]},
      "the span [7, 0, 1] of coref_spans, but its sentence has 1 word",
    ),
  ],
  "trees": [
    ({"words": ["a"]}, "no 'tree' or 'parse_tree'; there are 'words'"),
    ({"tree": "(S (NN a)"}, "not closed: a ) missing"),
    ({"tree": "(S (NN a)) (S (NN a))"}, "2 trees for a sentence"),
    ({"parse_tree": "(S(N**))", "words": ["a"]}, "the parse_tree has 2"),
  ],
  "relations": [
    ({"relation": "x"}, "no 'text' or 'sentence'; there are 'rel"),
    ({"text": "a"}, "the sentence has no <e1>"),
    ({"text": "a", "e1": "a", "e1_offset": 0}, "no 'e2'"),
    ({"text": "a", "e1_offset": "0"}, "'e1_offset' is '0'; expected a whole"),
    (
      {"text": "a b", "e1": "a", "e1_offset": 0, "e2": "b", "e2_offset": 1},
      "e2 'b' is not at its offset 1, where the text has ' '; it is at 2",
    ),
  ],
}

# Of a predicate: (its index, arguments, part of the error).
ARGUMENTS = [
  (9, [], "the predicate's index 9, but the sentence has 9 words: expected 0"),
  (-1, [], "the predicate's index -1"),
  (True, [], "'index' is 'True'; expected a whole number"),
  (3, [(5, 9, "A0")], "from word 5 to 9, but the sentence has 9 words"),
  (3, [(6, 5, "A0")], "the end is before the start"),
  (3, [(2, 3, "A0")], "covers the predicate itself"),
  (3, [(0, 1, "A0"), (1, 2, "A1")], "arguments, A0 [0, 1] and A1 [1, 2]"),
  (3, [(3, 4, "V"), (4, 5, "A1")], "has overlapping arguments"),
  (3, [(0, 1)], "(it has the argument [0, 1]); expected a list of [first"),
]
BAD = [(name, *case) for name, cases in FILES.items() for case in cases]
BAD += [
  ("roles", bad_args(*args, index=index), 2, part)
  for index, args, part in ARGUMENTS
]


def check(path, read, number, part):
  with pytest.raises(DataError) as error:
    read(path)
  message = str(error.value)
  assert message.startswith(f"{path}:{number}: " if number else f"{path}: ")
  assert part in message and "\n" not in message and len(message) < 700


@pytest.mark.parametrize(("name", "content", "number", "part"), BAD)
def test_bad_files(name, content, number, part, file):
  check(file(content), READERS[name], number, part)


GOOD = {
  "tags": {"tokens": ["a"], "tags": ["O"]},
  "conllu": {"tokens": ["a"]},
  "roles": {"words": ["a"]},
  "chains": {"sentences": [{"words": ["a"]}]},
  "trees": {"tree": "(S (NN a))"},
  "relations": {"text": "<e1>a</e1> <e2>b</e2>"},
}


@pytest.mark.parametrize(
  ("name", "value", "part"),
  [(name, *case) for name, cases in OBJECTS.items() for case in cases],
)
def test_bad_objects(name, value, part, file):
  """In JSON Lines, whatever the file's name; the good row is no error."""
  content = rows(GOOD[name], value)
  for suffix in ("jsonl", "txt"):
    check(file(content, f"f.{suffix}"), READERS[name], 2, part)


@pytest.mark.parametrize("name", READERS)
def test_missing_files_and_those_of_commas(name, file, tmp_path):
  check(str(tmp_path / "none"), READERS[name], None, "No such file")
  check(file("a O\n{", "f.jsonl"), READERS[name], 1, "not JSON")
  if name in ("tags", "layers"):
    check(file("a,O\n", "f.csv"), READERS[name], None, "columns between commas")


@pytest.mark.parametrize("name", sorted(GOOD))
def test_files_without_words(name, file):
  empty = {
    "chains": {"sentences": []},
    "trees": {"tree": "(S (-NONE- *))"},
    "relations": {"text": ""},
  }.get(name, {"tokens": []})
  with pytest.raises(DataError, match=r"f\.jsonl(:1)?: .*(no|without)"):
    READERS[name](file(rows(empty), "f.jsonl"))


@pytest.mark.parametrize("options", [{"token_column": 1}, {"tag_column": 2}])
def test_columns_of_objects_have_names(options, file):
  path = file(rows(GOOD["tags"]), "f.jsonl")
  with pytest.raises(DataError, match="have no effect: leave them out"):
    tags.read_file(path, **options)


@pytest.mark.parametrize(
  ("content", "options", "part"),
  [
    ("\na\tO\n", {"tag_column": 3}, ":2: tag_column=3, but the line has 2 col"),
    ("\na\tO\n", {"token_column": -3}, ":2: token_column=-3, but the line has"),
    ("\na\tO\n", {"tag_column": -2}, "are the same one of 2 columns"),
    ("a\tX\tO\nb\t\tO\n", {"tag_column": 1}, ":2: the tag is empty"),
    (CONLLU, {"tag_column": 1}, "are the same one of 10 columns"),
  ],
)
def test_columns_that_are_not_there(content, options, part, file):
  path = file(content)
  with pytest.raises(DataError) as error:
    tags.read_file(path, **options)
  assert str(error.value).startswith(path) and part in str(error.value)
