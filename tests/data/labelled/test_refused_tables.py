"""What breaks a format of texts is refused in one line: a table of it all."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables
from maskedlm.finetune import config as configs

READERS = {
  "table": lambda path: list(tables.read_records(path)),
  "header": lambda path: list(
    tables.read_records(path, header=("text", "label"))
  ),
  "texts": ("classification", {}),
  "texts of - and x": ("classification", {"labels": ("-", "x")}),
  "texts, single or pairs": ("classification", {"layout": "texts"}),
  "pairs": ("classification", {"text_b": "text_b"}),
  "scores": ("classification", {"regression": True}),
  "cola": ("classification", {"layout": "cola"}),
  "rte": ("classification", {"layout": "rte"}),
  "mrpc": ("classification", {"layout": "mrpc"}),
  "labels": ("multi_label", {}),
  "columns": ("multi_label", {"columns": ("toxic", "threat")}),
  "choices": ("multiple_choice", {}),
  "choices from 1": ("multiple_choice", {"first_label": "1"}),
  "passages": ("retrieval", {}),
  "passages by good": ("retrieval", {"label": "good"}),
  "questions": ("question_answering", {}),
  "questions 2.0": ("question_answering", {"allow_impossible": True}),
}


def read(form, path):
  if callable(READERS[form]):
    return READERS[form](path)
  return configs.make_task(*READERS[form]).read_examples(str(path))


def lines(*objects):
  return "".join(f"{json.dumps(x)}\n" for x in objects)


def choice(**fields):
  return lines({"context": "a", "choices": ["b", "c"]} | fields)


def pair(**fields):
  return lines({"query": "a"} | fields)


CONTEXT = "Ada met Bob. Then Bob, of Köln, left 😀 with Bob."


def asked(*left_out, **fields):
  answers = [{"text": "Bob", "answer_start": 8}]
  row = {"id": "q", "question": "Who?", "answers": answers} | fields
  return {name: x for name, x in row.items() if name not in left_out}


def flat(*left_out, **fields):
  return lines(asked(*left_out, **{"context": CONTEXT} | fields))


def squad(*questions):
  paragraph = {"context": CONTEXT, "qas": questions}
  return json.dumps({"version": "1", "data": [{"paragraphs": [paragraph]}]})


def answer(text, start):
  return squad(asked(answers=[{"text": text, "answer_start": start}]))


def mrqa(**fields):
  row = {"qid": "b", "question": "Who?", "answers": ["Bob"]}
  row["detected_answers"] = [{"text": "Bob", "char_spans": [[8, 10]]}]
  return lines({"context": CONTEXT, "qas": [row | fields]})


def spans(*spans):
  return mrqa(detected_answers=[{"text": "Bob", "char_spans": [*spans]}])


# Format -> file, its content, a part of the line.
REFUSED = {
  "table": [
    ("a.tsv", "", "a.tsv: the file is empty"),
    ("a.tsv", "text\tlabel\n", "a.tsv: has no row"),
    ("a.jsonl", "\n\n", "a.jsonl: has no row"),
    ("a.xlsx", "x", "the name ends in '.xlsx'; expected .tsv"),
    ("a.csv", b"PK\x03\x04...", "a.csv is zip or Excel (.xlsx)"),
    ("a.csv", "a".encode("utf-16"), "iconv -f utf-16 -t utf-8"),
    ("a.csv", b"<html><body>404", "a.csv is an HTML page"),
    ("a.tsv", b"a\tb\nna\xefve\tz\n", "a.tsv:2: not UTF-8 (byte 0xef"),
    ("a.csv", b"a\ndon\x92t\n", "at 4 of the line); expected UTF-8;"),
    ("a.csv", "a\né\n".encode() + b"\xe9\n", "repair this one"),
    ("a.tsv", "a\tb\nx\ty\nz\n", "a.tsv:3: the row has 1 column;"),
    ("a.csv", "a,b\nx,y,z\n", "a.csv:2: the row has 3 columns; expected"),
    ("a.csv", 'a,b\nx,y\n"z,1\nw,0\n', "a.csv:3: the row that begins"),
    ("a.tsv", "a\tb\ta\n1\t2\t3\n", "a.tsv:1: the column 'a' occurs"),
    ("a.csv", "a,b\n1,2\na,b\n", "a.csv:3: the header line again"),
    ("a.csv", "a;b\n1;2\n", "a.csv:1: semicolons between columns;"),
    ("a.csv", "a|b\n1|2\n", "a.csv:1: bars between columns; expected"),
    ("a.csv", "a\tb\n1\t2\n", "or name the file .tsv"),
    ("a.tsv", "a,b\n1,2\n", "a.tsv:1: commas between columns; expected"),
    ("a.csv", "a, b\n1, 2\n", "a.csv:1: spaces before columns' names"),
    ("a.tsv", 'a\tb\n"x ""y"""\t1\n', "a.tsv:2: fields are quoted as in"),
    ("a.tsv", '"a"\t"b"\n"x"\t"1"\n', "a.tsv:1: the columns' names are"),
    ("a.jsonl", '{"a": 1}\n{"a": 1\n', "a.jsonl:2: not JSON ("),
    ("a.jsonl", "[1]\n", "a.jsonl:1: a JSON int; expected an object"),
    ("a.json", '[{"a": "b"}] []', "a.json:1: not JSON (Extra data"),
    ("a.json", '{"a": "b", "a": "c"}', "the name 'a' occurs twice"),
    ("a.jsonl", "{}\n" + '{"a":' * 10**5, "a.jsonl:2: not JSON ("),
  ],
  "header": [("a.csv", "sentence,class\na,1\n", "seem to be the names of the")],
  "texts": [
    ("a.csv", 'text,label\n"",1\n', "a.csv:2: the text is empty;"),
    ("a.jsonl", '{"text": null}', "a.jsonl:1: the text is null;"),
    ("a.jsonl", '{"text": []}', "a.jsonl:1: the text is a list;"),
    (
      "a.tsv",
      "sentence\tlabel\nx\t1\n",
      "a.tsv:2: no 'text' or 'sequence'; there are",
    ),
    ("a.tsv", "text\ttext_b\nx\ty\n", "--config.task.text_b=text_b"),
    ("a.jsonl", '{"text": "a", "label": ["x"]}', 'the label is ["x"]; '),
    ("a.jsonl", '{"text": "a", "label": {"x": 1}}', "multi_label reads"),
  ],
  "pairs": [("a.csv", "text,text_b\na,\n", "a.csv:2: the text_b is empty")],
  "texts of - and x": [
    ("a.csv", "text,label\na,y\n", "label 'y'; expected one")
  ],
  "scores": [
    ("a.tsv", "text\tlabel\nx\tthree\n", "a.tsv:2: score 'three' is not"),
    ("a.tsv", "text\tlabel\nx\tinf\n", "score 'inf' is not a number"),
    ("a.tsv", "text\tlabel\nx\t1_000\n", "score '1_000' is not a"),
    ("a.tsv", "text\tlabel\nx\t3,8\n", "score '3,8' is not a number"),
    ("a.tsv", "text\tlabel\nx\tTrue\n", "score 'True' is not a number"),
  ],
  "rte": [
    (
      "a.tsv",
      "index\tsentence1\tsentence2\tlabel\n0\tA\tB\tentails\n",
      "a.tsv:2: label 'entails'; expected one of entailment,",
    )
  ],
  "cola": [
    ("a.tsv", "g\t1\t\tA.\ng\t2\t\tB.\n", "a.tsv:2: label '2'; expected")
  ],
  "mrpc": [
    ("a.tsv", "Quality\t#1 String\n1\tA\n", "a.tsv:2: no '#2 String' or")
  ],
  "labels": [
    *(
      ("a.tsv", f"text\tlabels\na\t{value}\n", "expected a list of JSON")
      for value in (
        *("['a', 'b']", "('a', 'b')", "{'a', 'b'}", "['a' 'b']", "[x]", "['x'"),
        *("array(['a'], dtype=object)", "frozenset({'a', 'b'})", "[1], [2]"),
        *("[np.str_('a')]", "tensor([1, 0, 1])", "()", "set()", '{"a": 1}'),
        *("(1, 0, 1)", "[3 10]", '[["a"]]', '["a", null]'),
      )
    ),
    ("a.jsonl", '{"text": "a", "labels": {"a": 1}}', "a list of JSON"),
    *(
      ("a.jsonl", lines({"text": "a", "labels": value}), "of 1 and 0")
      for value in ([1, 0, 1], [1.0, 0.0, 1.0], [True, False], [0, 0], "1 0 1")
    ),
    ("a.tsv", "text\tlabels\na\t1,0,1\n", "1 and 0, not of names;"),
    ("a.tsv", "text\tlabels\na\t[1, 0, 1]\n", "(task.columns)"),
    ("a.tsv", "text\tlabels\na\tx\nb\tx;y\n", "a.tsv:3: the label 'x;y' has"),
  ],
  "columns": [
    ("a.csv", "text,toxic,threat\na,3,0\n", "a.csv:2: toxic is '3'; "),
    ("a.csv", "text,toxic\na,1\n", "a.csv:2: no 'threat'; there are"),
  ],
  "choices": [
    ("a.csv", "ctx,a,b\n1,2,3\n", "a.csv:2: no 'context'; there are"),
    ("a.tsv", "o\ta\tb\tc\t0\no\td\te\tf\t1\n", "--config.task.header, "),
    (
      "a.csv",
      "context,choice0,choice1,label\na,b,c,0\na,b,c,2\n",
      "a.csv:3: label '2'; expected the index of the correct choice, 0 to 1",
    ),
    ("a.jsonl", '{"choices": ["a", "b"]}', "a.jsonl:1: no 'context'; "),
    ("a.jsonl", choice(choices=["b"]), "a choice is empty; expected at"),
    ("a.jsonl", choice(choices="bc"), "choices is bc; expected a list"),
    ("a.jsonl", choice(label=-2), "a.jsonl:1: label '-2'; expected the"),
    ("a.jsonl", choice(label=True), "a.jsonl:1: label true; expected"),
    ("a.jsonl", choice(label="D"), "label 'D'; expected the index of"),
    ("a.jsonl", choice(label="A") + choice(label=1), "but 'A' at"),
    ("a.jsonl", choice(choices=["2", "3", "1"], label=2), "label '2' may be"),
    (
      "a.jsonl",
      choice(choices={"text": ["b", "c"], "label": ["A", "B"]}, label="C"),
      "a.jsonl:1: label 'C'; expected the index of the correct choice, one",
    ),
    ("a.csv", "context,choice1,choice2,label\na,b,c,1\n", "a.csv:2: label '1'"),
    ("a.csv", "context,choice0,choice1\na,,b\n", "a choice is empty"),
  ],
  "choices from 1": [("a.jsonl", choice(label=3), "expected the index of the")],
  "passages": [
    ("a.tsv", "text\tpassage\na\tb\n", "a.tsv:2: no 'query' or"),
    ("a.tsv", "query\ttext\na\tb\n", "a.tsv:2: no 'passage' or"),
    ("a.tsv", "query\tpassage\na\t \n", "the passage is empty;"),
    ("a.jsonl", pair(pos=[]), "a.jsonl:1: the passage is empty;"),
    ("a.jsonl", pair(pos=None), "a.jsonl:1: the pos is null; expected"),
    ("a.jsonl", pair(pos=[{"text": "b"}]), "expected a text, or a"),
    ("a.jsonl", pair(pos="b", neg=[7]), "'[7]'; expected a text, or a"),
    ("a.tsv", "query\tpos\na\t['b', 'c']\n", "of JSON (json.dumps"),
    *(
      ("a.jsonl", pair(pos="b", **{name: 1}), f"task.label={name}; if")
      for name in ("labels", "score", "is_selected", "relevance", "target")
    ),
    ("a.csv", "query,pos,good\na,b,1\na,c,0\n", "'good', a column of"),
    *(
      ("a.jsonl", pair(pos="b", label=value), "a.jsonl:1: label ")
      for value in (0.3, 2, "entailment", [0.9, 0.1], [1, 0])
    ),
    ("a.jsonl", pair(passages=["b", "c"], label=[1]), "has 1 value"),
    ("a.csv", "query,pos,label\na,b,0\n", "a.csv: no passage has"),
    ("a.csv", "query,pos,label\na,b,1\na,b,0\n", "label 0 for the"),
    ("a.jsonl", pair(pos="b", negative_ctxs=[]), "'negative_ctxs' is"),
  ],
  "passages by good": [
    ("a.jsonl", pair(pos="b"), "a.jsonl:1: no 'good'; there")
  ],
  "questions": [
    ("a.json", "", "a.json: the file is empty; expected"),
    ("a.json", '{"data": []}', "a.json: no questions; expected"),
    ("a.json", '{"data":\n [{"x": 1},\n}', "a.json:3: not JSON"),
    ("a.json", "[" * 10**5, "a.json:1: not JSON"),
    ("a.json", '{"version": "1.1"}', "no 'question'; there are"),
    ("a.json", '{"data": {}}', "no 'question'; there are 'data';"),
    ("a.json", f"{flat()}{{", "a.json:2: not JSON"),
    ("a.json", '{"data": [{"paragraphs": [3]}]}', "'paragraphs' is '[3]' "),
    (
      "a.json",
      '{"data": [{"paragraphs": [{"qas": [{"question": "Who?"}]}]}]}',
      "a.json:1: no 'context'; there are 'question'; expected",
    ),
    (
      "web-train.json",
      '{"Data": [{"QuestionId": "tc_1"}], "Domain": "Web"}',
      "TriviaQA's own files are not read; expected its copy in MRQA's format",
    ),
    ("a.json", squad(asked(id=[1])), "'id' is '[1]'; expected a"),
    ("a.json", squad(asked(question=7)), "'question' is '7';"),
    ("a.json", squad(asked(question=" ")), "q: the question is empty"),
    ("a.json", flat(context=["Ada"]), "'context' is \"['Ada']\";"),
    ("a.json", squad(asked(answers=7)), "question q: 'answers' is '7'"),
    ("a.json", squad(asked(answers=["Bob"])), "(it has Bob); expected"),
    *(
      ("a.json", answer("Bob", start), "q: 'answers' is ")
      for start in (True, "x", "8", 8.5, None)
    ),
    ("a.json", squad(asked(answers=[{"text": "Bob"}])), "(it has {'text':"),
    (
      "a.json",
      squad(asked(answers={"text": ["Bob"], "answer_start": [8, 9]})),
      "(text and answer_start have 1 and 2 values); expected",
    ),
    ("a.json", answer("Bob", 19), "question q: the answer 'Bob' is not at its"),
    ("a.json", answer("Bob", -1), "is not at its answer_start=-1,"),
    ("a.json", answer("Bob", 900), "the context has ''; it is at 8"),
    ("a.json", answer("Rome", 3), "the context doesn't contain it"),
    ("a.json", answer("Ko\u0308ln", 26), "has 'Köln,'; the context"),
    ("a.json", squad(asked(answers=[])), "use configs/squad.py:v2 or"),
    ("a.json", squad(asked(), asked("answers", id="q2")), "question q2: no"),
    ("m.jsonl", spans([8, 48]), "[8, 48]; expected 0 <= FIRST <="),
    ("m.jsonl", spans([10, 8]), "[10, 8]; expected 0 <= FIRST <="),
    ("m.jsonl", spans([8, 11]), "'Bob.'; expected 10, as LAST is"),
    ("m.jsonl", spans([7, 7]), "[7, 7], which is whitespace only"),
    ("m.jsonl", spans([8]), "(it has [8], not [FIRST, LAST]);"),
    ("m.jsonl", mrqa(detected_answers="Bob"), "'detected_answers' is"),
    (
      "m.jsonl",
      mrqa(detected_answers={"text": ["a", "b"], "char_spans": [[]]}),
      "(text and char_spans have 2 and 1 values); expected",
    ),
    ("m.jsonl", mrqa(answers=[3]), "'answers' is '[3]'; expected a"),
    ("m.jsonl", mrqa(answers=[], detected_answers=[]), "no answer;"),
  ],
  "questions 2.0": [
    *(
      ("a.json", squad(asked(answers=[], is_impossible=flag)), "tr")
      for flag in ("maybe", "true", 0)
    ),
    ("a.json", flat(is_impossible=True), "but there is the"),
    ("a.json", flat(answers=[], is_impossible=False), "false, but no answer"),
  ],
}
ROWS = [(form, *row) for form, rows in REFUSED.items() for row in rows]


@pytest.mark.parametrize(
  ("form", "name", "content", "line"),
  ROWS,
  ids=[f"{i}-{row[0]}" for i, row in enumerate(ROWS)],
)
def test_a_file_is_refused_in_one_line(tmp_path, form, name, content, line):
  path = tmp_path / name
  data = content if isinstance(content, bytes) else content.encode("utf-8")
  path.write_bytes(data)
  with pytest.raises(DataError) as error:
    read(form, path)
  message = str(error.value)
  assert line in message and "\n" not in message
  assert message.startswith(str(path))


@pytest.mark.parametrize("form", ["table", "texts", "choices", "questions"])
def test_a_missing_file(tmp_path, form):
  with pytest.raises(DataError, match=r"none\.json: No such file"):
    read(form, tmp_path / "none.json")
