"""Benchmarks of Trickle: ``python -m bench`` runs them, ``python -m bench report`` writes docs/benchmarks.md."""
