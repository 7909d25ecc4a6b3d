"""The map over worker processes: order, memory, imports, deaths."""

import functools
import itertools
import os

import pytest

from maskedlm.core.errors import CorpusError
from maskedlm.data import workers


def test_results_keep_the_order_and_few_items_are_taken():
  taken = itertools.count()

  def items():
    for i in range(40):
      next(taken)
      yield -i

  results = workers.ordered_map(
    functools.partial, (abs,), items(), num_workers=2
  )
  assert next(results) == 0
  assert next(taken) == 4
  assert list(results) == list(range(1, 40))


def test_workers_import_no_jax():
  # Nor other large packages, since each core has a worker.
  expression = (
    "[m for m in ('jax', 'flax', 'grain', 'torch', 'tensorflow')"
    " if __import__('maskedlm.data.prepare.prepare') and m in"
    " __import__('sys').modules]"
  )
  found = workers.ordered_map(
    functools.partial, (eval,), [expression] * 2, num_workers=2
  )
  assert list(found) == [[], []]


def test_a_worker_that_dies_is_an_error():
  results = workers.ordered_map(
    functools.partial, (os._exit,), [1, 1, 1], num_workers=2
  )
  with pytest.raises(CorpusError, match="one of 2 worker processes died"):
    list(results)
