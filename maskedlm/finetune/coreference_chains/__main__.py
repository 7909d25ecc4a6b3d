"""Runs `maskedlm finetune coreference_chains`, as a module."""

from maskedlm.cli import main

main.run_task("coreference_chains")
