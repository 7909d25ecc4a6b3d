"""Pretraining that starts from another model (init_from)."""

import json
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest

from helpers import in_process, untrained, workdirs
from maskedlm.config import defaults as config_lib
from maskedlm.core.errors import ConfigError
from maskedlm.data.batches import placeholder_corpus
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.modeling.architecture import restored
from maskedlm.pretraining import objectives
from maskedlm.pretraining.initial import init_from
from maskedlm.training.checkpoints import load, manager

STEPS = (
  "--config.train.num_steps=1",
  "--config.train.eval_rows=0",
  "--config.optimizer.warmup_steps=0",
)
STILL = "--config.optimizer.learning_rate=1e-12"  # The weights hardly change.


@pytest.fixture(scope="module")
def general(tiny, tmp_path_factory):
  """Returns the workdir of a finished run to start from."""
  tokenizer = load_tokenizer(tiny[1] / "tokenizer")
  cfg = workdirs.config(tokenizer, num_layers=2, num_heads=4, max_positions=48)
  params = workdirs.make_params(cfg, ("mlm_head", "pooler", "nsp_head"))
  return workdirs.save(
    tmp_path_factory.mktemp("general") / "run", params, cfg, tokenizer
  )


def another(tiny, tmp_path, objective="roberta"):
  """Writes a config for other text, of BERT-base's size and tokenizer."""
  path = tmp_path / "domain.py"
  path.write_text(
    "from maskedlm.config import defaults as base\n"
    "def get_config():\n"
    f"  c = base.default({objective!r})\n"
    "  c.corpus.source = 'docstrings:textwrap,string,shutil,random'\n"
    "  c.corpus.heldout_share = 0.2\n"
    "  c.corpus.num_workers = 1\n"
    "  c.data.length = 24\n"
    "  c.data.batch_size = 8\n"
    "  c.model.update(dropout=0.0, attention_dropout=0.0, unroll=False)\n"
    "  return c\n"
  )
  return path


def arrays(tree, path=""):
  if isinstance(tree, dict):
    for name in sorted(tree):
      yield from arrays(tree[name], f"{path}/{name}")
  else:
    yield path, np.asarray(tree)


def test_weights_architecture_and_tokenizer_are_copied(tiny, general, tmp_path):
  workdir = tmp_path / "domain"
  made = in_process.run(
    "pretrain",
    f"--config={another(tiny, tmp_path)}",
    f"--config.init_from={general}",
    f"--workdir={workdir}",
    *STEPS,
    STILL,
  )
  assert made.returncode == 0, made.stderr
  assert "encoder, mlm_head" in made.stderr
  config = json.loads((workdir / "config.json").read_text())
  assert config["model"]["width"] == 24 and config["model"]["num_layers"] == 2
  assert config["model"]["dropout"] == 0.0  # The run's own.
  assert config["tokenizer"]["vocab_size"] == 500
  before, _ = load.load_params(general)
  after, meta = load.load_params(workdir)
  assert set(after) == {"encoder", "mlm_head"}
  assert meta["task"]["objective"] == "roberta"
  old = dict(arrays({name: before[name] for name in after}))
  new = dict(arrays(after))
  assert old.keys() == new.keys()
  for path, x in old.items():
    np.testing.assert_allclose(new[path], x, rtol=0, atol=1e-9, err_msg=path)
  # It resumes like any run.
  again = in_process.run(
    "pretrain",
    f"--config={another(tiny, tmp_path)}",
    f"--config.init_from={general}",
    f"--workdir={workdir}",
    *STEPS,
    STILL,
    "--config.train.num_steps=2",
  )
  assert again.returncode == 0, again.stderr
  assert "continuing from the checkpoint of step 1 of 2" in again.stderr
  assert "weights of" not in again.stderr


def test_options_of_the_command_line_keep_their_values(general):
  config = config_lib.default("roberta")
  config.init_from = str(general)
  config.model.norm_epsilon = 1e-3
  config.model.rope_theta = 160_000.0
  init_from.copy_architecture(config, given=["model.rope_theta"])
  assert config.model.rope_theta == 160_000.0
  assert config.model.norm_epsilon == 1e-12
  assert config.model.max_positions == 48
  assert config.tokenizer.path == str(general / "tokenizer")


