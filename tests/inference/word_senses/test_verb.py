"""`maskedlm word-senses`, called as users do."""

import json

import pytest

from helpers import sense_files
from maskedlm.inference.word_senses.data import is_held_out

# Ten documents with two senses that differ in the other words only, which even
# an untrained encoder can distinguish.
WORDS = {"cat.1": "the {} sat on the mat", "cat.2": "a {} in paris , said she"}
HELDOUT = 0.3


def columns():
  text = ""
  for document in range(10):
    text += f"# doc d{document}\n"
    for sense, words in (*WORDS.items(), ("cat.2", WORDS["cat.2"])):
      for word in words.format("cat").split():
        known = f"cat\tNOUN\t{sense}" if word == "cat" else "_\t_\t_"
        text += f"{word}\t{known}\n"
      text += "\n"
  return text + "New\tnew\tADJ\tnew.1\n"


@pytest.fixture
def wsd(workdir, verb):
  """Returns a function that runs the verb and returns all that it prints."""

  def call(name, *argv, **how):
    command = "word-senses", name, "--checkpoint", workdir
    return "".join(verb(*command, *argv, **how))

  return call


@pytest.fixture
def trained(wsd, tmp_path):
  data = sense_files.write_columns(tmp_path, columns())
  first = tmp_path / "first.tsv"
  first.write_text("new\tADJ\tnew.1\nother\tADJ\tother.1\n")
  out = tmp_path / "senses.npz"
  said = wsd(
    *("train", "--data", data, "--out", out),
    *("--heldout_share", HELDOUT, "--first_senses", first),
  )
  return data, out, said


def test_train_and_evaluate_on_held_out_documents(wsd, trained, tmp_path):
  data, out, said = trained
  names = [f"d{i}" for i in range(10)]
  held = {n for n in names if is_held_out(n, HELDOUT)}
  assert 0 < len(held) < 10 and "d9" in held  # d9 has the word "New".
  kept = 10 - len(held)
  assert said.splitlines()[-2:] == [
    f"2 senses of 3 words, from {3 * kept} instances in {kept} documents "
    f"-> {out}",
    f"held out: {len(held)} documents",
  ]
  table, keys = tmp_path / "table.json", tmp_path / "keys.txt"
  said = wsd(
    *("evaluate", "--senses", out, "--data", data),
    *("--out", table, "--keys", keys),
  )
  total = 3 * len(held) + 1
  lines = said.splitlines()
  assert lines[0] == (
    f"{total} instances in {len(held)} documents of {data}, held out of "
    "training"
  )
  # All answers are correct; the most frequent sense is for two of three.
  right = 100.0 * 2 / 3
  assert lines[2].split() == [
    *("NOUN", str(total - 1), "0", "100.0", "100.0", "100.0"),
    *(f"{right:.1f}",) * 3,
  ]
  assert lines[3].split()[:4] == ["ADJ", "1", "0", "100.0"]
  assert "first sense: 1 instances, not in the" in said
  assert "no answer" not in "".join(lines[2:])
  rows = {row["name"]: row for row in json.loads(table.read_text())}
  assert rows["ambiguous"]["instances"] == total - 1
  assert rows["NOUN"]["most_frequent"]["f1"] == pytest.approx(2 / 3)
  answers = keys.read_text().splitlines()
  assert len(answers) == total and answers[-1] == "d9.s003.t000 new.1"

  few = wsd("evaluate", "--senses", out, "--data", data, "--max_documents=1")
  assert few.startswith(f"3 instances in 1 document of {data}, held out")


def test_predict(wsd, trained):
  _, out, _ = trained
  output = wsd(
    *("predict", "--senses", out, "the *cat|cat|NOUN* sat on the mat"),
    "a *Cat* in paris , said she",
    "an *other|other|ADJ* *dog*",
  ).splitlines()
  assert output[0] == "the *cat* sat on the mat"
  assert output[1].startswith("  cat.1  1.000  as in: the *cat* sat on the mat")
  assert output[2].startswith("  cat.2  0.")
  assert output[4].startswith("  cat.2  1.000")
  assert output[7] == "  other.1  first sense"
  assert output[9] == "  unknown: the word was not in the training data"

  question = {"tokens": ["the", "cats"], "target": 1, "lemma": "cat"}
  output = wsd(
    *("predict", "--senses", out, "--format=jsonl", "--json", "--top_k=1"),
    stdin=json.dumps(question).encode(),
  )
  made = json.loads(output)
  assert made["target"] == "cats" and made["candidates"] == 2
  assert len(made["senses"]) == 1 and made["line"] == 1
  assert made["senses"][0]["sense"] in WORDS


def test_all_words_of_an_unmarked_text(wsd, trained, tmp_path):
  _, out, _ = trained
  ask = ("predict", "--senses", out, "--top_k=1")
  lines = wsd(*ask, "the cat sat on a new mat", "a Cat , *cat*").splitlines()
  # "new" was in no document of training, but has a first sense. Of the second
  # text only the marked word is asked for.
  assert [line for line in lines if not line.startswith(" ")] == [
    "the *cat* sat on a new mat",
    "the cat sat on a *new* mat",
    "a Cat , *cat*",
    "5 of 7 words of unmarked texts have no answer: they had no sense in "
    "training",
  ]
  assert [line.split()[0] for line in lines if line[0] == " "][1] == "new.1"
  asked = tmp_path / "asked.jsonl"
  asked.write_text('{"tokens": ["cat", "x", "Cat"]}\n{"text": "no one"}\n')
  made = wsd(*ask, "--json", "--input", asked).splitlines()
  assert [json.loads(line)["context"] for line in made[:-1]] == [
    "*cat* x Cat",
    "cat x *Cat*",
  ]
  assert made[-1].startswith("3 of 5 words of unmarked texts")
