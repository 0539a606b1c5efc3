"""The warehouse of each test."""

from __future__ import annotations

from tests.scenarios.fixtures import t as t
