"""The picture of attention heads: how many maps it has, and errors."""

import numpy as np
import pytest

from helpers import untrained, workdirs
from maskedlm.cli import main, plot
from maskedlm.inference.plots import attention
from maskedlm.inference.vectors import attention_maps

TOKENS = ("[CLS]", "$1", "東", "[SEP]", "_")


@pytest.mark.parametrize(
  ("text", "layers"),
  [
    ("-1", [4]),
    ("last", [4]),
    ("1", [1]),
    ("2,-1", [2, 4]),
    ("-4", [1]),
    ("4", [4]),
    ("all", [1, 2, 3, 4]),
  ],
)
def test_layers(text, layers):
  assert plot.attention_layers(text, 4) == layers


def draw(path, layers, heads=5):
  weights = np.random.default_rng(0).dirichlet(np.ones(5), (3, heads, 5))
  maps = [(f"layer {n}", weights[n - 1]) for n in layers]
  attention.draw_attention(str(path), TOKENS, maps, title="A $title$")


def test_four_maps_in_a_row(tmp_path, size):
  draw(tmp_path / "four.png", [2], heads=4)
  draw(tmp_path / "five.png", [2])
  draw(tmp_path / "all.png", [1, 2, 3])
  four, five, every = (
    size(tmp_path / f"{name}.png") for name in ("four", "five", "all")
  )
  row = 150 * (1.2 + attention.TITLE + attention.GAP)
  assert five[0] == four[0] and abs(five[1] - four[1] - row) <= 1
  # Several layers have a row each, with all heads.
  assert abs(every[0] - four[0] - 150 * (1.2 + attention.GAP)) <= 1
  assert abs(every[1] - four[1] - 2 * row) <= 1


def test_scales():
  shown = np.array([[0.25, -np.inf], [-3.0, 2.0]])
  low, high = attention.scores_scale(shown)[1:3]
  assert (low, high) == (-3, 3)
  assert attention.weights_scale(np.array([0.25, 0.5]))[1:3] == (0, 0.5)
  assert set(attention.SCALES) <= set(attention_maps.Attention._fields)


def test_the_verb(workdir, tmp_path, size, verb):
  out = tmp_path / "att.png"
  command = ["plot", "attention", f"--checkpoint={workdir}", f"--out={out}"]
  sentence = "the cat sat on the [MASK] ."
  assert verb(*command, sentence).out == f"{out}: 3 heads\n"
  one = size(out)
  for layer in (["--layers", "-2"], ["--layer", "-2"], ["--layers=last"]):
    assert main.main([*command, *layer, sentence]) == 0
    assert size(out) == one
  for layers in ("all", "1,2"):
    assert verb(*command, f"--layers={layers}", sentence).out.endswith(
      ": 6 heads\n"
    )
    assert size(out)[1] > one[1]

  assert main.main([*command, "--values=scores", sentence]) == 0
  assert size(out) == one


def test_two_models_beside_each_other(tmp_path, size, verb):
  """One with fewer heads, and one whose tokens are others."""
  text = "the cat sat"
  paths = [untrained.causal(tmp_path / "causal"), tmp_path / "two"]
  tokenizer = untrained.make_tokenizer()
  cfg = workdirs.config(
    tokenizer, max_positions=9, **{**untrained.SIZES, "num_heads": 2}
  )
  workdirs.save(paths[1], workdirs.make_params(cfg, ()), cfg, tokenizer)
  out = tmp_path / "both.png"
  both = [f"--checkpoint={path}" for path in paths]
  command = ["plot", "attention", *both, f"--out={out}"]
  assert verb(*command, text).out == f"{out}: 5 heads\n"
  other = untrained.pretrained(tmp_path / "bpe", kind="bpe")
  printed = verb(*command, f"--checkpoint={other}", text, expect=2).err
  assert "bpe have other tokens for this text" in printed
  assert printed.count("\n") == 1
