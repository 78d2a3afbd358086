"""Sums, extremes and products of arrays, in calls and as methods."""

from __future__ import annotations

from typing import Any

METHODS: dict[str, Any] = {}
RECORDED: dict[Any, Any] = {}
