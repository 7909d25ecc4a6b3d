"""Injects faults by the thousand: `python tests/faults/campaign.py --help`."""
