"""Statistics over a stream of numbers, for baselines (pure)."""
