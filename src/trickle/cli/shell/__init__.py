"""The interactive session of ``trickle sql``."""
