"""Why: the closed lists of causes for every decision that the compiler takes, and what would flip one."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import Any, Literal

from jitlab import messages
from jitlab.messages import Message
from jitlab.support.lazy_dataclass import dataclass


class Stays(Enum):
    """Why an operation is in no cluster, in the order the questions are asked.

    `meaning` is the question's name here, `upstream` what the contract logs for it.
    """

    def __init__(self, meaning: str, upstream: str) -> None:
        self.meaning, self.upstream = meaning, upstream

    DISALLOWED = "a jit_scope with compile_ops=False", "disallowed by _XlaCompile attribute"
    NO_COMPILER = "its device has no compiler", "could not find JIT device type"
    JIT_OFF = "the level is OFF and no scope marks it", "global jit disabled"
    LEVEL = "jit_compile=False and no scope marks it", "disallowed by _XlaCompile attribute"
    ARGUMENT = "an argument of the graph", "top level _Arg or _Retval"
    NO_LOOP_BODY = "jitlab has no loop for it", "unsupported op"
    DTYPE = "jitlab has no loop for this dtype", "unsupported op"
    FOREIGN_TYPE = "it works on other things than plain arrays", "unsupported op"
    DATA_DEPENDENT_SHAPE = "values decide the shape of its result", "unsupported op"
    EFFECT = "it has an effect outside the arrays", "unsupported op"
    UNSUPPORTED_WHILE = "a loop with an operation that can't be compiled", "unsupported while"
    UNSUPPORTED_IF = "a branch with an operation that can't be compiled", "unsupported if"
    UNSUPPORTED_FUNCTION = "a call of what can't be compiled", "unsupported function"
    DEPTH = "bodies inside bodies", "function depth limit exceeded"
    STATEFUL_RANDOM = "it draws from a random generator", "stateful random op"
    CHECK = "it checks a value and raises", "Assert or CheckNumerics"
    SLOW = "compiled code for it is slow", "slow operation"
    NOT_FUSIBLE = "it shares loops with nothing", "not fusable op but fusion_only enabled"
    NOT_LISTED = "not in tf_xla_ops_to_cluster", "rejected by allowlist"
    EXCLUDED = "in tf_xla_cluster_exclude_ops", "in the exclusion list"
    FUEL = "the fuel is used up", "fuel"
    SIZE = "its cluster would be too small", "cluster too small"


class Joined(Enum):
    """Why an operation is in its cluster."""

    MARKED = "marked by jit_scope"
    AUTO = "they can be compiled together"
    MUST = "jit_compile=True"
    PLACED = "placed on an XLA device"


class Apart(Enum):
    """Why an edge was not contracted, in the order the questions are asked."""

    NOT_COMPILED = "one end is not compiled"
    DEVICES = "the two nodes have incompatible devices"
    SCOPES = "the two nodes have mismatching XLA scopes"
    SIZE = "the new cluster will be larger than the max cluster size"
    CROSS_DEVICE = "the new cluster will introduce a cross device dependency"
    RESOURCES = "the new cluster would break resource variable semantics"
    CYCLE = "contracting the edge would create a cycle"


class Change(Enum):
    """What would be changed to flip a decision about clusters."""

    ALLOW = "compile_ops=True"
    MARK = "make it inside a jit_scope"
    ONE_SCOPE = "make them inside one jit_scope"
    LEVEL = "clustering ON"
    MUST = "jit_compile=True"
    MIN_SIZE = "tf_xla_min_cluster_size"
    MAX_SIZE = "tf_xla_max_cluster_size"
    FUEL = "tf_xla_clustering_fuel"
    LIST = "tf_xla_ops_to_cluster"
    DO_NOT_EXCLUDE = "tf_xla_cluster_exclude_ops"
    CAST = "another dtype"
    NEST_LESS = "fewer bodies inside one another"
    PLACE = "another device"
    USE_VALUE = "use the value that was assigned"
    COMPUTE_TWICE = "compute it a second time"


class NestChange(Enum):
    """What would be changed to flip a decision about nests."""

    MOVE = "write the line earlier"
    LIMIT = "a larger limit"
    REWRITE = "write it another way"


class NotFused(Enum):
    """Why two operations of one cluster are in different kernels; the first that holds is told."""

    LEVEL = "level_O0"
    CUT = "cut"  # a what-if says so
    RECOMPUTE_IS_EXPENSIVE = "recompute_is_expensive"  # it is read at many places, and computing it at each takes longer
    LIBRARY_CALL = "library_call"
    LOOP = "loop"  # a loop or branch has nests of its own
    UPDATED = "updated"  # part of an array is written
    NUMBER = "number"  # a number in a loop is computed at its place in the order
    WHOLE_REDUCTION = "whole_reduction"
    REDUCED_OUTER_AXIS = "reduced_outer_axis"
    GATHERED = "gathered"  # an index array says what is read
    RESHAPED = "reshaped"
    DIFFERENT_SPACE = "different_space"  # the loops have other extents
    READ_AGAIN = "read_again"  # elements are read that other iterations make
    OVERLAP = "overlap"  # what is read is overwritten by what reads it
    SCAN = "scan"  # a loop in order, along one axis
    WAITS = "waits"  # it reads what is known after the nest
    AFTER_LOOPS = "after_loops"  # it is made when the loops of its nest are done
    OTHER_AXES = "other_axes"  # other axes are reduced than the nest's
    CLOSED = "closed_nest"  # a nest that reduces, and that stores a value, takes nothing after that
    ORDER = "order"  # it comes after what closed the nest: it would be taken if it came before
    LATER_NEST = "later_nest"  # it joined a later nest, with which it shares something, too
    TOO_MANY_VALUES = "too_many_values"  # a nest stores and reduces no more values
    TOO_LONG = "too_long"  # a nest has no more operations


class Copied(Enum):
    """Why an array was copied that NumPy's program changes in place."""

    INPUT_KEPT = "input_kept"
    OLD_VERSION_READ = "old_version_read"
    SOURCE_CHANGES = "source_changes"
    MADE_ELSEWHERE = "made_elsewhere"
    SNAPSHOT = "snapshot"
    OVERLAP = "overlap"
    RIM = "rim"


