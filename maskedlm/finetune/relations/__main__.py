"""Runs `maskedlm finetune relations`, as a module."""

from maskedlm.cli import main

main.run_task("relations")
