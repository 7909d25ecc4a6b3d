"""Measured numbers may be infinite or not a number, wherever they go."""

import json
import math

import pytest

from maskedlm.core import measured
from maskedlm.runtime import output_files

NAN, INF = math.nan, math.inf


def test_json_has_null_where_a_number_is_not_finite(tmp_path):
  value = {"loss": NAN, "each": [1.5, INF, (-INF, 2)], "name": "nań", "n": 3}
  text = measured.to_json(value)
  strict = json.loads(text, parse_constant=pytest.fail)
  assert strict == {
    "loss": None,
    "each": [1.5, None, [None, 2]],
    "name": "nań",
    "n": 3,
  }
  assert "nań" in text
  assert measured.to_json({"a": "ń"}, ascii=True) == '{"a": "\\u0144"}'
  output_files.write_json(tmp_path / "a.json", value)
  assert json.loads((tmp_path / "a.json").read_text("utf-8")) == strict
  step, values = measured.parse_line('{"step": 3, "loss": null, "each": 1.5}')
  assert step == 3 and math.isnan(values["loss"]) and values["each"] == 1.5


def test_perplexity_of_any_loss():
  assert measured.perplexity(0.0) == 1
  assert measured.perplexity(math.log(42)) == pytest.approx(42)
  assert measured.perplexity(800.0) == INF  # exp(710) is too large already.
  assert measured.perplexity(INF) == INF
  assert math.isnan(measured.perplexity(NAN))
  assert f"{measured.perplexity(1e9):,.1f}" == "inf"
