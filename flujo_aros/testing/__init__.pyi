# The public names, and where each is defined: `__init__.py` reads this declaration.

from flujo_aros.testing.faults import (
    FAULTS as FAULTS,
    Fault as Fault,
    FaultyCall as FaultyCall,
    FaultyModel as FaultyModel,
)
from flujo_aros.testing.noise import (
    NOISES as NOISES,
    Noise as Noise,
    NoisyReply as NoisyReply,
    noisy_replies as noisy_replies,
)
from flujo_aros.testing.scripted import (
    ScriptedModel as ScriptedModel,
    ScriptedModels as ScriptedModels,
    cut as cut,
)
from flujo_aros.testing.virtual import Hang as Hang, run_virtual as run_virtual
