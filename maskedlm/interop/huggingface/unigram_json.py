"""Converts a sentencepiece Unigram model to a tokenizer.json with the same ids.

transformers reads .model files by rules that depend on the architecture, with
shifted ids for XLM-R; it reads a tokenizer.json as it is.
"""

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from maskedlm.core.errors import InteropError
from maskedlm.core.parse_json import parse_json

CONTROL, USER_DEFINED = 3, 4  # ModelProto.SentencePiece.Type.
SPACE = "▁"


def to_tokenizer_json(content: bytes, *, mask: str, where) -> dict:
  """Returns the tokenizer.json of a .model that Tokenizer.save wrote.

  The mask token absorbs the space before it, as in `fill-mask`.

  Raises:
    InteropError: the sentencepiece model is not of type Unigram, or protobuf is
      older than sentencepiece needs.
  """
  model = _parse(content)
  kind = model.trainer_spec.model_type
  if kind != model.trainer_spec.UNIGRAM:
    name = model.trainer_spec.ModelType.Name(kind)
    raise InteropError(
      f"{where} is a sentencepiece model of type {name}; only UNIGRAM can be "
      "written as tokenizer.json. Import it from a tokenizer.json instead."
    )
  library = tokenizers.Tokenizer(
    models.Unigram(
      [(piece.piece, piece.score) for piece in model.pieces],
      unk_id=model.trainer_spec.unk_id,
      byte_fallback=model.trainer_spec.byte_fallback,
    )
  )
  spec = model.normalizer_spec
  steps: list[normalizers.Normalizer] = []
  if spec.precompiled_charsmap:
    # Precompiled loses the marks of decomposed text (tokenizers#2116).
    steps.append(normalizers.NFC())
    steps.append(normalizers.Precompiled(spec.precompiled_charsmap))
  if spec.remove_extra_whitespaces:
    # A leading space is kept, as it begins a word after a special token.
    steps.append(normalizers.Replace(tokenizers.Regex(r" +\z"), ""))
    steps.append(normalizers.Replace(tokenizers.Regex(" {2,}"), " "))
  library.normalizer = normalizers.Sequence(steps)
  prefix = "first" if spec.add_dummy_prefix else "never"
  library.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prefix)
  library.decoder = decoders.Metaspace(SPACE, prefix)
  if model.trainer_spec.byte_fallback:
    parts = [decoders.ByteFallback(), library.decoder]
    library.decoder = decoders.Sequence(parts)
  for piece in model.pieces:
    # Control symbols never occur in text.
    if piece.type in (CONTROL, USER_DEFINED):
      token = tokenizers.AddedToken(
        piece.piece,
        lstrip=piece.piece == mask,
        normalized=False,
        special=piece.type == CONTROL,
      )
      library.add_special_tokens([token])
  unknown = model.pieces[model.trainer_spec.unk_id].piece
  library.add_special_tokens([unknown])
  return parse_json(library.to_str())


def _parse(content: bytes):
  try:
    from sentencepiece import sentencepiece_model_pb2
  except Exception as error:  # VersionError: Beam installs an older protobuf.
    raise InteropError(
      f"a sentencepiece model can't be converted: {error} Install a newer "
      "protobuf: pip install -U protobuf."
    ) from error
  # protobuf makes the class as the module is imported.
  message = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]
  return message.FromString(content)