def test_copying_the_architecture_reads_no_weights(general, tmp_path):
  """Every host does it at every start, and weights may be gigabytes."""
  copy = shutil.copytree(general, tmp_path / "run")
  for params in copy.glob("checkpoints/*/params"):
    shutil.rmtree(params)
    params.mkdir()
  config = config_lib.default("roberta")
  config.init_from = str(copy)
  init_from.copy_architecture(config)
  assert config.model.width == 24 and config.tokenizer.vocab_size == 500
  with pytest.raises(manager.CheckpointError, match="no usable checkpoint"):
    init_from.initial_weights(str(copy), log=print)({})


def test_hosts_can_be_connected_afterwards(general):
  """JAX refuses that once its devices are initialised."""
  code = (
    "import sys, socket, jax\n"
    "from maskedlm.config import defaults\n"
    "from maskedlm.pretraining.initial import init_from\n"
    "config = defaults.default('roberta')\n"
    "config.init_from = sys.argv[1]\n"
    "init_from.copy_architecture(config)\n"
    "with socket.socket() as free:\n"
    "  free.bind(('127.0.0.1', 0))\n"
    "  address = f'127.0.0.1:{free.getsockname()[1]}'\n"
    "jax.distributed.initialize(address, 1, 0)\n"
  )
  subprocess.run([sys.executable, "-c", code, str(general)], check=True)


def test_subtrees_that_differ_are_named(general):
  begin = init_from.initial_weights(str(general), log=print)
  fresh, _ = load.load_params(general)
  embeddings = fresh["encoder"]["embeddings"]
  embeddings["position"]["embedding"] = np.zeros((5, 24))
  del embeddings["norm"]
  with pytest.raises(ConfigError) as error:
    begin(fresh)
  assert str(error.value) == (
    f"init_from={general} doesn't fit this config: encoder/embeddings/norm: a "
    "subtree there, absent here; encoder/embeddings/position/embedding: "
    "[48, 24] there, [5, 24] here. Leave out the options that change the "
    "architecture."
  )


def test_new_subtrees_stay_fresh(general):
  said = []
  begin = init_from.initial_weights(str(general), log=said.append)
  fresh, _ = load.load_params(general)
  del fresh["pooler"], fresh["nsp_head"]
  fresh["sbo_head"] = {"bias": np.arange(3.0)}
  begun = begin(fresh)
  assert list(begun) == list(fresh)
  assert begun["sbo_head"] is fresh["sbo_head"]
  assert said == [
    f"weights of {general}: encoder, mlm_head; initialized: sbo_head"
  ]


SAME = {"electra": {"generator_size": 1.0}}


def make_task(objective, start="", **options):
  """Returns the Task of an objective: tiny, or of the model to start from."""
  config = config_lib.default(objective)
  config.model.update(
    num_layers=2, width=24, num_heads=3, mlp_width=40, max_positions=48
  )
  config.tokenizer.vocab_size = 90
  config.data.update(length=24, batch_size=8)
  config.objective.update(options)
  config.init_from = str(start)
  init_from.copy_architecture(config)
  return objectives.make_task(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )


def save(folder, task):
  """Writes the workdir of a run of the task with no steps done."""
  params = workdirs.randomise(jax.eval_shape(task.init, jax.random.key(0)))
  cfg = restored(task.describe["encoder"])
  tokenizer = untrained.make_tokenizer()
  return workdirs.save(folder, params, cfg, tokenizer, **task.describe)


@pytest.mark.parametrize(
  ("old", "new", "taken", "anew"),
  [
    ("mlm_nsp", "electra", "encoder", "discriminator_head generator mlm_head"),
    ("electra", "mlm_nsp", "encoder", "mlm_head nsp_head pooler"),
    ("electra", "roberta", "encoder", "mlm_head"),
    ("electra", "electra", "discriminator_head encoder generator mlm_head", ""),
  ],
)
def test_a_generator_is_copied_with_its_mlm_head(
  tmp_path, old, new, taken, anew
):
  """Even if the shapes are equal."""
  path = save(tmp_path / "old", make_task(old, **SAME.get(old, {})))
  task = make_task(new, path, **SAME.get(new, {}))
  said = []
  fresh = jax.eval_shape(task.init, jax.random.key(0))
  begun = init_from.initial_weights(str(path), log=said.append)(fresh)
  assert [n for n in sorted(fresh) if begun[n] is not fresh[n]] == taken.split()
  assert [n for n in sorted(fresh) if begun[n] is fresh[n]] == anew.split()
  for name in [*taken.split(), *anew.split()]:
    assert name in said[0]


