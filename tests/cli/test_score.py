"""`maskedlm score`: texts, pairs, files, stdin, minimal pairs, errors."""

import dataclasses
import io
import json
import sys

import jax
import numpy as np
import pytest

import maskedlm
from helpers import untrained, workdirs
from helpers.model_logits import mlm_logits, one_row
from maskedlm.cli import main
from maskedlm.training.checkpoints import load

TEXTS = ["the cat sat on the mat.", "she sold the red book"]


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
  """Returns a workdir with an MLM head and an NSP head."""
  tokenizer = untrained.make_tokenizer()
  cfg = workdirs.config(
    tokenizer, max_positions=untrained.POSITIONS, **untrained.SIZES
  )
  params = workdirs.make_params(cfg, ("pooler", "mlm_head", "nsp_head"))
  folder = tmp_path_factory.mktemp("score") / "run"
  return workdirs.save(folder, params, cfg, tokenizer)


@pytest.fixture(scope="module")
def model(workdir):
  return maskedlm.load(workdir)


@pytest.fixture
def call(workdir, capsys, monkeypatch):
  def run(*argv, stdin=""):
    monkeypatch.setattr(
      sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))
    )
    argv = ["score", "--checkpoint", str(workdir), *map(str, argv)]
    code = main.main(argv)
    return code, *capsys.readouterr()

  return run


def test_texts_and_their_tokens(call, model):
  code, out, told = call(*TEXTS)
  made = model.score(TEXTS)
  assert code == 0 and "2 texts" in told
  lines = out.splitlines()
  assert lines[0] == TEXTS[0]
  assert f"log-likelihood {made[0].log_likelihood:.3f}" in lines[1]
  assert f"pseudo-perplexity {made[0].perplexity:,.2f}" in lines[1]
  table = [line.split() for line in lines[2 : 2 + len(made[0].tokens)]]
  assert [token for _, token in table] == list(made[0].tokens)
  for (p, _), expected in zip(table, made[0].log_probabilities, strict=True):
    assert float(p) == pytest.approx(expected, abs=6e-4)
  assert lines[2 + len(table)] == TEXTS[1]


def test_json_of_texts_and_pairs_in_the_order_of_the_lines(call, model):
  pair = {"text": TEXTS[1], "text_b": TEXTS[0]}
  lines = [TEXTS[0], "\t".join(TEXTS), "", json.dumps(pair), TEXTS[1]]
  code, out, _ = call("--json", stdin="\n".join(lines))
  assert code == 0
  found = [json.loads(line) for line in out.splitlines()]
  assert [one["line"] for one in found] == [1, 2, 4, 5]
  for i, made in zip((0, 3), model.score(TEXTS), strict=True):
    assert found[i]["text"] == made.text
    for name in ("log_likelihood", "perplexity"):
      expected = pytest.approx(getattr(made, name), rel=1e-4)
      assert found[i][f"pseudo_{name}"] == expected
    spans = [made.text[t["begin"] : t["end"]] for t in found[i]["tokens"]]
    assert "".join(spans) == made.text.replace(" ", "")
  shares = model.next_sentence([tuple(TEXTS), (TEXTS[1], TEXTS[0])])
  for i, p in zip((1, 2), shares, strict=True):
    assert found[i]["probability"] == pytest.approx(p, abs=1e-5)
  assert found[2]["text_b"] == TEXTS[0]
  (one,) = map(json.loads, call("--json", TEXTS[0])[1].splitlines())
  assert "line" not in one and one["text"] == TEXTS[0]


def test_files_fields_and_out(call, tmp_path):
  (tmp_path / "a.txt").write_text("\n".join(TEXTS))
  (tmp_path / "b.jsonl").write_text(json.dumps({"t": TEXTS[0]}))
  out = tmp_path / "scores.jsonl"
  argv = "--input", tmp_path / "a.txt", tmp_path / "b.jsonl"
  code, printed, _ = call(*argv, "--field=t", "--out", out)
  assert code == 0 and not printed
  found = [json.loads(line) for line in out.read_text().splitlines()]
  assert [one["text"] for one in found] == [*TEXTS, TEXTS[0]]
  again = call(*argv, "--field=t", "--json", "--pll=l2r")[1].splitlines()
  assert [json.loads(x)["text"] for x in again] == [*TEXTS, TEXTS[0]]
  # A text may look like an object.
  assert call("--format=text", stdin='{"x": 1}')[0] == 0


def test_a_causal_model_has_no_pseudo_scores(tmp_path, capsys):
  run = untrained.causal(tmp_path / "causal")
  argv = ["score", "--checkpoint", str(run), "--json"]
  assert main.main([*argv, TEXTS[0]]) == 0
  found = json.loads(capsys.readouterr().out)
  (made,) = maskedlm.load(run).score(TEXTS[:1])
  assert found["log_likelihood"] == pytest.approx(made.log_likelihood)
  assert found["perplexity"] == pytest.approx(made.perplexity)
  assert main.main([*argv, "\t".join(TEXTS)]) == 2
  assert "no NSP head" in capsys.readouterr().err
  assert main.main([*argv, "--pll=l2r", TEXTS[0]]) == 2
  assert "l2r" in capsys.readouterr().err


