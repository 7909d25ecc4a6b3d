"""Lets Orbax write checkpoints to Amazon S3 and storage with its interface.

TensorStore and etils know s3://, but Orbax hands TensorStore addresses of
Google Cloud Storage only. `enable` gives S3 the same treatment: objects are
written under their final names, and a file marks what is complete, as S3 can't
rename. Functions of Orbax's own are replaced, which are those of 0.12.8; an
earlier version lacks them, and a later one may need another way:
tests/runtime/test_s3.py would show it.
"""

import functools
import importlib.metadata
import os
from typing import Any

from maskedlm.core.errors import ConfigError

_PREFIX = "s3://"
# MinIO and others; botocore's variables, so s3fs reads them, too.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


@functools.cache
def enable() -> None:
  """Makes Orbax accept addresses s3://BUCKET/PATH.

  Raises:
    ConfigError: the installed Orbax has other functions.
  """
  try:
    from orbax.checkpoint._src.path import gcs_utils
    from orbax.checkpoint._src.serialization import tensorstore_utils

    prefixes = gcs_utils._GCS_PATH_PREFIX + (_PREFIX,)  # noqa: RUF005
    of_gcs, normalize, _ = (
      gcs_utils.get_kvstore_for_gcs,
      tensorstore_utils._normalize_path,
      tensorstore_utils._use_gcs_driver,
    )
  except (ImportError, AttributeError, TypeError) as error:
    version = importlib.metadata.version("orbax-checkpoint")
    raise ConfigError(
      f"orbax-checkpoint {version} can't write to s3:// as 0.12.8 can "
      f"({error}): `pip install orbax-checkpoint==0.12.8`, or mount the bucket "
      "and give the folder."
    ) from error

  def store_of(path: str) -> dict[str, Any]:
    return storage(path) if path.startswith(_PREFIX) else of_gcs(path)

  gcs_utils._GCS_PATH_PREFIX = prefixes
  gcs_utils.get_kvstore_for_gcs = store_of
  tensorstore_utils._use_gcs_driver = lambda path: path.startswith(
    ("gs://", _PREFIX)
  )
  tensorstore_utils._normalize_path = lambda path: normalize(path).replace(
    "s3:/", _PREFIX
  )


def storage(address: str) -> dict[str, Any]:
  """Returns TensorStore's specification of an address s3://BUCKET/PATH."""
  bucket, _, path = address.removeprefix(_PREFIX).partition("/")
  spec: dict[str, Any] = {"driver": "s3", "bucket": bucket, "path": path}
  endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), None)
  if endpoint:
    spec["endpoint"] = endpoint
  region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
  if region and endpoint:  # Without an endpoint, TensorStore asks for it.
    spec["aws_region"] = region
  if os.environ.get("AWS_ACCESS_KEY_ID"):
    # Else it looks for files that aren't there, and logs that at each save.
    spec["aws_credentials"] = {"type": "environment"}
  return spec
