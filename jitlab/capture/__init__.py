"""From unmodified Python and NumPy to a Graph: converted source, Tensors, signatures, traces, cells."""

from .convert import find_definition
from .hooks import HOOKS, call_user
from .positions import cell_names, describe, spans
from .signature import Change, Foreign, Leaf, Signature, changed_container, changes, distance, key_of, leaves_of, substitute
from .state import Capture, current_capture
from .tensor import Tensor
from .trace import NotReplayable, Trace, finish

__all__ = [
    "HOOKS",
    "Capture",
    "Change",
    "Foreign",
    "Leaf",
    "NotReplayable",
    "Signature",
    "Tensor",
    "Trace",
    "call_user",
    "cell_names",
    "changed_container",
    "changes",
    "current_capture",
    "describe",
    "distance",
    "find_definition",
    "finish",
    "key_of",
    "leaves_of",
    "spans",
    "substitute",
]
