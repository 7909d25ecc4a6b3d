"""Runs `maskedlm finetune classification`, as a module."""

from maskedlm.cli import main

main.run_task("classification")
