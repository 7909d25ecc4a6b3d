"""Runs `maskedlm finetune spans`, as a module."""

from maskedlm.cli import main

main.run_task("spans")