class Stored(Enum):
    """Why a value of a cluster lies in memory although no edge to its reader was cut."""

    PARTIAL_RESULTS = "partial_results"
    LIBRARY_OPERAND = "library_operand"
    LOOP_VALUE = "loop_value"
    KEPT = "kept"
    UNREAD = "unread"
    LEAVES_CLUSTER = "leaves_cluster"


@dataclass(frozen=True)
class Reason:
    """One decision's cause: a code of a closed enum, its sentence for people, and plain evidence (names, sizes, paths).

    `args` are what fills the table's text, where it is of the table: that of its code, or of `detail` where a code has several.
    Of a text that goes on behind its first clause, `clause` and `rest` are the two; `size_in` says which of them says how many
    bytes the value has.
    """

    code: Stays | Joined | Apart | NotFused | Copied | Stored
    text: str
    evidence: tuple[Any, ...] = ()
    clause: str = ""
    rest: str = ""
    size_in: Literal["clause", "rest", ""] = ""
    args: dict[str, Any] | None = field(default=None, compare=False)
    detail: str = field(default="", compare=False)

    def to_json(self) -> dict[str, Any]:
        shown = {"evidence": [str(part) for part in self.evidence]} if self.evidence else {}
        parts = {"clause": self.clause, "rest": self.rest} if self.rest else {}
        size = {"size_in": self.size_in} if self.size_in else {}
        args = {"args": messages.plain(self.args)} if self.args else {}
        detail = {"detail": self.detail} if self.detail else {}
        return {"code": self.code.name.lower(), "text": self.text, **shown, **parts, **size, **args, **detail}


def because(
    code: Stays | Joined | Apart | Copied, said: str = "", /, evidence: tuple[Any, ...] = (),
    size_in: Literal["clause", ""] = "", **args: Any,
) -> Reason:  # fmt: skip
    """A reason in the words of the message table: those of its code, or of `said` where a code has several texts."""
    text = messages.text(f"{type(code).__name__.lower()}.{said or code.name.lower()}", **args)
    return Reason(code, text, evidence, size_in=size_in, args=args, detail=said)


def in_words(code: Stays | NotFused | Stored, said: Message, evidence: tuple[Any, ...] = ()) -> Reason:
    """A reason in the words of a message of its group."""
    return Reason(code, str(said), evidence, args=said.args, detail=said.name)


def in_two(
    code: NotFused | Stored, clause: Message, mark: str, rest: Message, evidence: tuple[Any, ...] = (),
    size_in: Literal["clause", "rest", ""] = "",
) -> Reason:  # fmt: skip
    """A reason of a clause, a mark behind it, and what follows. `size_in`: which of them says the size."""
    first, then, args = str(clause), str(rest), {**clause.args, **rest.args}
    return Reason(code, f"{first}{mark} {then}", evidence, first, then, size_in, args, clause.name)


@dataclass(frozen=True)
class Rejection:
    """One thing that kept an operation out of the nest that makes what it reads; with all of an edge undone, the two fuse.

    `operands`: the operations that it is about; `evidence`: extents, a limit and its value; `bytes`: what goes through memory
    for it. `flip` is None where no change undoes it.
    """

    code: NotFused
    operands: tuple[str, ...] = ()
    evidence: tuple[Any, ...] = ()
    bytes: int = 0
    flip: Flip | None = None


@dataclass(frozen=True)
class Flip:
    """The smallest change that was found to flip a decision: `said` follows "would compile if" or "would fuse if".

    `names`: the operations that are changed; `value`: what a setting (or an attribute of theirs) would be.
    """

    change: Change | NestChange
    said: Message
    names: tuple[str, ...] = ()
    value: Any = None
