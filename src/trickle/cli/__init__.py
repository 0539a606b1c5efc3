"""The ``trickle`` command.

Modules that need Spark, SQLAlchemy or sqlglot are imported inside the commands that use them: ``trickle version`` and
a press of the Tab key answer at once.
"""
