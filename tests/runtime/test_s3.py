"""A run in Amazon S3: moto stands in for the server.

Needs `pip install s3fs 'moto[server]'`; skipped without them.
"""

import logging

import jax
import numpy as np
import pytest

from maskedlm.cli import main
from maskedlm.core.errors import CheckpointError, ConfigError
from maskedlm.data.corpus import concat, store, streamed
from maskedlm.runtime import buckets, s3
from maskedlm.training import status
from maskedlm.training.checkpoints import load


def test_where_tensorstore_finds_an_address(monkeypatch):
  for name in ("ENDPOINT_URL_S3", "ENDPOINT_URL", "REGION", "DEFAULT_REGION"):
    monkeypatch.delenv(f"AWS_{name}", raising=False)
  monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
  plain = {"driver": "s3", "bucket": "b", "path": "runs/x"}
  assert s3.storage("s3://b/runs/x") == plain
  monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
  monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
  monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
  assert s3.storage("s3://b/runs/x") == {
    **plain,
    "endpoint": "http://minio:9000",
    "aws_region": "eu-west-1",
    "aws_credentials": {"type": "environment"},
  }


def test_an_orbax_without_the_replaced_functions_is_one_line(monkeypatch):
  """As before 0.12.8; nothing is replaced then."""
  from orbax.checkpoint._src.path import gcs_utils
  from orbax.checkpoint._src.serialization import tensorstore_utils

  enable = s3.enable.__wrapped__
  for module, name in (
    (gcs_utils, "get_kvstore_for_gcs"),
    (tensorstore_utils, "_normalize_path"),
    (tensorstore_utils, "_use_gcs_driver"),
    (gcs_utils, "_GCS_PATH_PREFIX"),
  ):
    with monkeypatch.context() as patch:
      patch.delattr(module, name)
      before = dict(vars(gcs_utils))
      with pytest.raises(
        ConfigError, match=r"orbax-checkpoint==0\.12\.8"
      ) as caught:
        enable()
      assert name in str(caught.value) and vars(gcs_utils) == before
  with monkeypatch.context() as patch:
    patch.setattr(gcs_utils, "_GCS_PATH_PREFIX", "gs://")
    with pytest.raises(ConfigError, match=r"orbax-checkpoint==0\.12\.8"):
      enable()


@pytest.fixture
def bucket(monkeypatch):
  """Returns the file system of a server with an empty bucket."""
  pytest.importorskip("s3fs")
  server = pytest.importorskip("moto.server")
  logging.getLogger("werkzeug").setLevel(logging.ERROR)
  started = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
  started.start()
  host, port = started.get_host_and_port()
  for name, value in (
    ("ENDPOINT_URL", f"http://{host}:{port}"),
    ("ACCESS_KEY_ID", "a"),
    ("SECRET_ACCESS_KEY", "b"),
    ("DEFAULT_REGION", "us-east-1"),
  ):
    monkeypatch.setenv(f"AWS_{name}", value)
  buckets.filesystem.cache_clear()
  fs, _ = buckets.filesystem("s3://bucket")
  fs.mkdir("bucket")
  yield fs
  started.stop()
  buckets.filesystem.cache_clear()


def test_a_corpus_in_s3_is_streamed(bucket, tiny, tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  bucket.put(str(tiny[1]), "bucket/corpus", recursive=True)
  corpora = (
    store.open_corpus(tiny[1]),
    streamed.open_corpus("s3://bucket/corpus", cache_gb=1.0, log=print),
  )
  ids = [concat.take_all(corpus.train.tokens) for corpus in corpora]
  np.testing.assert_array_equal(*ids)
  assert not list(tmp_path.rglob("*.tokens.npy"))


@pytest.mark.slow
def test_a_run_in_s3_continues_and_ends_as_in_a_folder(bucket, tiny, tmp_path):
  config, corpus = tiny
  address, folder = "s3://bucket/runs/x", tmp_path / "run"
  argv = [
    "pretrain",
    f"--config={config}",
    f"--config.corpus.path={corpus}",
    "--config.optimizer.schedule=constant",
    "--config.optimizer.warmup_steps=1",
    "--config.train.eval_every=9",
  ]
  more = "--config.train.num_steps=5"
  assert main.main([*argv, f"--workdir={folder}", more]) == 0
  begin = [f"--workdir={address}", "--config.train.num_steps=3"]
  assert main.main([*argv, *begin]) == 0
  assert main.main(["pretrain", f"--workdir={address}", more]) == 0
  ends = (jax.tree.leaves(load.load_params(x)[0]) for x in (address, folder))
  for a, b in zip(*ends, strict=True):
    np.testing.assert_array_equal(a, b)
  names = {name.split("/")[3] for name in bucket.find("bucket/runs/x")}
  assert names >= {"config.json", "metrics.jsonl", "result.json", "tokenizer"}
  found = status.read_status(address)
  assert found["complete"] and found["step"] == found["checkpoint"] == 5
  assert found["seconds_since"] < 300
  # Damage is found there, too.
  damaged = "bucket/runs/x/checkpoints/5/params/manifest.ocdbt"
  bucket.pipe_file(damaged, b"x" + bucket.cat_file(damaged)[1:])
  with pytest.raises(CheckpointError, match=r"manifest\.ocdbt"):
    load.load_params(address, step=5)
