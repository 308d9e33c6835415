"""The settings of a model in a blueprint: the mistakes in them, each with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flujo_aros.blueprint.document import Node
from flujo_aros.pipeline.model_settings import unknown_setting, wrong_setting

if TYPE_CHECKING:
    from flujo_aros.blueprint.loading import Loading


def check_settings(loading: Loading, node: Node | None) -> dict[str, Any]:
    """The settings at this node; those that no model has, and values of a wrong kind, are noted and passed over."""
    sound: dict[str, Any] = {}
    for name, value in (node.members if node is not None else {}).items():
        plain = value.plain()
        unknown, wrong = unknown_setting(name), wrong_setting(name, plain)
        if unknown is not None:
            tell = loading.warn if loading.lenient else loading.note
            tell(node.keys[name] if node else value.place, unknown)
        elif wrong is not None:
            loading.doubt(value.place, wrong)
        else:
            sound[name] = plain
    return sound
