"""sentence-transformers' directories, imported and exported: equal vectors."""

import json

import numpy as np
import pytest

import maskedlm
from helpers import peers, workdirs
from maskedlm.cli import main

library = pytest.importorskip("sentence_transformers")

from sentence_transformers.sentence_transformer import (  # noqa: E402
  modules as parts,
)

TEXTS = ("The function returns a list.", "it", "an object, and Its keys")
D = peers.D


def same(ours, theirs):
  np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=1e-5)


def open_theirs(folder):
  return library.SentenceTransformer(str(folder), device="cpu")


def make_theirs(folder, *modules, length=20, **fields):
  """Saves a directory; `fields` are set in sentence_bert_config.json."""
  encoder = folder / "encoder"
  peers.save_model(encoder, "Bert", "Model", max_position_embeddings=40)
  encoder = parts.Transformer(str(encoder), max_seq_length=length)
  made = library.SentenceTransformer(modules=[encoder, *modules], device="cpu")
  made.save(str(folder / "theirs"))
  change(folder / "theirs" / "sentence_bert_config.json", **fields)
  return folder / "theirs"


def change(path, **fields):
  path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def imported(theirs, *options, expect=0):
  out = theirs.parent / "ours"
  argv = ["import", "--from", "hf", str(theirs), "--out", str(out), *options]
  assert main.main(argv) == expect
  return out


def exported(path, out):
  argv = ["export", "--to", "hf", "--checkpoint", str(path), "--out", str(out)]
  assert main.main(argv) == 0
  return open_theirs(out)


def import_error(theirs, capsys):
  """Returns the error line of an import."""
  capsys.readouterr()
  out = imported(theirs, expect=2)
  error = capsys.readouterr().err
  assert error.count("\n") == 1 and not out.exists()
  return error


@pytest.mark.parametrize(
  ("pool", "normalize"), [("mean", True), ("cls", False), ("max", True)]
)
def test_import_and_export(pool, normalize, tmp_path):
  theirs = make_theirs(
    tmp_path, parts.Pooling(D, pool), *[parts.Normalize()] * normalize
  )
  vectors = open_theirs(theirs).encode(list(TEXTS))
  ours = imported(theirs)
  text = tmp_path / "text.txt"
  text.write_text("\n".join(TEXTS))
  argv = ["--checkpoint", str(ours), "--input", str(text), "--out"]
  argv += [str(tmp_path / "x.npz"), "--unit", "sentence"]
  assert not main.main(["embed", *argv])
  found = np.load(tmp_path / "x.npz")
  same(found["vectors"], vectors)
  about = json.loads(str(found["about"]))
  assert (about["pool"], about["normalize"]) == (pool, normalize)
  # Explicit options override the model's own.
  model = maskedlm.load(ours)
  plain = model.embed(TEXTS, pool=pool)
  length = np.linalg.norm(plain, axis=1, keepdims=True)
  same(vectors, plain / length if normalize else plain)
  same(model.embed(TEXTS, pool=pool, normalize=True), plain / length)

  back = exported(ours, tmp_path / "back")
  assert back.max_seq_length == 20
  same(back.encode(list(TEXTS)), vectors)


def test_an_exported_encoder(tmp_path):
  tokenizer = peers.train_tokenizer("bpe")
  cfg = workdirs.config(tokenizer, max_positions=40, type_vocab_size=0)
  params = workdirs.make_params(cfg, ("pooler", "mlm_head"))
  path = workdirs.save(tmp_path / "ours", params, cfg, tokenizer)
  theirs = exported(path, tmp_path / "theirs")
  assert theirs.max_seq_length == 40
  same(maskedlm.load(path).embed(TEXTS), theirs.encode(list(TEXTS)))


def test_text_is_lowercased_first(tmp_path):
  theirs = make_theirs(tmp_path, parts.Pooling(D), do_lower_case=True)
  # The tokenizer itself is cased.
  change(theirs / "tokenizer_config.json", do_lower_case=False)
  tokenizer = peers.train_tokenizer("wordpiece")
  tokenizer.save(theirs)
  model = maskedlm.load(imported(theirs))
  same(model.embed(TEXTS), open_theirs(theirs).encode(list(TEXTS)))
  lower = [text.lower() for text in TEXTS]
  same(model.embed(TEXTS), model.embed(lower))
  found = model.tokenize("It").ids
  assert found.tolist() == tokenizer.encode("it").ids.tolist()


