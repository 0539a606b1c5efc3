"""Random cases: tables, queries over all operators, and changes.

All that is random is drawn from ``Choices``, where 0 is the simplest answer, so that the small case behind a large one
can be found (``shrink.py``). Not by Hypothesis: it likes extremes, and a query in which every choice is the largest
takes too long to be one of thousands.
"""
