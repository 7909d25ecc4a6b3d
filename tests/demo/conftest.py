"""What the page is of, made once: a pretrained model and fine-tuned ones."""

import threading

import pytest
import untrained

from maskedlm import api
from maskedlm.demo import answers
from maskedlm.finetune import inference


@pytest.fixture(scope="session")
def workdirs(tmp_path_factory):
  """{"pretrained", and each name of untrained.TUNED: path}."""
  folder = tmp_path_factory.mktemp("demo")
  tuned = {n: untrained.finetuned(folder / n, n) for n in untrained.TUNED}
  return {"pretrained": untrained.pretrained(folder / "pretrained"), **tuned}


@pytest.fixture(scope="session")
def models(workdirs):
  return answers.Models(
    api.load(workdirs["pretrained"]),
    tuple((n, inference.open_model(workdirs[n])) for n in untrained.TUNED),
  )


@pytest.fixture(scope="session")
def address(models):
  """(host, port) of a running demo."""
  pytest.importorskip("werkzeug")
  from maskedlm.demo import server

  running = server.make_server(server.make_app(models), server.listen(0))
  thread = threading.Thread(target=running.serve_forever, daemon=True)
  thread.start()
  yield server.HOST, running.port
  running.shutdown()
  thread.join()
  running.server_close()
