"""For the tests of your own agents and pipelines: scripted models and the noise of real ones."""

from __future__ import annotations

from flujo_aros.testing.noise import NOISES, Noise, NoisyReply, noisy_replies
from flujo_aros.testing.scripted import ScriptedModel, ScriptedModels, cut

__all__ = ["NOISES", "Noise", "NoisyReply", "ScriptedModel", "ScriptedModels", "cut", "noisy_replies"]
