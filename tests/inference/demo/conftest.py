"""A pretrained and several fine-tuned models, and a running demo."""

import threading

import pytest

from helpers import untrained
from maskedlm.finetune import predict
from maskedlm.inference import model
from maskedlm.inference.demo import answers


@pytest.fixture(scope="session")
def workdirs(tmp_path_factory):
  """Returns {"pretrained" and each name of untrained.TUNED: path}."""
  folder = tmp_path_factory.mktemp("demo")
  tuned = {n: untrained.finetuned(folder / n, n) for n in untrained.TUNED}
  return {"pretrained": untrained.pretrained(folder / "pretrained"), **tuned}


@pytest.fixture(scope="session")
def models(workdirs):
  return answers.Models(
    model.load(workdirs["pretrained"]),
    tuple((n, predict.open_model(workdirs[n])) for n in untrained.TUNED),
  )


@pytest.fixture(scope="session")
def address(models):
  """Yields (host, port) of a running demo."""
  pytest.importorskip("werkzeug")
  from maskedlm.inference.demo import server

  running = server.make_server(server.make_app(models), server.listen(0))
  thread = threading.Thread(target=running.serve_forever, daemon=True)
  thread.start()
  yield server.HOST, running.port
  running.shutdown()
  thread.join()
  running.server_close()
