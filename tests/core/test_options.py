"""Options as dataclasses: their config, checks, help and freeze list."""

import dataclasses
import math

import pytest

from maskedlm.config import defaults
from maskedlm.core import options
from maskedlm.core.errors import ConfigError
from maskedlm.core.options import changed_default, option
from maskedlm.finetune import config as finetune_config
from maskedlm.modeling import architecture
from maskedlm.pretraining import objectives


@dataclasses.dataclass(frozen=True)
class Options:
  steps: int = option(3, "Steps.", low=1)
  rate: float = option(0.5, "A rate.", above=0, high=1, frozen=True)
  decay: float = option(0.9, "A decay.", low=0, below=1)
  shape: str = option("flat", "A shape.", choices=("flat", "steep"))
  pack: bool | None = option(None, "Decided later.", frozen=True)


@dataclasses.dataclass(frozen=True)
class Steeper(Options):
  rate: float = changed_default(Options, "rate", 0.25)


def test_a_config_has_the_defaults_and_can_set_what_is_none():
  config = options.to_config(Options).lock()
  assert config.to_dict() == dataclasses.asdict(Options())
  config.pack = True
  with pytest.raises(TypeError):
    config.pack = "yes"
  assert options.from_config(Options, config) == Options(pack=True)
  assert options.to_config(Options(steps=9)).steps == 9


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"steps": 0}, "a.steps=0 is out of range: expected 1 or more."),
    ({"rate": 0.0}, "a.rate=0.0 is out of range: expected above 0, at most 1."),
    ({"rate": math.nan}, "a.rate=nan is out of range: expected above 0, at "),
    ({"decay": 1.0}, "a.decay=1.0 is out of range: expected 0 or more, below"),
    ({"shape": "step"}, "a.shape='step' is unknown (did you mean \"steep\"?)"),
  ],
)
def test_wrong_values_are_named(values, message):
  with pytest.raises(ConfigError) as caught:
    options.check_options("a", Options, Options(**values))
  assert str(caught.value).startswith(message)


def test_a_changed_default_keeps_the_rest():
  old, new = (cls.__dataclass_fields__["rate"] for cls in (Options, Steeper))
  assert (old.default, new.default) == (0.5, 0.25)
  assert new.metadata == old.metadata
  assert [*options.frozen("a", Steeper)] == ["a.rate", "a.pack"]


def _all_options():
  for name, cls in defaults.SECTIONS.items():
    yield name, cls
  for name in objectives.names():
    yield "objective", objectives.load_objective(name).Options
  for name in finetune_config.task_names():
    yield "task", finetune_config.load_task(name).Options
  yield from finetune_config.SECTIONS.items()
  yield "model", architecture.EncoderConfig


@pytest.mark.parametrize("odd", [2**63, math.nan, math.inf, "7", [7], True])
def test_no_number_takes_an_absurd_value(odd):
  """Nothing of such a size is ever built: the range is checked before."""
  count = 0
  for section, cls in _all_options():
    for field in dataclasses.fields(cls):
      if field.type in (int, float) and field.metadata:
        count += 1
        if odd == 2**63 and field.type is float:
          continue  # Such a rate or wavelength may be silly, but costs nothing.
        expected = options.expected(cls, field.name, odd)
        assert expected, f"{section}.{field.name}={odd}"
  assert count > 150


@pytest.mark.parametrize(
  ("section", "name", "odd"),
  [
    ("model", "num_layers", 10**9),
    ("model", "width", 10**8),
    ("model", "mlp_width", 10**9),
    ("model", "max_positions", 10**9),
    ("tokenizer", "vocab_size", 10**9),
    ("data", "length", 10**9),
    ("data", "batch_size", 10**8),
    ("corpus", "num_workers", 10**6),
  ],
)
def test_a_size_that_no_machine_has_is_refused(section, name, odd):
  config = defaults.default()
  config[section][name] = odd
  with pytest.raises(ConfigError, match=f"{section}.{name}={odd} .* expected "):
    defaults.validate(config)
