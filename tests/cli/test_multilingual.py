"""Several languages on the command line: report, schedule, a short run."""

import json
import types

import numpy as np
import pytest

from helpers import languages
from helpers.prepare_corpus import prepare_corpus
from helpers.repository import CONFIGS
from maskedlm import in_python
from maskedlm.cli import main
from maskedlm.config import defaults, overrides
from maskedlm.core.errors import ConfigError
from maskedlm.data import sampling
from maskedlm.data.batches import domain_mixture
from maskedlm.data.corpus import store
from maskedlm.data.tokenizers.libraries import Special
from maskedlm.data.tokenizers.tokenizer import Encoding
from maskedlm.inference import fill_mask
from maskedlm.planning import vocabularies
from maskedlm.planning.inspect import languages as inspect_languages
from maskedlm.pretraining import objectives
from maskedlm.pretraining.config import split
from maskedlm.runtime import console

XLMR = f"{CONFIGS}/xlmr.py:tiny"
SMALL = [
  "corpus.sentences=lines",
  "corpus.num_workers=1",
  "corpus.heldout_share=0.2",
  "tokenizer.kind=wordpiece",
  "tokenizer.vocab_size=90",
  "model.num_layers=2",
  "model.width=24",
  "model.num_heads=4",
  "model.mlp_width=40",
  "model.dropout=0.0",
  "model.attention_dropout=0.0",
  "model.unroll=False",
  "data.length=16",
  "data.batch_size=8",
  "train.num_steps=3",
  "train.log_every=1",
  "train.eval_every=3",
  "train.eval_rows=12",
  "train.checkpoint_every=3",
  "optimizer.warmup_steps=1",
]


@pytest.fixture(scope="module")
def argv(tmp_path_factory):
  """Returns the arguments of a small run on the three made-up languages."""
  folder = tmp_path_factory.mktemp("multilingual")
  made = languages.make_config(folder)
  made.tokenizer.lowercase = False  # As that of XLM-R.
  corpus = prepare_corpus(made, folder / "corpus")
  return [
    f"--config={XLMR}",
    f"--config.corpus.path={corpus.path}",
    f"--config.corpus.parts={made.corpus.parts}",
    *(f"--config.{option}" for option in SMALL),
  ]


# The schedule.


def test_the_schedule_by_hand():
  # 210 rows an epoch: 120, 60, 30 for alpha = 1/2; then longer rows.
  short = tuple(
    domain_mixture.DomainShare(n, r, d)
    for n, r, d in (("a", 160, 120), ("b", 40, 60), ("c", 10, 30))
  )
  long = tuple(
    domain_mixture.DomainShare(n, r, d)
    for n, r, d in (("a", 80, 60), ("b", 20, 30), ("c", 5, 15))
  )
  config = defaults.default("roberta")
  config.train.num_steps = 100
  config.data.batch_size = 21
  config.phases = ({}, {"share": 0.2, "data.batch_size": 7})
  corpus = types.SimpleNamespace(
    domains=[{"name": n, "train": {"tokens": t}} for n, t in
           (("a", 1600), ("b", 400), ("c", 100))]
  )  # fmt: skip
  tasks = [types.SimpleNamespace(shares=shares) for shares in (short, long)]
  table = inspect_languages.language_schedule(split(config), tasks, corpus)
  # 80 steps of 21 are 8 epochs of 210; 20 of 7 are 4/3 epochs of 105.
  assert table["c"] == {
    "tokens": 100,
    "rows": 10,
    "natural_share": 10 / 210,
    "share": 30 / 210,
    "rows_per_epoch": 30,
    "rows_read": pytest.approx(8 * 30 + 20),
    "repeats": pytest.approx(24 + 4),
    "tokens_read": pytest.approx(2800),
  }
  assert table["a"]["repeats"] == pytest.approx(6 + 1)
  head, *lines = inspect_languages.format_schedule(table)
  assert "repeats" in head and [line.split()[0] for line in lines] == [*"abc"]


