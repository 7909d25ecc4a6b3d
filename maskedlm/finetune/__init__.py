"""Fine-tuning: a folder for each task, all trained by the same loop."""


def __getattr__(name: str):
  if name == "glue":  # Where earlier config files import it from.
    from maskedlm.data.labelled.formats import glue

    return glue
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
