"""`maskedlm demo`: serves a page that shows what a model does."""

import dataclasses

from maskedlm.cli import shared
from maskedlm.cli.flags import flag
from maskedlm.runtime import extras


@dataclasses.dataclass(frozen=True)
class Demo:
  """Serves a page at http://127.0.0.1 that shows what a model does; only this
  machine can reach it. See docs/guides/use/demo.md.
  """

  checkpoint: str = shared.checkpoint()
  finetuned: tuple[str, ...] = flag(
    (), "Fine-tuned workdirs that label sentences.", metavar="WORKDIR"
  )
  standardise: str | None = shared.standardise(
    "Also compare standardised vectors, by the means and deviations that "
    "`embed --unit=word --layers=all --combine=concat --fit` stored."
  )
  port: int = flag(8080, "0 = any free port.", low=0, high=65535)

  def run(self) -> None:
    """Runs the verb until Ctrl-C."""
    extras.load("werkzeug", "demo", "the demo")
    from maskedlm.inference.demo import answers, server
    from maskedlm.runtime import startup

    startup.enable_compile_cache()
    listening = server.listen(self.port)  # First, since it fails at once.
    app = server.make_app(
      answers.open_models(
        self.checkpoint, self.finetuned, self.standardise or ""
      )
    )
    running = server.make_server(app, listening)
    print(f"http://{server.HOST}:{running.port}  (Ctrl-C ends it)", flush=True)
    running.serve_forever()
