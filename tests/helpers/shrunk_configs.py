"""The configs of pretraining, with models so small that each takes seconds."""

import runpy

from helpers.repository import CONFIGS
from maskedlm.config import overrides

# File -> its names with each size. tests/finetune runs those of fine-tuning.
NAMES = {
  path.name: [
    f"{path.name}:{size}" if size else path.name
    for size in runpy.run_path(str(path)).get("SIZES", ("",))
    # Shrunk, a large model is the base one again.
    if size != "large"
  ]
  for path in sorted(CONFIGS.glob("*.py"))
  if "maskedlm.finetune" not in path.read_text()
}


def load(name):
  """Returns the config of a name, shrunk: rows of 40, vectors of 24 numbers."""
  config = overrides.load_config(f"{CONFIGS}/{name}")
  model = config.model
  model.update(width=24, num_heads=4, mlp_width=40, max_positions=48)
  # One layer of each kind: most of the time goes into compiling.
  model.num_layers = 2 if model.local_window else 1
  model.update(dropout=0.0, attention_dropout=0.0, unroll=False)
  if model.embedding_width:
    model.embedding_width = 8
  if model.local_window:
    model.local_window = 8
  if model.num_kv_heads:
    model.num_kv_heads = 2
  config.data.update(length=40, batch_size=8)
  return config
