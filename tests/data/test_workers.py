"""The map over worker processes: order, memory, imports, deaths."""

import functools
import itertools
import os

import pytest

from maskedlm.config import defaults
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


def test_the_number_of_workers_is_given_or_that_of_the_cores(monkeypatch):
  options = defaults.default().corpus
  monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 5})
  assert workers.num_workers(options) == 3
  options.num_workers = 7
  assert workers.num_workers(options) == 7


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
