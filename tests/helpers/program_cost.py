"""What a compiled program costs, by XLA's analysis; nothing is timed.

The analysis counts the body of a scan once, so models have one layer.
"""

import math
import re
from typing import NamedTuple

import jax

from maskedlm.training import optimizer
from maskedlm.training import step as steps

# Less optimization by LLVM, which keeps fusions and buffers, halves the time.
_QUICK = {
  "xla_backend_optimization_level": 0,
  "xla_llvm_disable_expensive_passes": True,
}


class Program(NamedTuple):
  """A compiled program."""

  text: str  # HLO.
  num_params: int  # Numbers in the parameters that it reads.
  flops: float
  bytes_accessed: float
  memory: object


def compile_program(function, params, *args, **options) -> Program:
  """Compiles function(params, *args) for one CPU.

  Args:
    function: pure.
    params: arrays or their shapes.
    *args: the same.
    **options: of jax.jit.
  """
  lowered = jax.jit(function, **options).lower(params, *args)
  made = lowered.compile(compiler_options=_QUICK)
  cost = made.cost_analysis()
  return Program(
    made.as_text(),
    sum(x.size for x in jax.tree.leaves(params)),
    cost["flops"],
    cost["bytes accessed"],
    made.memory_analysis(),
  )


def compile_step(task, options) -> Program:
  """Compiles a whole training step; options is config.optimizer."""
  params = jax.eval_shape(task.init, jax.random.key(0))
  tx, schedule = optimizer.make_optimizer(options, 9, params)
  state = jax.eval_shape(steps.make_init(task, tx, 0))
  direct = steps.make_direction(task, tx, seed=0, accumulate=1)
  step = steps.make_step(task, direct, schedule)
  made = compile_program(
    step, state, task.batch_at("train", 0), donate_argnums=0
  )
  num_params = sum(x.size for x in jax.tree.leaves(params))
  return made._replace(num_params=num_params)


def arrays(text, *, fused=True):
  """Yields (opcode, dims, rest of the line) of instructions with one result.

  Args:
    text: HLO.
    fused: include those within a fusion, which have no buffer.
  """
  within = set(re.findall(r"calls=%([\w.\-]+)", text))
  computation = ""
  for line in text.splitlines():
    if opened := re.match(r"(?:ENTRY )?%([\w.\-]+) .*{$", line):
      computation = opened[1]
    made = re.match(
      r"\s+(?:ROOT )?%[\w.\-]+ = \w+\[([\d,]+)\]\S* ([\w\-]+)\((.*)", line
    )
    if made and (fused or computation not in within):
      yield made[2], tuple(map(int, made[1].split(","))), made[3]


def matmul_flops(text):
  """Returns the FLOPs of dots: 2 * results * terms of each sum."""
  shapes = dict(re.findall(r"%([\w.\-]+) = \w+\[([\d,]*)\]", text))
  total = 0
  for opcode, dims, rest in arrays(text):
    if opcode == "dot":
      left = shapes[re.match(r"%([\w.\-]+)", rest)[1]].split(",")
      axes = re.search(r"lhs_contracting_dims={([\d,]*)}", rest)[1].split(",")
      total += 2 * math.prod(dims) * math.prod(int(left[int(i)]) for i in axes)
  return total


def materialised(text, size):
  """Returns how many results with `size` entries are written to memory."""
  free = ("parameter", "bitcast", "get-tuple-element")
  return sum(
    math.prod(dims) == size and opcode not in free
    for opcode, dims, _ in arrays(text, fused=False)
  )
