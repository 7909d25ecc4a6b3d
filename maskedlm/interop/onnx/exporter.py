"""Exports a checkpoint as an ONNX graph: `maskedlm export --to onnx`.

The steps are: trace the forward pass for any batch size and length -> translate
it (jaxpr.py) -> quantize it, if asked -> compare the files with the model. The
files beside the graph are those of an export to Hugging Face's format.
"""

import dataclasses
import importlib.util
import json
import logging
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.export
import numpy as np
import onnx
from jax.interpreters import partial_eval

from maskedlm.core.errors import ConfigError, InteropError
from maskedlm.inference.vectors import vectors
from maskedlm.interop import export_source
from maskedlm.interop.export_source import ExportSource
from maskedlm.interop.forward import INPUTS, make_forward
from maskedlm.interop.huggingface import exporter as huggingface
from maskedlm.interop.huggingface import model_card
from maskedlm.interop.onnx import jaxpr
from maskedlm.interop.onnx.graph import Graph
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import output_options

FOLDER, FLOAT, INT8 = "onnx", "model.onnx", "model_int8.onnx"  # The Hub's.
# Our name of an output -> transformers'; others are the same.
OUTPUTS = {
  "mlm_logits": "logits",
  "discriminator_logits": "logits",
  "nsp_logits": "seq_relationship_logits",
}
MOST_BYTES = 2**31 - 2**20  # Of a file; more weights lie beside it.
_TOLERANCE = 1e-3


class Program(NamedTuple):
  """The forward pass, with the names that optimum gives its arrays."""

  run: Callable[..., dict[str, Any]]  # (parameters, *inputs) -> outputs.
  params: Mapping[str, Any]
  inputs: tuple[str, ...]
  dims: tuple[str, ...]  # Of each input.


def export_onnx(
  path: pathlib.Path,
  out: pathlib.Path,
  *,
  part: str = "",
  int8: bool = False,
  log: Callable[[str], None],
) -> dict[str, tuple[int | str, ...]]:
  """Writes the graph and what belongs to it; returns {output: its shape}.

  It computes in float32. If onnxruntime is installed, it runs the graph on
  random rows.

  Args:
    path: a workdir or a checkpoint.
    out: receives onnx/model.onnx, the tokenizer, README.md and, if transformers
      has such a model, config.json.
    part: see export_source.open_export_source.
    int8: write onnx/model_int8.onnx, too, whose dense layers are quantized.
    log: called with a line for each part that is left out, and for each graph
      that was compared with the model.

  Raises:
    ConfigError: int8 without onnxruntime.
    InteropError: `out` exists, a part of the model has no counterpart in ONNX,
      or the graph computes something else.
    CheckpointError: the checkpoint can't be read.
  """
  has_runtime = importlib.util.find_spec("onnxruntime") is not None
  if int8 and not has_runtime:
    raise ConfigError("--int8 needs onnxruntime: pip install 'maskedlm[onnx]'.")
  with output_options.new_folder(out) as unfinished:
    opened = export_source.open_export_source(path, part=part, log=log)
    cfg = dataclasses.replace(opened.cfg, dtype="float32")
    opened = opened._replace(cfg=cfg)
    folder = unfinished / FOLDER
    folder.mkdir()
    program = _make_program(opened)
    shapes = _write_graph(folder / FLOAT, program)
    names = [FLOAT]
    if int8:
      _quantize(folder / FLOAT, folder / INT8)
      names.append(INT8)
    if has_runtime:
      _compare([folder / name for name in names], program, cfg, log)
    else:
      log("not compared with the model: onnxruntime is not installed")
    class_name = _write_config(unfinished, opened, log)
    huggingface.write_tokenizer(unfinished, opened)
    use = _usage(opened, program)
    card = model_card.format_model_card(opened, class_name, use)
    (unfinished / "README.md").write_text(card, "utf-8")
  return shapes


