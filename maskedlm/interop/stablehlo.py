"""Exports a checkpoint as a program: `maskedlm export --to stablehlo`.

jax.export writes the forward pass as StableHLO for any batch size and length
and for several platforms at once. The weights, in a separate file, are its
first argument. Running it requires jax and safetensors, but not maskedlm.
"""

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
from flax import traverse_util

from maskedlm.core.errors import InteropError, check_name
from maskedlm.inference.vectors import vectors
from maskedlm.interop import export_source, forward
from maskedlm.interop.huggingface import tensors, tokenizer_files
from maskedlm.runtime import output_files, output_options

PROGRAM, WEIGHTS, ABOUT = "model.stablehlo", "weights.safetensors", "model.json"
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def export_stablehlo(
  path: pathlib.Path,
  out: pathlib.Path,
  *,
  part: str = "",
  platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
  log: Callable[[str], None],
) -> dict[str, Any]:
  """Writes program, weights, tokenizer, README; returns model.json's content.

  Args:
    path: a workdir or a checkpoint.
    part: see export_source.open_export_source.
    platforms: those of PLATFORMS on which the program can run.
    log: called with a line for each part that is left out.

  Raises:
    InteropError: `out` exists, a platform is unknown, or a head can't be
      exported.
    CheckpointError, ConfigError: the checkpoint can't be read.
  """
  for name in platforms or [""]:
    check_name("--platforms", name, PLATFORMS, InteropError)
  with output_options.new_folder(out) as unfinished:
    opened = export_source.open_export_source(path, part=part, log=log)
    cfg, flat = opened.cfg, traverse_util.flatten_dict(opened.params, sep="/")
    sentences = vectors.sentence_pooling(opened.task, cfg)
    compute = forward.make_forward(opened)

    def program(flat, *inputs):
      return compute(traverse_util.unflatten_dict(flat, sep="/"), *inputs)

    b, length = jax.export.symbolic_shape(
      "b, l", constraints=["b >= 1", "l >= 1", f"l <= {cfg.max_positions}"]
    )
    ids = jax.ShapeDtypeStruct((b, length), jnp.int32)
    shapes = jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), flat
    )
    exported = jax.export.export(jax.jit(program), platforms=platforms)(
      shapes, *(ids for _ in forward.INPUTS)
    )
    (unfinished / PROGRAM).write_bytes(exported.serialize())
    tensors.write_tensors(unfinished / WEIGHTS, flat)
    outputs = jax.tree.unflatten(exported.out_tree, exported.out_avals)
    about = {
      "inputs": {name: ["int32", "b", "l"] for name in forward.INPUTS},
      "outputs": {
        name: [str(x.dtype), *map(str, x.shape)] for name, x in outputs.items()
      },
      "platforms": list(exported.platforms),
      "max_length": cfg.max_positions,
      **(
        {"sentences": sentences._asdict()} if "sentences" in opened.task else {}
      ),
      "pad_token_id": opened.tokenizer.special.pad,
      "labels": list(opened.task.get("about", {}).get("labels", ())),
      "jax": jax.__version__,
      "calling_convention_version": exported.calling_convention_version,
    }
    output_files.write_json(unfinished / ABOUT, about)
    tokenizer_files.export_tokenizer(opened.tokenizer_dir, unfinished, cfg=cfg)
    (unfinished / "README.md").write_text(_README, "utf-8")
  return about


_README = f"""# A model as StableHLO, exported from maskedlm

`{ABOUT}` lists inputs and outputs; `b` (rows) and `l` (tokens) are free.
attention_mask is 1 for tokens and 0 for padding, which comes last.
token_type_ids are 0, and 1 for the second text of a pair.

```python
import jax, jax.export, numpy as np
from safetensors.numpy import load_file

model = jax.export.deserialize(open("{PROGRAM}", "rb").read())
weights = jax.device_put(load_file("{WEIGHTS}"))
run = jax.jit(model.call)  # Compiles once for each shape.
ids = np.ones((2, 7), np.int32)  # From tokenizer.json, with `tokenizers`.
outputs = run(weights, ids, np.zeros_like(ids), np.ones_like(ids))
```
"""