def test_older_directories(tmp_path, capsys):
  """Old type names, the transformer in a folder, no folder for Normalize."""
  theirs = make_theirs(tmp_path, parts.Pooling(D, "cls"), parts.Normalize())
  vectors = open_theirs(theirs).encode(list(TEXTS))
  encoder = theirs / "0_Transformer"
  encoder.mkdir()
  for path in [*theirs.glob("*token*"), theirs / "model.safetensors"]:
    path.rename(encoder / path.name)
  for name in ("config.json", "sentence_bert_config.json"):
    (theirs / name).rename(encoder / name)
  (theirs / "2_Normalize" / "config.json").unlink()
  modules = json.loads((theirs / "modules.json").read_text())
  modules[0]["path"] = encoder.name
  for module in modules:
    name = module["type"].rpartition(".")[2]
    module["type"] = f"sentence_transformers.models.{name}"
  (theirs / "modules.json").write_text(json.dumps(modules))
  pooling = {"word_embedding_dimension": D, "pooling_mode_cls_token": True}
  pooling |= {"pooling_mode_mean_tokens": False}
  (theirs / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
  prompts = {"prompts": {"q": "query: "}, "default_prompt_name": "q"}
  change(theirs / "config_sentence_transformers.json", **prompts)
  ours = imported(theirs)
  same(maskedlm.load(ours).embed(TEXTS), vectors)
  assert "puts 'query: ' before each text" in capsys.readouterr().err
  back = exported(ours, tmp_path / "back")
  same(back.encode(list(TEXTS)), open_theirs(theirs).encode(list(TEXTS)))


def test_prompts_are_logged_and_kept(tmp_path, capsys):
  theirs = make_theirs(tmp_path, parts.Pooling(D))
  prompts = {"query": "the ", "passage": "it is ", "document": ""}
  change(theirs / "config_sentence_transformers.json", prompts=prompts)
  ours = imported(theirs)
  expected = (
    "expects a prompt before a text, 'the ' (query), 'it is ' (passage)"
  )
  assert expected in capsys.readouterr().err
  back = exported(ours, tmp_path / "back")
  x = maskedlm.load(ours).embed(["the cat", "it is cat"])
  same(back.encode_query(["cat"])[0], x[0])
  same(back.encode(["cat"], prompt_name="passage")[0], x[1])


def test_vectors_that_are_cut(tmp_path, capsys):
  """After normalising, as in sentence-transformers; --normalize is last."""
  theirs = make_theirs(tmp_path, parts.Pooling(D), parts.Normalize())
  change(theirs / "config_sentence_transformers.json", truncate_dim=7)
  vectors = open_theirs(theirs).encode(list(TEXTS))
  assert vectors.shape == (3, 7)
  ours = imported(theirs)
  model = maskedlm.load(ours)
  same(model.embed(TEXTS), vectors)
  assert model.embed([]).shape == (0, 7)
  length = np.linalg.norm(vectors, axis=1, keepdims=True)
  same(model.embed(TEXTS, normalize=True), vectors / length)
  back = exported(ours, tmp_path / "back")
  same(back.encode(list(TEXTS)), vectors)

  text, out = tmp_path / "text.txt", tmp_path / "x.npz"
  text.write_text("\n".join(TEXTS))
  argv = ["embed", f"--checkpoint={ours}", f"--input={text}", f"--out={out}"]
  argv.append("--unit=sentence")
  assert main.main([*argv, "--truncate_dim=3"]) == 0
  same(np.load(out)["vectors"], vectors[:, :3])
  (hits,) = model.search(TEXTS[1:2], out)
  assert hits[0].text == TEXTS[1]
  assert hits[0].cosine == pytest.approx(1, abs=1e-5)
  assert main.main([*argv, "--truncate_dim=25"]) == 2
  assert "the vectors have 24 numbers; exp" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("modules", "expected"),
  [
    (
      (parts.Pooling(D), parts.Dense(D, 8)),
      "modules.json has Transformer, Pooling, Dense; supported: Transformer, "
      "Pooling and perhaps Normalize.",
    ),
    ((parts.Pooling(D, ("mean", "max")),), "the pooling mean with max; "),
  ],
)
def test_unsupported_modules(modules, expected, tmp_path, capsys):
  theirs = make_theirs(tmp_path, *modules)
  assert expected in import_error(theirs, capsys)
  # The transformer alone can be imported.
  model = maskedlm.load(imported(theirs, "--part", "encoder"))
  assert model.meta["task"].get("sentences") is None
  assert model.embed(TEXTS).shape == (3, D)


def test_files_that_are_not_supported(tmp_path, capsys):
  theirs = make_theirs(tmp_path, parts.Pooling(D, include_prompt=False))
  about, modules = "config_sentence_transformers.json", "modules.json"
  pooling = "1_Pooling/config.json"
  mean = (theirs / pooling).read_text().replace("false", "true")
  whole = (theirs / modules).read_text()
  for file, content, expected in (
    (about, '{"prompts": {"query": "the "}}', "config.json: include_prompt=Fa"),
    (about, '{"truncate_dim": 25}', "truncate_dim=25, but the vectors have 24"),
    (about, '{"truncate_dim": "7"}', "truncate_dim='7'; expected a whole numb"),
    (about, '{"default_prompt_name": []}', "default_prompt_name=[] has anoth"),
    (about, '{"prompts": {}, "truncate_dim": null}', ""),
    (pooling, '{"pooling_mode": 5}', "pooling_mode=5 has another type than in"),
    (pooling, '{"pooling_mode": [[]]}', "config.json: the pooling []; support"),
    (pooling, mean, ""),
    (modules, "{", "modules.json can't be read"),
    (modules, '["Pooling"]', "expected a list of objects with path and type"),
    (
      modules,
      whole.replace("1_Pooling", "../x"),
      "names '../x': expect",
    ),
    (
      modules,
      whole.replace("1_Pooling", "2_Pool"),
      "config.json is missing:",
    ),
  ):
    (theirs / file).write_text(content)
    if expected:
      assert expected in import_error(theirs, capsys)
  (theirs / modules).write_text(whole)
  same(
    maskedlm.load(imported(theirs)).embed(TEXTS),
    open_theirs(theirs).encode(list(TEXTS)),
  )


def test_longer_texts_are_read_in_windows(tmp_path):
  """No token is lost (transformers truncates), and no row is longer."""
  model = maskedlm.load(
    imported(make_theirs(tmp_path, parts.Pooling(D), length=10))
  )
  whole = model.opened._replace(meta={**model.meta, "task": {}})
  whole = maskedlm.Model("whole", whole)
  long = "the cat sat on a mat and it is a list"
  assert 8 < len(model.tokenize(long).ids) < 38
  (ours,), (other,) = model.embed([long]), whole.embed([long])
  assert np.abs(ours - other).max() > 1e-3
  same(model.embed(["it"]), whole.embed(["it"]))
  # Words use the encoder's whole length.
  same(model.vectors([long]).values, whole.vectors([long]).values)
