"""Runs `maskedlm finetune features`: tagging/features.py."""

from maskedlm.cli import main

main.run_task("features")
