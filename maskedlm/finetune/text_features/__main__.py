"""Runs `maskedlm finetune text_features`: classification/features.py."""

from maskedlm.cli import main

main.run_task("text_features")
