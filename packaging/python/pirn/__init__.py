"""Runs Python programs on virtual threads: `pirn run python app.py`, or `python -m pirn app.py`."""
