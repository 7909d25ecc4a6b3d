"""Runs `maskedlm finetune multiple_choice`, as a module."""

from maskedlm.cli import main

main.run_task("multiple_choice")
