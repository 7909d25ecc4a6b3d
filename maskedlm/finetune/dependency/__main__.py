"""Runs `maskedlm finetune dependency`, as a module."""

from maskedlm.cli import main

main.run_task("dependency")
