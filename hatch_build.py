"""Fills in `[project.urls]`: whoever publishes the package names its repository, so no fork's wheel links elsewhere."""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "RELEASE_REPOSITORY"


class ProjectUrls(MetadataHookInterface):
    """Takes the address of the repository, such as `https://github.com/OWNER/NAME`, from the environment."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the links; none if the variable is not set. Raises `ValueError` for anything but an HTTPS address."""
        repository = os.environ.get(VARIABLE, "").strip().rstrip("/")
        if not repository:
            return
        if not repository.startswith("https://"):
            message = f"{VARIABLE} is {repository!r}; expected an address such as https://github.com/OWNER/NAME"
            raise ValueError(message)
        tagged = f"{repository}/blob/v{metadata['version']}"
        metadata["urls"] = {
            "Repository": repository,
            "Documentation": f"{tagged}/docs/index.md",
            "Changelog": f"{tagged}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }
