"""From unmodified Python and NumPy to a Graph: converted source, Tensors, signatures, traces, cells.

Parts, in the order of the data: positions, hooks, rewrite, effort, guards, tracers, numpy_calls, control, effect_log, state,
refusals, drivers.
"""

from .drivers.calls import CallCapture, CallTrace, form_of, record_call, refuse_syntax, signature_key
from .drivers.piece_traces import EndPiece, failed_of
from .drivers.pieces import MOST_TRACES
from .drivers.trace import Trace, finish
from .guards.changes import Change, Leaf, changes, distance, leaves_of, with_guard
from .guards.signature import Foreign, Signature, key_of, substitute
from .hooks import HOOKS, call_user
from .numpy_calls.host_fallback import NotReplayable
from .positions import cell_names, describe, only_users, says_where, spans
from .refusals import Refusal, reason_of, reason_of_run, refusal_error
from .rewrite.convert import find_definition
from .state import Capture, current_capture
from .tracers.tensor import Tensor

__all__ = [
    "MOST_TRACES",
    "HOOKS",
    "CallCapture",
    "CallTrace",
    "Capture",
    "Change",
    "EndPiece",
    "Foreign",
    "Leaf",
    "NotReplayable",
    "Refusal",
    "Signature",
    "Tensor",
    "Trace",
    "call_user",
    "cell_names",
    "changes",
    "current_capture",
    "describe",
    "distance",
    "failed_of",
    "find_definition",
    "finish",
    "form_of",
    "key_of",
    "leaves_of",
    "only_users",
    "reason_of",
    "reason_of_run",
    "record_call",
    "refusal_error",
    "refuse_syntax",
    "says_where",
    "signature_key",
    "spans",
    "substitute",
    "with_guard",
]
