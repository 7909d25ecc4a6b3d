"""Locates the files of this repository."""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]
CONFIGS = ROOT / "configs"
