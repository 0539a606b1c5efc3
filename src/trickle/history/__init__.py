"""Sixth on the data path: what every refresh did, and what went wrong."""
