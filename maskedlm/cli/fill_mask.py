"""`maskedlm fill-mask`: prints the most probable words for each mask."""

import dataclasses

from maskedlm.cli import shared
from maskedlm.cli.flags import STDIN
from maskedlm.runtime import console


@dataclasses.dataclass(frozen=True)
class FillMask:
  """Prints the most probable words for each mask of each text."""

  checkpoint: str = shared.checkpoint()
  top_k: int = shared.top_k(5, "Words for each mask")
  json: bool = shared.json("Print a JSON line for each text.")
  text: tuple[str, ...] = shared.text("Texts; none = lines of stdin.")

  def run(self) -> None:
    from maskedlm.data.labelled import text_lines
    from maskedlm.inference import fill_mask
    from maskedlm.runtime import startup

    startup.enable_compile_cache()
    model = fill_mask.load_mask_filler(self.checkpoint)
    requests = text_lines.given_texts(self.text, STDIN)
    for group in text_lines.request_groups(
      requests, fill_mask.MAX_TEXTS, self.text, [STDIN]
    ):
      places, texts = zip(*group, strict=True)
      results = fill_mask.fill_masks(model, texts, top_k=self.top_k)
      for place, filled in zip(places, results, strict=True):
        if not self.json:
          print(fill_mask.format_filled(filled), flush=True)
          continue
        masks = [
          [{"token": w, "probability": p} for w, p in words]
          for words in filled.masks
        ]
        console.print_json({**place, "text": filled.text, "masks": masks})