def test_a_generator_of_another_size_is_named(tmp_path):
  path = save(tmp_path / "old", make_task("electra"))
  task = make_task("electra", path, generator_size=1 / 3)
  fresh = jax.eval_shape(task.init, jax.random.key(0))
  with pytest.raises(ConfigError) as error:
    init_from.initial_weights(str(path), log=print)(fresh)
  assert "generator/" in str(error.value) and "encoder/" not in str(error.value)
  assert str(error.value).endswith(
    "and give objective.generator_size and objective.generator_layers as they "
    "were there."
  )


@pytest.mark.parametrize("verb", ["pretrain", "prepare", "inspect"])
def test_a_missing_folder_is_one_line(tiny, tmp_path, verb):
  made = in_process.run(
    verb, f"--config={tiny[0]}", f"--config.init_from={tmp_path / 'none'}"
  )
  assert made.returncode == 2
  (line,) = made.stderr.strip().splitlines()
  assert line.startswith(f"error: {tmp_path / 'none'}: no such folder")
  assert list(tmp_path.iterdir()) == []


def test_inspect_shows_what_comes_from_init_from(tiny, general, tmp_path):
  """From the shapes alone; a corpus of the same tokenizer is accepted."""
  made = in_process.run(
    "inspect",
    f"--config={another(tiny, tmp_path, 'spanbert')}",
    f"--config.init_from={general}",
    f"--config.corpus.path={tiny[1]}",
    "--config.mesh.data=1",  # Not all devices: nothing is compiled.
  )
  assert made.returncode == 0, made.stderr
  marks = {
    line.split()[1]: line.split(maxsplit=2)[2]
    for line in made.stdout.splitlines()
    if line.endswith(("  new", "  from init_from"))
  }
  assert marks["encoder/layers"] == marks["mlm_head/bias"] == "from init_from"
  assert {name.split("/")[0] for name, m in marks.items() if m == "new"} == {
    "sbo_head"
  }
  (line,) = [x for x in made.stdout.splitlines() if "not used of" in x]
  assert {*line.split(": ")[1].split(", ")} == {"pooler", "nsp_head"}
  sizes = dict(arrays(load.load_params(general)[0]))
  taken = sum(
    x.size
    for path, x in sizes.items()
    if path.startswith(("/encoder/", "/mlm_head/"))
  )
  assert f"of which {taken:,} are from {general}" in made.stdout


def test_rows_longer_than_the_model_name_the_option(tiny, general, tmp_path):
  made = in_process.run(
    "inspect",
    f"--config={another(tiny, tmp_path)}",
    f"--config.init_from={general}",
    "--config.data.length=128",
  )
  assert made.returncode == 2
  assert "model.max_positions=48" in made.stderr
  assert "--config.data.length" in made.stderr


def test_a_corpus_of_another_tokenizer_is_refused(tiny, general, tmp_path):
  config = another(tiny, tmp_path)
  made = in_process.run(
    "prepare",
    f"--config={config}",
    f"--out={tmp_path / 'corpus'}",
    "--config.tokenizer.vocab_size=400",
  )
  assert made.returncode == 0, made.stderr
  made = in_process.run(
    "pretrain",
    f"--config={config}",
    f"--config.init_from={general}",
    f"--config.corpus.path={tmp_path / 'corpus'}",
    f"--workdir={tmp_path / 'run'}",
    *STEPS,
  )
  assert made.returncode == 2
  assert "was prepared with other options: tokenizer" in made.stderr


def test_another_tokenizer_is_refused_even_if_it_has_as_many_words(
  general, tmp_path
):
  """Its arrays fit, but have another meaning."""
  vocabulary = tmp_path / "vocab.txt"
  words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  words += [f"word{i}" for i in range(495)]
  vocabulary.write_text("\n".join(words) + "\n")
  config = config_lib.default("roberta")
  config.init_from = str(general)
  config.tokenizer.path = str(vocabulary)
  with pytest.raises(ConfigError, match="maskedlm tokenizer replace"):
    init_from.copy_architecture(config, ["tokenizer.path"])
  config.tokenizer.path = str(
    shutil.copytree(general / "tokenizer", tmp_path / "copy")
  )
  init_from.copy_architecture(config, ["tokenizer.path"])
  assert config.tokenizer.path == str(tmp_path / "copy")
  config.tokenizer.path = ""
  init_from.copy_architecture(config, ["tokenizer.path"])
  assert config.tokenizer.path == str(general / "tokenizer")
