"""The programs that JAX compiles while a test watches."""

import contextlib
import functools

import jax

_names: list[str] = []


@functools.cache  # JAX keeps a listener for good.
def _listen():
  def listen(event, seconds, **about):
    del seconds
    if event == "/jax/core/compile/backend_compile_duration":
      _names.append(about["fun_name"].removeprefix("jit(").removesuffix(")"))

  jax.monitoring.register_event_duration_secs_listener(listen)


@contextlib.contextmanager
def compiled_programs():
  """Yields a list that names each function when it is compiled.

  A program that is found in the folder of compiled programs counts too, but
  not one that this process has already.
  """
  _listen()
  _names.clear()
  yield _names
