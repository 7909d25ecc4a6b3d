"""What a run takes of machines that aren't here: fits, traffic, time."""
