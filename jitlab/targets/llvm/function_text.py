"""FunctionText: one LLVM function, written instruction by instruction as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jitlab.support.lazy_dataclass import dataclass


class Phi:
    """A phi instruction whose incoming values may be named later. Prints as its SSA name."""

    def __init__(self, name: str, type: str, incoming: Iterable[tuple[str, str]] = ()) -> None:
        self.name = name
        self.type = type
        self.incoming = list(incoming)

    def add_incoming(self, value: object, label: str) -> None:
        self.incoming.append((str(value), label))

    def render(self) -> str:
        edges = ", ".join(f"[ {value}, %{label} ]" for value, label in self.incoming)
        return f"{self.name} = phi {self.type} {edges}"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class FinishedText:
    """A function that several modules have."""

    name: str
    text: str
    declarations: dict[str, None]
    metadata: dict[str, None]
    shared: dict[str, FinishedText]

    def render(self) -> str:
        return self.text


class FunctionText:
    """One LLVM function. `instr` and `emit` append to the current block; `entry` is the first one.

    Block names carry no `%`; values do. `current` is the block being written: code that may have opened blocks
    (a loop, a rare slow path of a math function) changes it, so a phi's incoming label is read after such code.
    """

    def __init__(self, name: str, params: Sequence[tuple[str, str]] = (), returns: str = "void") -> None:
        self.name = name
        self.params = tuple(params)
        self.returns = returns
        self.attributes = "nounwind"
        self.linkage = ""
        self.current = "entry"
        self.declarations: dict[str, None] = {}  # a set that keeps its order
        self.metadata: dict[str, None] = {}
        self.called: set[str] = set()  # functions of the module
        self.shared: dict[str, FinishedText] = {}  # functions of the module that it calls, which several modules have
        self.shares = False  # long bodies are such functions; else they are written out
        self._counter = 0
        self._labels: dict[str, int] = {"entry": 1}
        self._kinds: dict[str, tuple[str, int]] = {}  # stack memory -> its type and alignment
        self._released: dict[tuple[str, int], list[str]] = {}
        self._allocas: list[str] = []
        self._ahead: list[str] = []
        self._lines: list[str | Phi] = []

    def instr(self, text: str) -> str:
        """Appends `%tN = text`; returns the name."""
        self._counter += 1
        name = f"%t{self._counter}"
        self._lines.append(f"{name} = {text}")
        return name

    def emit(self, text: str) -> None:
        """Appends an instruction without a result."""
        self._lines.append(text)

    def ahead(self, text: str) -> str:
        """Like `instr`, where the function starts: its operands are parameters and what was written ahead before."""
        self._counter += 1
        name = f"%t{self._counter}"
        self._ahead.append(f"{name} = {text}")
        return name

    def ahead_emit(self, text: str) -> None:
        self._ahead.append(text)

    def label(self, hint: str = "block") -> str:
        """A fresh block name; `block` starts it."""
        count = self._labels.get(hint, 0)
        self._labels[hint] = count + 1
        return f"{hint}.{count}"

    def block(self, name: str) -> None:
        """Starts the block. The one before must have ended with a branch or a return."""
        self._lines.append(f"{name}:")
        self.current = name

    def branch(self, label: str) -> None:
        self.emit(f"br label %{label}")

    def branch_if(self, condition: object, then: str, otherwise: str, *, likely: bool | None = None) -> None:
        """`condition` is an i1 value's text. `likely` weighs the two ways for LLVM's block placement."""
        weights = ""
        if likely is not None:
            number = 900 if likely else 901
            odds = "i32 2000, i32 1" if likely else "i32 1, i32 2000"
            self.metadata[f'!{number} = !{{!"branch_weights", {odds}}}'] = None
            weights = f", !prof !{number}"
        self.emit(f"br i1 {condition}, label %{then}, label %{otherwise}{weights}")

    def ret(self, value: object = None) -> None:
        self.emit("ret void" if value is None else f"ret {self.returns} {value}")

    def phi(self, type: str, incoming: Iterable[tuple[object, str]] = ()) -> Phi:
        """A phi in the current block; phis come before the block's other instructions."""
        self._counter += 1
        phi = Phi(f"%t{self._counter}", type, [(str(value), label) for value, label in incoming])
        self._lines.append(phi)
        return phi

    def alloca(self, type: str, align: int = 64) -> str:
        """Stack memory of the whole call, whichever block asks for it; what was released is used again."""
        released = self._released.get((type, align))
        if released:
            return released.pop()
        self._counter += 1
        name = f"%t{self._counter}"
        self._allocas.append(f"{name} = alloca {type}, align {align}")
        self._kinds[name] = type, align
        return name

    def release(self, name: str) -> None:
        """Nobody reads this stack memory after here: a function of many sums needs that of one."""
        self._released.setdefault(self._kinds[name], []).append(name)

    def declare(self, text: str) -> None:
        """A `declare ...` line of the module."""
        self.declarations[text] = None

    def finished(self) -> FinishedText:
        """As it is now."""
        return FinishedText(self.name, self.render(), self.declarations, self.metadata, self.shared)

    def nontemporal(self) -> str:
        """The suffix of a store that should not stay in the cache."""
        self.metadata["!902 = !{i32 1}"] = None
        return ", !nontemporal !902"

    def render(self) -> str:
        """The `define` alone, without the module's declarations."""
        params = ", ".join(f"{type} %{name}" for type, name in self.params)
        linkage = f"{self.linkage} " if self.linkage else ""
        lines = [f"define {linkage}{self.returns} @{self.name}({params}) {self.attributes} {{", "entry:"]
        lines += [f"  {line}" for line in (*self._allocas, *self._ahead)]
        for line in self._lines:
            text = line.render() if isinstance(line, Phi) else line
            lines.append(text if text.endswith(":") else f"  {text}")
        lines.append("}")
        return "\n".join(lines)


def module_text(functions: Sequence[FunctionText]) -> str:
    """A module of these functions and of what they share; equal declarations are written once."""
    declarations: dict[str, None] = {}
    metadata: dict[str, None] = {}
    shared = {name: function for f in functions for name, function in f.shared.items()}
    every: list[FunctionText | FinishedText] = [*shared.values(), *functions]
    for function in every:
        declarations |= function.declarations
        metadata |= function.metadata
    parts = [*declarations, *(function.render() for function in every), *metadata]
    return "\n".join(parts) + "\n"