def _make_program(opened: ExportSource) -> Program:
  """Returns the forward pass of a model.

  Models without token types have no such input. Choices of a question are a
  dimension of their own, as in transformers.
  """
  forward = make_forward(opened)
  has_types = opened.cfg.num_types > 1
  has_choices = "choice_head" in opened.params

  def run(params, *arrays):
    shape = arrays[0].shape
    rows = dict(
      zip(inputs, (x.reshape(-1, shape[-1]) for x in arrays), strict=True)
    )
    zeros = jax.numpy.zeros_like(rows["input_ids"])
    outputs = forward(params, *(rows.get(name, zeros) for name in INPUTS))
    if has_choices:
      outputs = {
        n: x.reshape(*shape[:2], *x.shape[1:]) for n, x in outputs.items()
      }
      outputs["logits"] = outputs["logits"][..., 0]
    return {OUTPUTS.get(name, name): x for name, x in outputs.items()}

  inputs = tuple(n for n in INPUTS if has_types or n != "token_type_ids")
  choices = ("num_choices",) if has_choices else ()
  dims = ("batch_size", *choices, "sequence_length")
  return Program(run, opened.params, inputs, dims)


def _write_graph(
  path: pathlib.Path, program: Program
) -> dict[str, tuple[int | str, ...]]:
  """Writes the graph of a program; returns the shapes of its outputs."""
  dims = jax.export.symbolic_shape(
    ", ".join(program.dims), constraints=[f"{dim} >= 1" for dim in program.dims]
  )
  ids = [jax.ShapeDtypeStruct(dims, np.int32) for _ in program.inputs]
  # As on a CPU, whatever this machine has: functions.py knows these forms.
  device = jax.sharding.AbstractDevice("cpu", None, "cpu")
  mesh = jax.sharding.AbstractMesh((1,), ("data",), abstract_device=device)
  with jax.sharding.use_abstract_mesh(mesh):
    closed, outputs = jax.make_jaxpr(program.run, return_shape=True)(
      program.params, *ids
    )
  used, _ = partial_eval.dce_jaxpr(
    closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True
  )
  graph = Graph({}, {}, {}, {})
  operands = [graph.input(name, dims, np.int64) for name in program.inputs]
  operands = [graph.cast(x, np.int32) for x in operands]
  weights = map(np.asarray, jax.tree.leaves(program.params))
  results = jaxpr.translate(graph, used, closed.consts, [*weights, *operands])
  shapes = {
    name: tuple(dim if isinstance(dim, int) else str(dim) for dim in x.shape)
    for name, x in outputs.items()
  }
  named = {  # jax sorts the names.
    name: graph.spread(x, outputs[name].shape)
    for name, x in zip(sorted(outputs), results, strict=True)
  }
  model = graph.finish(
    dict.fromkeys(program.inputs, program.dims),
    {name: (named[name], shape) for name, shape in shapes.items()},
  )
  size = sum(x.nbytes for x in graph.arrays.values())
  onnx.save_model(
    model,
    path,
    save_as_external_data=size > MOST_BYTES,
    location=_weights_path(path).name,
  )
  onnx.checker.check_model(path)
  return shapes


def _weights_path(path: pathlib.Path) -> pathlib.Path:
  """Returns the path of the weights that don't fit into the graph's file."""
  return path.with_name(f"{path.name}_data")


def _quantize(path: pathlib.Path, out: pathlib.Path) -> None:
  """Writes a graph whose dense layers multiply integers.

  Each column of weights has its own scale. They have 7 bits: with 8, sums
  overflow on x86 processors without VNNI. The inputs of a layer have 8 bits and
  one scale, computed as the graph runs. Embeddings stay as they are.
  """
  from onnxruntime import quantization

  logging.getLogger().addFilter(_is_news)
  try:
    quantization.quantize_dynamic(
      path,
      out,
      op_types_to_quantize=["MatMul"],
      per_channel=True,
      reduce_range=True,
      use_external_data_format=_weights_path(path).exists(),
    )
  finally:
    logging.getLogger().removeFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
  """Returns False for quantize_dynamic's advice to optimise the graph first.

  That helps graphs whose layers are several operators each.
  """
  return "pre-processing" not in record.getMessage()


