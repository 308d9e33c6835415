# The public names, and where each is defined: `__init__.py` reads this declaration.

from flujo_aros.lint.check import Options as Options, lint_files as lint_files, lint_text as lint_text
from flujo_aros.lint.edits import Applicability as Applicability, Finding as Finding, Severity as Severity
from flujo_aros.lint.check import Linted as Linted, Report as Report
