"""Rewrites of plans that change their cost and not their meaning; each can be left out."""
