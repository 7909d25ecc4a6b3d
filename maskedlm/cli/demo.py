"""`maskedlm demo`: serves a page that shows what a model does."""

import argparse
import importlib.util
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.core.errors import ConfigError


def main(argv: Sequence[str]) -> int:
  """Runs the verb until Ctrl-C; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm demo",
    description="Serves a page at http://127.0.0.1 that shows what a model "
    "does; only this machine can reach it. See docs/guides/use/demo.md.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--finetuned",
    nargs="+",
    action="extend",
    default=[],
    metavar="WORKDIR",
    help="fine-tuned workdirs that label sentences",
  )
  parser.add_argument(
    "--standardise",
    default="",
    metavar="FILE.npz",
    help="also compare standardised vectors, by the means and deviations that "
    "`embed --unit=word --layers=all --combine=concat --fit` stored",
  )
  parser.add_argument(
    "--port", type=int, default=8080, help="default: 8080; 0 = any free port"
  )
  args = parser.parse_args(argv)
  if not 0 <= args.port < 1 << 16:
    raise ConfigError(f"--port={args.port}: expected 0 to 65535.")
  if not importlib.util.find_spec("werkzeug"):
    raise ConfigError(
      "the demo needs werkzeug: pip install 'maskedlm[demo]', or werkzeug."
    )

  from maskedlm.inference.demo import server
  from maskedlm.runtime import startup

  startup.enable_compile_cache()
  listening = server.listen(args.port)  # First, since it fails at once.
  app = server.make_app(
    open_models(args.checkpoint, args.finetuned, args.standardise)
  )
  running = server.make_server(app, listening)
  print(f"http://{server.HOST}:{running.port}  (Ctrl-C ends it)", flush=True)
  running.serve_forever()
  return 0


def open_models(
  checkpoint: str, finetuned: Sequence[str], standardise: str = ""
):
  """Returns the page's answers.Models; a fine-tuned `checkpoint` also labels.

  Raises:
    CheckpointError, ConfigError: see model.load, predict.open_model and
      standardise.open_layer_standardisers.
  """
  from maskedlm.finetune import predict
  from maskedlm.inference import model
  from maskedlm.inference.demo import answers
  from maskedlm.inference.vectors import vectors
  from maskedlm.inference.vectors.standardise import open_layer_standardisers

  encoder = model.load(checkpoint)
  fitted = {}
  if standardise:
    fitted = open_layer_standardisers(
      standardise, vectors.make_text_encoder(encoder.opened)
    )
  tuned = [(path, predict.open_model(path)) for path in finetuned]
  if "kind" in encoder.meta["task"] and checkpoint not in finetuned:
    tuned.append((checkpoint, predict.make_model(encoder.opened, checkpoint)))
  return answers.Models(encoder, tuple(tuned), tuple(fitted.items()))
