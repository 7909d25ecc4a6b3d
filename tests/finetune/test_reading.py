"""Sources of labelled files, and how they are read beside a checkpoint."""

import functools
import json

import pytest

from helpers import untrained
from maskedlm.cli import main
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune import config as configs
from maskedlm.finetune import data_files, splits


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """Returns the workdir of a model of tags."""
  return untrained.finetuned(tmp_path_factory.mktemp("reading") / "run", "ner")


def test_override():
  tokens = ["--config.task.label=stars", "--config.task.header=('a','stars')"]
  task = data_files.with_overrides("classification", {"pooler": False}, tokens)
  options = task.options
  assert (options.label, options.header) == ("stars", ("a", "stars"))
  assert not options.pooler
  token = "--config.task.allow_impossible=True"
  task = data_files.with_overrides("question_answering", {}, [token])
  assert task.options.allow_impossible
  with pytest.raises(ConfigError, match="of dependency: none"):
    data_files.with_overrides("dependency", {}, [token])


def test_options_of_reading_can_be_set_beside_a_checkpoint(
  folder, tmp_path, capsys
):
  workdir = str(folder)
  lines = ["1 the O x", "2 cat I-PER x", "", "1 a I-LOC x", "2 b O x", ""]
  path = tmp_path / "test.conll"
  path.write_text("\n".join(lines))
  columns = ["--config.task.token_column=1", "--config.task.tag_column=2"]
  argv = ["evaluate", "--checkpoint", workdir, "--data", str(path), *columns]
  assert main.main(argv) == 2
  error = capsys.readouterr().err
  assert error.count("\n") == 1 and "--config.task.repair_bio=True" in error
  for value in ("repair_bio=True", "file_scheme=iob1"):
    assert main.main([*argv, "--json", f"--config.task.{value}"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 2
  predict = ["predict", *argv[1:], "--json", "--config.task.repair_bio=True"]
  assert main.main(predict) == 0
  found = map(json.loads, capsys.readouterr().out.splitlines())
  assert [made["tokens"] for made in found] == [["the", "cat"], ["a", "b"]]
  transfer = ["transfer", "--checkpoint", workdir, "--json", *columns]
  transfer += ["--data", f"en:{path}", "--config.task.repair_bio=True"]
  assert main.main(transfer) == 0
  result = json.loads(capsys.readouterr().out)
  assert result["languages"]["en"]["examples"] == 2


@pytest.mark.parametrize("verb", ["evaluate", "predict", "transfer"])
@pytest.mark.parametrize(
  ("token", "message"),
  [
    (
      "--config.task.repair_boi=True",
      "of tagging: token_column, tag_column, conllu_tag, file_scheme, "
      'repair_bio (did you mean "repair_bio"?)',
    ),
    ("--config.task.crf=True", "--config.task.crf: "),
    ("--config.task.tag_column=x", "--config.task.tag_column=x: invalid"),
    ("--config.task.repair_bio=so", "--config.task.repair_bio=so: "),
    ("--config.task.file_scheme=bo", "task.file_scheme='bo' is unknown ("),
    ("--config.task.repair_bio", "expected --config.task.NAME=VALUE"),
    ("--config.data.length=8", "expected --config.task.NAME=VALUE"),
    ("--config=a.py", "expected --config.task.NAME=VALUE"),
  ],
)
def test_other_options_can_not_be_set_beside_a_checkpoint(
  folder, capsys, verb, token, message
):
  data = f"{'en:' if verb == 'transfer' else ''}{__file__}"
  argv = [verb, "--checkpoint", str(folder), "--data", data, token]
  assert main.main(argv) == 2
  error = capsys.readouterr().err
  assert error.startswith("error: ") and error.count("\n") == 1
  assert message in error


# --- Several files ---


def test_a_source_is_a_file_or_several(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  for name in ("b.tsv", "a.tsv", "c.txt", "x[1].tsv", "d,e.tsv", "f/g/h.tsv"):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("text\tlabel\n")
  assert data_files.find_files("?.tsv") == ["a.tsv", "b.tsv"]
  assert data_files.find_files("c.txt, ?.tsv,a.tsv") == [
    "c.txt",
    "a.tsv",
    "b.tsv",
  ]
  assert data_files.find_files("f/**/*.tsv") == ["f/g/h.tsv"]
  # Names that look like something else; read_examples reports missing ones.
  for name in ("x[1].tsv", "d,e.tsv", "none.tsv", "tfds:a/b:train[:5%]"):
    assert data_files.find_files(name) == [name]
  assert data_files.find_files("x[1].tsv,c.txt") == ["x[1].tsv", "c.txt"]
  monkeypatch.setenv("MASKEDLM_DATA", "data")
  for name in ("data/ner/train.conll", "a.tsv,data/*.tsv"):
    with pytest.raises(DataError, match="Set MASKEDLM_DATA to the folder"):
      data_files.find_files(name)
  with pytest.raises(DataError, match=r"\*\.json: no file matches"):
    data_files.find_files("a.tsv,*.json")
  with pytest.raises(DataError, match="',' names no file"):
    data_files.find_files(",")


def test_files_of_different_formats_are_one_set(tmp_path):
  pyarrow = pytest.importorskip("pyarrow")
  parquet = pytest.importorskip("pyarrow.parquet")
  (tmp_path / "1.tsv").write_text("text\tlabel\none\tx\n")
  (tmp_path / "2.jsonl").write_text('{"text": "two", "label": "y"}\n')
  table = pyarrow.table({"label": ["x"], "text": ["three"]})
  parquet.write_table(table, tmp_path / "3.parquet")
  task = configs.make_task("classification", {})
  found = data_files.read_examples(task, str(tmp_path / "*"))
  assert [(e.text, e.label) for e in found] == [
    ("one", "x"),
    ("two", "y"),
    ("three", "x"),
  ]
  assert found[2].where == f"{tmp_path / '3.parquet'}:1"


def test_ids_are_unique_over_all_files(tmp_path):
  task = configs.make_task("question_answering", {})
  for name, keys in (("a.jsonl", ("1", "2")), ("b.jsonl", ("3", "1"))):
    rows = [{"id": k, "question": "Who?", "context": "Ann left."} for k in keys]
    (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
  read = functools.partial(data_files.read_examples, task)
  assert len(read(str(tmp_path / "a.jsonl"))) == 2
  with pytest.raises(DataError) as error:
    read(str(tmp_path / "*.jsonl"))
  assert str(error.value).startswith(
    f"{tmp_path}/b.jsonl:2: the id '1' occurs twice, first in "
    f"{tmp_path}/a.jsonl:1; expected each once"
  )


def test_a_single_group_is_split_by_example(tmp_path):
  task = configs.make_task("spans", {})
  (tmp_path / "a.conll").write_text("cat B-X\n\n" * 100)
  data = configs.default("spans").data
  data.train = str(tmp_path / "a.conll")
  train, dev = splits.split_examples(task, data)
  assert len(train) + len(dev) == 100
  assert 1 < len(dev) < 30


def test_the_fingerprint_does_not_depend_on_the_file(tmp_path):
  task = configs.make_task("tagging", {"task": "pos"})
  texts = ("cat O\n", "dog O\n", "cat X\n")
  made = []
  for i, text in enumerate((*texts, texts[0])):
    path = tmp_path / f"{i}.conll"
    path.write_text(text)
    made.append(data_files.read_examples(task, str(path)))
  assert made[0] != made[3]  # They differ in `where`.
  assert splits.fingerprint(made[0]) == splits.fingerprint(made[3])
  of_all = {splits.fingerprint(x) for x in made}
  # The order counts, and which part is for training.
  of_all |= {
    splits.fingerprint(made[0] + made[1]),
    splits.fingerprint(made[1] + made[0]),
    splits.fingerprint(made[0], made[1]),
  }
  assert len(of_all) == 6


def test_two_groups_are_split_by_group():
  task = configs.make_task("spans", {})._replace(
    read_examples=lambda source: [(source, i % 2) for i in range(100)],
    split_key=lambda example: example[1],
  )
  data = configs.default("spans").data
  data.train = "of two groups"
  found = set()
  for data.dev_share in (0.1, 0.3, 0.5, 0.7, 0.9):
    try:
      found.add(tuple(map(len, splits.split_examples(task, data))))
    except DataError:  # Both are on one side.
      continue
  assert found == {(50, 50)}


CONLLU = (
  "1\the\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\tran\t_\t_\t_\t_\t{}\t{}\t_\t_\n\n"
)
QUESTION = (
  '{"question": "a", "context": "b", "answers": {"text": ["b"], '
  '"answer_start": [%d]}}\n'
)
BAD = {
  "classification": ("a.csv", "text,label\n", "a,x\n", "b\n"),
  "multi_label": ("a.csv", "text,labels\n", "a,x\n", ",y\n"),
  "multiple_choice": (
    "a.tsv",
    "context\tchoice0\tchoice1\tlabel\n",
    "a\tb\tc\t1\n",
    "a\tb\t\t1\n",
  ),
  "multiple_choice label": (
    *("a.tsv", "context\tchoice0\tchoice1\tlabel\n"),
    *("a\tb\tc\t1\n", "a\tb\tc\t2\n"),
  ),
  "classification header": (
    *("a.csv", "text,label\n"),
    *("a,x\n", "text,label\n"),
  ),
  "reranking": ("a.csv", "query,passage\n", "a,b\n", "c,\n"),
  "retrieval": ("a.csv", "query,passage\n", "a,b\n", "c,\n"),
  "similarity": ("a.csv", "text,text_b,label\n", "a,b,1\n", "a,b,x\n"),
  "question_answering": ("a.jsonl", "", QUESTION % 0, QUESTION % 1),
  "question_answering unknown": (
    *("a.jsonl", ""),
    *(QUESTION % 0, '{"question": "a", "context": "b"}\n'),
  ),
  "tagging": ("a.tsv", "", "a\tO\n\n", "b\tO\tO\n\n"),
  "spans": (
    "a.jsonl",
    "",
    '{"tokens": ["a"], "tags": ["O"]}\n',
    '{"tokens": "a"}\n',
  ),
  "dependency": (
    "a.conllu",
    "",
    CONLLU.format(0, "root"),
    CONLLU.format(0, "_"),
  ),
  "semantic_roles": (
    "a.txt",
    "",
    "a - (A0*)\nran ran (V*)\n\n",
    "a - (A0*(A1*)\nran ran *)\n\n",
  ),
  "relations": (
    *("a.jsonl", ""),
    '{"text": "<e1>a</e1> <e2>b</e2>", "relation": "x"}\n',
    '{"text": "<e1>a</e1> b", "relation": "x"}\n',
  ),
  "coreference_chains": (
    *("a.jsonl", ""),
    '{"sentences": [{"words": ["a"], "coref_spans": []}]}\n',
    '{"sentences": [{"words": ["a"], "coref_spans": [[0, 0, 1]]}]}\n',
  ),
  "constituency": ("a.ptb", "", "(S (NN a))\n", "(S (NP the dog))\n"),
  "constituency not closed": (
    *("a.ptb", ""),
    "(S\n  (NN a))\n",
    "(S (NP (NN the)\n  (NN dog))\n",
  ),
  "constituency flush left": (
    *("a.ptb", ""),
    "(S\n(NN a)\n(NN c))\n",
    "(S (NP (NN the)\n(NN dog))\n",
  ),
  "constituency JSON": (
    *("a.jsonl", ""),
    '{"tree": "(S (NN b))"}\n',
    '{"tree": "(S (NN b)) (S (NN c))"}\n',
  ),
  "constituency columns": (
    *("a.txt", ""),
    "d 0 0 a NN (S*) -\n\n",
    "d 0 0 a NN (S(NP*) -\n\n",
  ),
  "tagging BIO": ("a.tsv", "", "a\tB-X\nb\tI-X\n\n", "a\tO\nb\tI-X\n\n"),
  "tagging unknown": ("a.tsv", "", "a\tB-X\n\n", "a\tO\nb\tX|B-Y\n\n"),
  "tagging none": ("a.tsv", "", "a\tB-X\n\n", "a\t_\nb\tO\n\n"),
  "tagging CoNLL-2012": (
    *("a.txt", ""),
    "d 0 0 a NN * - - - - (X*) -\n\n",
    "d 0 0 a NN * - - - - (X* -\n\n",
  ),
  "spans layers": (
    *("a.tsv", ""),
    "a\tB-X\tO\nb\tI-X\tB-Y\n\n",
    "a\tI-X\tI-Y\nb\tI-X\tI-Y\n\n",
  ),
  "spans second": (
    *("a.tsv", ""),
    "a\tB-X\tO\nb\tI-X\tB-Y\n\n",
    "a\tB-X\tI-Y\nb\tI-X\tI-Y\n\n",
  ),
  "semantic_roles CoNLL-2012": (
    *("a.txt", ""),
    "d 0 0 a NN * go 01 - - * (V*) -\n\n",
    "d 0 1 a NN * go 01 - - * (V*) -\n\n",
  ),
  "relations SemEval": (
    *("a.txt", ""),
    '@\t"<e1>a</e1> <e2>b</e2>"\nX\nComment: none\n\n',
    '@\t"<e1>a</e1> b"\nX\n\n',
  ),
  "relations none": (
    *("a.txt", ""),
    '@\t"<e1>a</e1> <e2>b</e2>"\nX\n\n',
    '@\t"<e1>a</e1> <e2>b</e2>"\n\n',
  ),
  "coreference_chains CoNLL-2012": (
    *("a.txt", ""),
    "#begin document (@)\nd 0 0 a NN (7)\n\n#end document\n",
    "#begin document (@)\nd 0 0 b NN 7)\n\n#end document\n",
  ),
}  # A kind, what is bad -> name, header, a row (@: number), a bad one.


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_left_out_and_counted(case, tmp_path, capsys):
  kind, (name, header, good, bad) = case.split()[0], BAD[case]
  path = tmp_path / name
  rows = enumerate((good, bad, good, good))
  path.write_text(header + "".join(x.replace("@", str(i)) for i, x in rows))
  options = {"nested": True} if kind == "spans" else {}
  task, data = configs.make_task(kind, options), configs.default(kind).data
  data.train = data.dev = str(path)
  with pytest.raises(DataError, match=r"--config\.data\.skip_bad=True leaves"):
    splits.split_examples(task, data)
  capsys.readouterr()
  data.skip_bad = True
  train, dev = splits.split_examples(task, data)
  assert (len(train), len(dev)) == (3, 3)
  err = capsys.readouterr().err
  assert err.count(f"{path}: 1 bad row left out: {path}") == 2


def test_a_document_without_its_first_sentence_keeps_its_bounds(tmp_path):
  path = tmp_path / "a.txt"
  path.write_text(
    "#begin document (a); part 000\na 0 0 Ann - (1)\n\n#end document\n"
    "#begin document (b); part 000\nb 0 0 It - -\nb 0 1 -\n\n"
    "b 0 0 Bob - (1)\nb 0 1 left - -\n\n#end document\n"
    "#begin document (c); part 000\nc 0 0 -\nc 0 1 Cy - -\n\n#end document\n"
  )
  task = configs.make_task("coreference_chains", {})
  data = configs.default("coreference_chains").data
  data.train = data.dev = str(path)
  data.skip_bad = True
  train, _ = splits.split_examples(task, data)
  assert [(x.id, x.words, x.chains) for x in train] == [
    ("(a); part 000", ("Ann",), (((0, 1),),)),
    ("(b); part 000", ("Bob", "left"), (((0, 1),),)),
    ("(c); part 000", (), ()),
  ]


def test_objects_of_a_list_that_are_none_are_left_out(tmp_path):
  path = tmp_path / "a.json"
  path.write_text('[{"text": "a", "label": "x"}, 7, {"text": "b"}]')
  data = configs.default("classification").data
  data.train = data.dev = str(path)
  task = configs.make_task("classification", {})
  with pytest.raises(DataError, match=r"a\.json:2: a JSON int.*skip_bad=True"):
    splits.split_examples(task, data)
  data.skip_bad = True
  assert [len(x) for x in splits.split_examples(task, data)] == [2, 2]


@pytest.mark.parametrize("skip", [False, True])
def test_a_missing_column_is_not_left_out_row_by_row(skip, tmp_path):
  path = tmp_path / "a.csv"
  path.write_text("sentence,label\nfine,pos\nbad,neg\n")
  task = configs.make_task("classification", {"text": "review"})
  data = configs.default("classification").data
  data.train, data.skip_bad = str(path), skip
  with pytest.raises(DataError, match="'review'") as caught:
    splits.split_examples(task, data)
  assert "skip_bad" not in str(caught.value)
