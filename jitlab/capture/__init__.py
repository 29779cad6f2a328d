"""From unmodified Python and NumPy to a Graph: converted source, Tensors, signatures, traces, cells."""

from .calls import CallCapture, CallTrace, not_captured, record_call, signature_key
from .changes import Change, Leaf, changes, distance, leaves_of
from .convert import find_definition
from .draws import random_state, set_random_state
from .hooks import HOOKS, call_user
from .host import NotReplayable
from .pieces import EndPiece
from .positions import cell_names, describe, spans, user_traceback
from .signature import Foreign, Signature, changed_container, key_of, substitute
from .state import Capture, current_capture
from .tensor import Tensor
from .trace import Trace, finish

__all__ = [
    "HOOKS",
    "CallCapture",
    "CallTrace",
    "Capture",
    "Change",
    "EndPiece",
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
    "not_captured",
    "random_state",
    "record_call",
    "set_random_state",
    "signature_key",
    "spans",
    "substitute",
    "user_traceback",
]
