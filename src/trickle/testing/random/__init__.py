"""Random cases: tables, queries over all operators, and changes. All that is random is drawn from ``Choices``, where 0 is
always the simplest answer, so that Hypothesis finds a small case behind a large one.
"""
