"""`maskedlm export`: writes a checkpoint for transformers, or for serving."""

import dataclasses
import pathlib

from maskedlm.cli import shared
from maskedlm.cli.flags import REQUIRED, flag
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, extras, hub_names


@dataclasses.dataclass(frozen=True)
class Export:
  """Converts a checkpoint for use outside of maskedlm."""

  checkpoint: str = shared.checkpoint()
  to: str = flag(
    REQUIRED,
    "hf: a directory that transformers loads; onnx: a graph for onnxruntime "
    "and others; stablehlo: a program with its weights, which runs without "
    "maskedlm.",
    choices=("hf", "onnx", "stablehlo"),
  )
  out: str = shared.out_folder()
  part: str = flag(
    "",
    "encoder | discriminator | generator; default: everything, or the "
    "discriminator of ELECTRA.",
  )
  architecture: str = flag(
    "",
    "bert | roberta | xlm-roberta | camembert | distilbert | electra | "
    "modernbert | eurobert | llama | esm | deberta-v2; default: the one that "
    "fits.",
    needs={"to": ("hf",)},
  )
  push: str = flag(
    "",
    "Also upload the directory to the Hugging Face Hub, as a model of this "
    "name; only you can read it.",
    metavar="NAME",
    needs={"to": ("hf",)},
  )
  public: bool = flag(
    False, "Everybody can read what --push uploads.", needs="push"
  )
  int8: bool = flag(
    False,
    "Write a second graph, with the dense layers in 8-bit integers.",
    needs={"to": ("onnx",)},
  )
  platforms: str = flag(
    "cpu,cuda,tpu", "Where it can run.", needs={"to": ("stablehlo",)}
  )

  def check(self) -> None:
    if self.push and hub_names.parse(f"hf:{self.push}").model != self.push:
      raise ConfigError(f"--push={self.push}: expected a name alone.")

  def run(self) -> None:
    path, out = pathlib.Path(self.checkpoint), pathlib.Path(self.out)
    if self.to == "hf":
      from maskedlm.interop.huggingface import exporter

      class_name = exporter.export_huggingface(
        path,
        out,
        architecture=self.architecture,
        push=self.push,
        public=self.public,
        part=self.part,
        log=console.log,
      )
      also = ""
      if (out / "modules.json").is_file():
        also = f", and SentenceTransformer({str(out)!r})"
      print(f"{out}: {class_name}.from_pretrained({str(out)!r}) loads it{also}")
    elif self.to == "onnx":
      extras.load("onnx", "onnx", "--to=onnx")
      from maskedlm.interop.onnx import exporter as graphs

      outputs = graphs.export_onnx(
        path, out, int8=self.int8, part=self.part, log=console.log
      )
      print(f"{out}: {', '.join(outputs)}; README.md says how to run it")
    else:
      from maskedlm.interop import stablehlo

      platforms = tuple(p.strip() for p in self.platforms.split(","))
      model = stablehlo.export_stablehlo(
        path, out, platforms=platforms, part=self.part, log=console.log
      )
      print(
        f"{out}: {', '.join(model['outputs'])}; README.md says how to run it"
      )
