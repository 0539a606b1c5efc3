"""Graph, order, cycles: pure."""