def _compare(
  paths: Sequence[pathlib.Path],
  program: Program,
  cfg: EncoderConfig,
  log: Callable[[str], None],
) -> None:
  """Runs graphs on random rows and logs how much they differ from the model."""
  import onnxruntime as runtime

  feed = _random_rows(program, cfg)
  ids = [np.asarray(x, np.int32) for x in feed.values()]
  expected = jax.jit(program.run)(program.params, *ids)
  for path in paths:
    session = runtime.InferenceSession(path)
    computed = session.run(list(expected), feed)
    differences = []
    for (name, x), y in zip(expected.items(), computed, strict=True):
      difference, largest = np.abs(y - x).max(), np.abs(x).max()
      differences.append(
        f"{name} {difference:.1e} (values up to {largest:.3g})"
      )
      limit = _TOLERANCE * max(1, largest) if path is paths[0] else np.inf
      if not difference < limit:  # Or NaN.
        raise InteropError(
          f"{FOLDER}/{path.name}: {name} differs from the model by "
          f"{difference:.1e}, expected less than {limit:.1e}; please report it "
          f"(onnx {onnx.__version__}, onnxruntime {runtime.__version__}, jax "
          f"{jax.__version__}), and export with --to=stablehlo until then."
        )
    log(
      f"{FOLDER}/{path.name}: largest difference from the model, on random "
      f"rows: {', '.join(differences)}"
    )


def _random_rows(program: Program, cfg: EncoderConfig) -> dict[str, np.ndarray]:
  """Returns inputs of rows of different lengths, int64."""
  rng, length = np.random.default_rng(0), min(cfg.max_positions, 19)
  shape = (*(2, 3)[-len(program.dims) + 1 :], length)
  ends = rng.integers(1, length, (*shape[:-1], 1), endpoint=True)
  rows = {
    "input_ids": rng.integers(0, cfg.vocab_size, shape),
    "token_type_ids": rng.integers(0, max(cfg.num_types, 1), shape),
    "attention_mask": (np.arange(length) < ends).astype(np.int64),
  }
  return {name: rows[name] for name in program.inputs}


def _write_config(
  folder: pathlib.Path, opened: ExportSource, log: Callable[[str], None]
) -> str:
  """Writes config.json if transformers has such a class; returns its name."""
  try:
    converted = huggingface.convert(opened, "", lambda line: None)
  except InteropError as error:
    reason = str(error).partition(";")[0]  # A remedy follows.
    log(f"left out: config.json, which optimum needs ({reason})")
    return "Encoder"
  huggingface.write_config(folder, converted)
  return converted.class_name


def _usage(opened: ExportSource, program: Program) -> list[str]:
  """Returns the lines of Python that run the graph."""
  pad = opened.tokenizer.special.pad
  pooling = vectors.sentence_pooling(opened.task, opened.cfg)
  length = opened.task.get("length") or pooling.length
  values = {
    "input_ids": "ids",
    "token_type_ids": "type_ids",
    "attention_mask": "attention_mask",
  }
  has_choices = "num_choices" in program.dims
  example = '("a question", "a choice"), ("a question", "another")'
  example = example if has_choices else '"a text", "another"'
  left, right = ("[[", "]]") if has_choices else ("[", "]")
  return [
    "import numpy as np",
    "import onnxruntime",
    "from tokenizers import Tokenizer",
    "",
    'tokenizer = Tokenizer.from_file("tokenizer.json")',
    f"tokenizer.enable_truncation({length})",
    f"tokenizer.enable_padding(pad_id={pad}, "
    f"pad_token={json.dumps(opened.tokenizer.tokens(pad))})",
    f'model = onnxruntime.InferenceSession("{FOLDER}/{FLOAT}")',
    f"rows = tokenizer.encode_batch([{example}])",
    "feed = {",
    *(
      f'  "{name}": np.array({left}row.{values[name]} for row in rows{right}),'
      for name in program.inputs
    ),
    "}",
    "names = [output.name for output in model.get_outputs()]",
    "outputs = dict(zip(names, model.run(names, feed)))",
  ]
