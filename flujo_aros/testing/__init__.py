"""For the tests of your own agents and pipelines: scripted models, noise, faulty providers, and virtual time."""

from __future__ import annotations

from flujo_aros.testing.faults import FAULTS, Fault, FaultyCall, FaultyModel
from flujo_aros.testing.noise import NOISES, Noise, NoisyReply, noisy_replies
from flujo_aros.testing.scripted import ScriptedModel, ScriptedModels, cut
from flujo_aros.testing.virtual import Hang, run_virtual

__all__ = [
    "FAULTS",
    "NOISES",
    "Fault",
    "FaultyCall",
    "FaultyModel",
    "Hang",
    "Noise",
    "NoisyReply",
    "ScriptedModel",
    "ScriptedModels",
    "cut",
    "noisy_replies",
    "run_virtual",
]
