"""The linter: what is wrong, or will cost money for nothing, in a blueprint, before a token is spent."""

from __future__ import annotations

from flujo_aros.lint.check import Options, lint_files, lint_text
from flujo_aros.lint.finding import Applicability, Finding, Severity
from flujo_aros.lint.report import Linted, Report

__all__ = ["Applicability", "Finding", "Linted", "Options", "Report", "Severity", "lint_files", "lint_text"]
