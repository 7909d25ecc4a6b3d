"""Evaluates a workdir with mteb: `mteb.evaluate(open_model(path), tasks)`.

The adapter is what mteb's EncoderProtocol asks for. It needs the extra `mteb`,
which brings PyTorch; nothing else in maskedlm imports it.
"""

import dataclasses
import functools
import hashlib
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from maskedlm.inference.vectors import splade, vectors
from maskedlm.runtime import extras


def open_model(path: str | pathlib.Path, *, length: int = 0) -> "MtebModel":
  """Opens a workdir or a checkpoint for mteb; see vectors.open_text_encoder.

  Raises:
    ConfigError: mteb is not installed, or as there.
  """
  extras.load("mteb", "mteb", "MTEB")
  encoder = vectors.open_text_encoder(path, length=length)
  splade.require_dense(encoder.sentences.pool, path)
  return MtebModel(encoder, pathlib.Path(path).resolve().name)


@dataclasses.dataclass(frozen=True, eq=False)
class MtebModel:
  """A text encoder as mteb calls it; vectors are those of `maskedlm embed`."""

  encoder: vectors.TextEncoder
  name: str

  def encode(
    self,
    inputs: Iterable[Mapping[str, Sequence[str]]],
    *,
    task_metadata: Any,
    hf_split: str,
    hf_subset: str,
    prompt_type: Any = None,
    **kwargs: Any,
  ) -> np.ndarray:
    """Returns float32 vectors [n, D] of the texts of batches, in their order.

    Before each text stands the prompt of the model that mteb's rule chooses:
    that of the task, of its type, of queries or documents, or the default one.
    """
    from mteb.models.abs_encoder import get_prompt_name

    del hf_split, hf_subset, kwargs  # Such as a batch's size.
    pooling = self.encoder.sentences
    name = get_prompt_name(dict(pooling.prompts), task_metadata, prompt_type)
    prompt = pooling.prompts.get(name or pooling.default_prompt, "")
    texts = [prompt + text for batch in inputs for text in batch["text"]]
    options = vectors.VectorOptions(unit="sentence", pool="")
    return vectors.embed_list(
      self.encoder, texts, options, length_option="open_model(..., length={})"
    ).values

  def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
    """Returns the cosines of all pairs, a tensor [n, m]."""
    from mteb.similarity_functions import cos_sim

    return cos_sim(embeddings1, embeddings2)

  def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
    """Returns the cosines of the pairs at equal places, a tensor [n]."""
    from mteb.similarity_functions import pairwise_cos_sim

    return pairwise_cos_sim(embeddings1, embeddings2)

  @functools.cached_property
  def mteb_model_meta(self) -> Any:
    """The model's description in mteb's results, with its revision."""
    from mteb.models.model_meta import ModelMeta, ScoringFunction

    model, pooling = self.encoder, self.encoder.sentences
    facts = {
      "name": f"maskedlm/{self.name}",
      # Results are cached by it, and depend on the pooling and the prompts.
      "revision": hashlib.sha256(
        f"{vectors.fingerprint(model)} {pooling}".encode()
      ).hexdigest(),
      "n_parameters": sum(x.size for x in jax.tree.leaves(model.params)),
      "max_tokens": pooling.length,
      "embed_dim": pooling.truncate_dim or model.cfg.width,
      "framework": ["JAX"],
      "similarity_fn_name": ScoringFunction.COSINE,
      "use_instructions": bool(pooling.prompts),
    }
    return ModelMeta.create_empty(facts)
