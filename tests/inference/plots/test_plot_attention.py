"""The picture of attention heads: how many maps it has, and errors."""

import pytest

from helpers import untrained, workdirs
from maskedlm.cli import main, plot


@pytest.mark.parametrize(
  ("text", "layers"),
  [
    ("-1", [4]),
    ("2,-1", [2, 4]),
    ("-4", [1]),
    ("all", [1, 2, 3, 4]),
  ],
)
def test_layers(text, layers):
  assert plot.attention_layers(text, 4) == layers


def test_the_verb(workdir, tmp_path, size, verb):
  out = tmp_path / "att.png"
  command = ["plot", "attention", f"--checkpoint={workdir}", f"--out={out}"]
  sentence = "the cat sat on the [MASK] ."
  assert verb(*command, sentence).out == f"{out}: 3 heads\n"
  one = size(out)
  shown = verb(*command, "--layer", "1,-1", sentence).out
  assert shown.endswith(": 6 heads\n") and size(out)[1] > one[1]
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
