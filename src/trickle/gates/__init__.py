"""Gates decide whether a refresh goes on: pure predicates over facts, one per file, in two phases (pure).

*Admit* asks before anything is computed; an idle tick ends there, without a plan and without Spark. *Release* asks when
the change is staged and not yet committed. ``pipeline.py`` has both in their order.
"""
