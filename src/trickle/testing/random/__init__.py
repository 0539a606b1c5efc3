"""Random cases: tables, queries over all operators, and changes.

All that is random is drawn from ``Choices``, where 0 is the simplest answer: Hypothesis finds the small case behind a
large one.
"""