def test_minimal_pairs(call, model, tmp_path):
  file, out = tmp_path / "pairs.jsonl", tmp_path / "out.jsonl"
  pairs = [
    *(("the cat sat", "the mat ran", "one"), ("she ran", "she sat", "one")),
    *(("a book", "A BOOK", "two"), ("the man sold", "the cat sold", "two")),
  ]
  file.write_text(
    "".join(
      json.dumps({"sentence_good": g, "sentence_bad": b, "UID": u}) + "\n"
      for g, b, u in pairs
    )
  )
  code, printed, _ = call("--minimal-pairs", file, "--json", "--out", out)
  assert code == 0
  values = json.loads(printed)
  judged = [json.loads(line) for line in out.read_text().splitlines()]
  correct = []
  for (good, bad, uid), one in zip(pairs, judged, strict=True):
    a, b = (x.log_likelihood for x in model.score([good, bad]))
    assert one["UID"] == uid
    assert one["score_good"] == pytest.approx(a, abs=1e-3)
    assert one["score_bad"] == pytest.approx(b, abs=1e-3)
    correct.append(one["correct"])
    # The tokenizer lowercases: A BOOK is the same.
    assert one["tie"] == (uid == "two" and good == "a book")
    assert one["correct"] == (a > b and not one["tie"])
  assert values["pairs"] == 4 and values["ties"] == 1
  assert values["accuracy"] == sum(correct) / 4
  assert values["UID"]["one"]["correct"] == sum(correct[:2])
  table = call("--minimal-pairs", file)[1].splitlines()
  assert table[0].split() == ["by", "phenomenon", "pairs", "ties", "accuracy"]
  assert table[1].split()[:3] == ["UID", "one", "2"]
  assert table[-2].split() == ["all", "4", "1", f"{sum(correct) / 4:.1%}"]
  assert table[-1] == "by pseudo-log-likelihood; a tie is wrong"


def test_a_model_that_is_both_is_scored_in_both_directions(
  tmp_path, capsys, workdir
):
  """Its head predicts the next token, of the masked or the read text."""
  opened = load.open_checkpoint(workdir)
  parts = {name: opened.params[name] for name in ("encoder", "mlm_head")}
  made = {}
  for name, changes in (("both", {"shifted": True}), ("one", {"causal": True})):
    cfg = dataclasses.replace(opened.cfg, **changes)
    made[name] = workdirs.save(tmp_path / name, parts, cfg, opened.tokenizer)
  both = maskedlm.load(made["both"])
  (score,) = both.score(TEXTS[:1])
  ids = [2, *score.ids, 3]
  for i, label in enumerate(score.ids, 1):
    row = one_row([*ids[:i], 4, *ids[i + 1 :]])
    logits = mlm_logits(parts, opened.cfg, row, np.array([[i - 1]]))
    expected = jax.nn.log_softmax(logits[0, 0])[label]
    made_p = score.log_probabilities[i - 1]
    assert made_p == pytest.approx(float(expected), abs=1e-4)

  pairs = tmp_path / "pairs.jsonl"
  pairs.write_text('{"sentence_good": "the cat", "sentence_bad": "the mat"}')
  for argv in (["--json", TEXTS[0]], ["--minimal-pairs", str(pairs), "--json"]):
    printed = []
    for path, flags in ((made["both"], ["--causal"]), (made["one"], [])):
      argv_ = ["score", "--checkpoint", str(path), *flags, *argv]
      assert main.main(argv_) == 0
      printed.append(json.loads(capsys.readouterr().out))
    assert printed[0] == printed[1]
  assert printed[0]["causal"] and printed[0]["pairs"] == 1


@pytest.mark.parametrize(
  ("command", "stdin", "words"),
  [
    ("--input={file} a", "", ["--input", "--minimal_pairs"]),
    ("--field=x a", "", ["--field=x"]),
    ("--length=99 a", "", ["length=99", "48"]),
    ("--causal a", "", ["--causal", "gptbert", "leave it out"]),
    ("--causal", "a\tb", ["--causal has no effect on two texts"]),
    ("--pll=l2r", "a\na\tb", ["--pll=l2r has no effect on two texts"]),
    ("", "", ["stdin", "no line"]),
    ("", "a\n\n \tb", ["stdin:3", "tab"]),
    ("", '{"text": " ", "text_b": "x"}', ["stdin:1", "the text is empty"]),
    ("", '{"text": "x"', ["stdin:1", "JSON"]),
  ],
)
def test_errors_are_one_line(call, tmp_path, command, stdin, words):
  file = tmp_path / "the.txt"
  file.write_text("some text")
  code, out, told = call(*command.format(file=file).split(), stdin=stdin)
  (line,) = told.strip().splitlines()
  assert code == 2 and not out
  assert line.startswith("error: ")
  assert all(word in line for word in words), line
