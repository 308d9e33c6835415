"""The metadata of a release on the package index."""

import tomllib
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def links() -> dict[str, str]:
    return ProjectMetadata(str(ROOT), PluginManager()).core.urls


def test_a_release_links_to_the_repository_that_publishes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEASE_REPOSITORY", "https://github.com/acme/aros/")
    assert links() == {
        "Repository": "https://github.com/acme/aros",
        "Documentation": f"https://github.com/acme/aros/blob/v{VERSION}/docs/index.md",
        "Changelog": f"https://github.com/acme/aros/blob/v{VERSION}/CHANGELOG.md",
        "Issues": "https://github.com/acme/aros/issues",
    }


def test_a_build_that_names_no_repository_links_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELEASE_REPOSITORY", raising=False)
    assert links() == {}


def test_an_address_without_https_ends_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEASE_REPOSITORY", "github.com/acme/aros")
    with pytest.raises(ValueError, match="expected an address such as https://github"):
        links()