def test_inspect_shows_the_schedule(argv, capsys, tmp_path, uncompiled):
  page = tmp_path / "page.html"
  assert main.call(["inspect", *argv, "--json", f"--html={page}"]) == 0
  figures = json.loads(capsys.readouterr().out)
  table = figures["languages"]
  assert list(table) == list(languages.LETTERS)
  rows = [x["rows"] for x in table.values()]
  for x, q in zip(
    table.values(), sampling.sampling_shares(rows, 0.3), strict=True
  ):
    assert x["share"] == pytest.approx(q, abs=1 / sum(rows))
  assert sum(x["rows_read"] for x in table.values()) == pytest.approx(3 * 8)
  assert "Languages, drawn by data.alpha=0.3" in page.read_text()


@pytest.mark.parametrize("objective", ["mlm_nsp", "electra", "causal"])
def test_every_objective_mixes_languages(objective, argv):
  options = overrides.load_config(XLMR, argv[1:])
  config = defaults.default(objective)
  for section in ("corpus", "tokenizer", "model", "data", "train"):
    config[section].update(options[section].to_dict())
  corpus = store.open_corpus(config.corpus.path)
  task = objectives.make_task(config, corpus)
  shares = task.shares
  assert [s.name for s in shares] == list(languages.LETTERS)
  assert task.batch_at("train", 5)["language_ids"].shape == (8,)
  assert task.num_heldout_batches > 0
  # Shares instead of alpha.
  config.data.shares = ",".join(f"{s.name}={i}" for i, s in enumerate(shares))
  found = objectives.make_task(config, corpus).shares
  rows = sum(share.num_rows for share in found)
  for i, share in enumerate(found):
    assert share.drawn == pytest.approx(rows * i / 3, abs=1)


def test_a_run_on_several_languages(argv, tmp_path, capsys, on_one):
  config = overrides.load_config(XLMR, argv[1:])
  assert in_python.run_pretraining(config, tmp_path)
  result = json.loads((tmp_path / "result.json").read_text())
  assert result["steps"] == 3 and np.isfinite(result["heldout_mlm_loss"])
  # Each language is in result.json, the log, the table and the metrics.
  each = result["languages"]
  parts = store.open_corpus(config.corpus.path).domains
  assert list(each) == sorted(part["name"] for part in parts)
  for part in parts:
    values, count = each[part["name"]], part["heldout"]
    nats = values["mlm_loss"] * count["tokens"] / count["characters"]
    assert values["bits_per_character"] == pytest.approx(nats / np.log(2))
  shown, bits = capsys.readouterr(), each["yo"]["bits_per_character"]
  line = next(x for x in shown.err.splitlines() if "bits/character |" in x)
  assert line.startswith("step 3 held out") and line.endswith(f"yo {bits:.3f}")
  row = next(x for x in shown.out.splitlines() if x.split()[:1] == ["yo"])
  assert row.split()[2] == f"{bits:.3f}"
  logged = (tmp_path / "metrics.jsonl").read_text().splitlines()
  assert json.loads(logged[-1])["heldout/yo/bits_per_character"] == bits
  assert not any("/yo" in name for name in json.loads(logged[0]))


# The report.


def fake(ids, tokens):
  """Returns a tokenizer that gives every text the same ids."""
  return types.SimpleNamespace(
    kind="unigram",
    vocab_size=len(tokens),
    special=Special(*5 * [0]),
    tokens=tokens.__getitem__,
    line_separator="\n",
    special_ids=np.array([0]),
    normalize=str,
    # The first two characters are unknown.
    encode=lambda text: Encoding(
      np.array(ids[:1]), np.array([[0, 2]]), np.array([0])
    ),
    encode_batch=lambda texts: [np.array(ids)] * len(texts),
  )


def test_the_report_by_hand():
  made = fake([0, 1, 2, 2, 1], ["<unk>", "<0xE6>", "a"])
  table = vocabularies.measure_vocabularies(
    [vocabularies.Vocabulary("one", made, {"de": 0.25})],
    {"de": ["ab cd", "abcd efg"], "zh": ["x" * 50]},
  )
  # Two texts of five tokens each; four words and 13 characters in total.
  assert table["de"]["vocabularies"]["one"] == {
    "share_of_sample": 0.25,
    "tokens_per_word": 10 / 4,
    "characters_per_token": 1.3,
    "lost_share": 8 / 13,  # Two of each word.
    "byte_share": 0.4,
  }
  # A word of 50 letters: the script has no spaces between words.
  assert table["zh"]["vocabularies"]["one"]["tokens_per_word"] is None
  lines = vocabularies.format_report(table)
  assert lines[-1].split()[0] == "zh" and " - " in lines[-1]


def test_the_report_of_a_config(argv, capsys, tmp_path):
  pytest.importorskip("matplotlib")
  picture = tmp_path / "report.png"
  assert (
    main.call(["tokenizer", "report", *argv, "--json", f"--png={picture}"]) == 0
  )
  table = json.loads(capsys.readouterr().out)
  assert picture.stat().st_size > 10_000
  assert list(table) == list(languages.LETTERS)
  shares = [
    [row["vocabularies"][label]["share_of_sample"] for row in table.values()]
    for label in ("alpha=1", "alpha=0.3")
  ]
  assert [sum(s) for s in shares] == pytest.approx([1, 1])
  assert shares[0][0] > shares[1][0] and shares[0][2] < shares[1][2]
  # A lower alpha gives the smallest language longer tokens.
  few, many = (
    table["yo"]["vocabularies"][label]["characters_per_token"]
    for label in ("alpha=1", "alpha=0.3")
  )
  assert many >= few


def test_the_report_of_saved_tokenizers(argv, capsys, tmp_path):
  corpus = argv[1].partition("=")[2]
  (tmp_path / "en.txt").write_text("abc bad. cab fed?\n")
  options = [f"--tokenizer={corpus}/tokenizer", f"--parts={tmp_path}"]
  assert main.call(["tokenizer", "report", *options]) == 0
  assert capsys.readouterr().out.splitlines()[-1].startswith("en ")
  (tmp_path / "de.jsonl").write_text('{"body": "abc bad. cab fed?"}\n')
  options[1] = f"--parts=de:jsonl:{tmp_path}/de.jsonl"
  assert main.call(["tokenizer", "report", *options, "--text_field=body"]) == 0
  assert capsys.readouterr().out.splitlines()[-1].startswith("de ")
  with pytest.raises(ConfigError, match="needs text: give --parts"):
    main.call(["tokenizer", "report", options[0]])


@pytest.mark.parametrize(
  ("verb", "option", "expected"),
  [
    ("tokenizer report", "corpus.parts=", r"corpus\.parts=''"),
    ("tokenizer report", "corpus.heldout_share=0.0", "heldout_share=0"),
    ("inspect", "tokenizer.alpha=1.5", r"tokenizer.alpha=1.5.*0\.0 to 1\.0"),
    ("inspect", "data.alpha=nan", r"data.alpha=nan.*0\.0 to 1\.0"),
    ("pretrain", "data.shares=xx=1,en=2", "'xx' is no domain"),
  ],
)
def test_wrong_options(argv, tmp_path, verb, option, expected):
  """Before a corpus is prepared."""
  words = [*argv, f"--config.{option}"]
  if verb == "pretrain":
    words += [f"--workdir={tmp_path}", "--config.corpus.path="]
  with pytest.raises(ConfigError, match=expected):
    main.call([*verb.split(), *words])
  assert not any(tmp_path.iterdir())


# Right-to-left text.

ARABIC, HEBREW = "\u0643\u062a\u0627\u0628", "\u05e1\u05e4\u05e8"


def test_right_to_left_text_is_isolated():
  assert console.isolate("book 3") == "book 3"
  for text in (ARABIC, HEBREW, f"a {ARABIC}", "\u0663"):
    assert console.isolate(text) == f"\u2068{text}\u2069"
  filled = fill_mask.FilledText("x", [[(ARABIC, 0.25), ("book", 0.125)]])
  assert fill_mask.format_filled(filled) == (
    f"x\n  \u2068{ARABIC}\u2069 25.0%  book 12.5%"
  )
