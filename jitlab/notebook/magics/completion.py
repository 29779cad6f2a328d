"""What the Tab key offers behind `%%jit`, `%jit` and `%jitlab`: options, commands, and what they take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jitlab.report.render.outline import PARTS

from . import run_commands

if TYPE_CHECKING:
    import argparse

    from .magics import JitMagics

#: A line up to the cursor: the magic, the words behind it that are complete, and the one that is being written.
LINE = re.compile(r"(?:.*=)?\s*(%%?jit(?:lab)?)\s+((?:.*\s)?)(\S*)")
#: What `%jit on` takes of the options: the reports of later cells have no one name, and later cells are not timed.
OF_ONE_CELL = ("-o", "-n", "-r", "-h", "--help")


class Completions:
    """A matcher of IPython's: asked for each completion in the shell, it answers where the line is one of these magics."""

    def __init__(self, magics: JitMagics, commands: tuple[str, ...]) -> None:
        self.magics = magics
        self.commands = commands
        self.matchers: list[Any] = []  # what IPython has of it

    def attach(self, completer: Any) -> None:
        try:
            from IPython.core.completer import context_matcher
        except ImportError:  # before IPython 8.6 a matcher was given the word, not the line
            return
        self.matchers = [context_matcher(identifier="jitlab")(lambda context: self.match(context.text_until_cursor))]
        completer.custom_matchers.extend(self.matchers)

    def detach(self, completer: Any) -> None:
        completer.custom_matchers[:] = [matcher for matcher in completer.custom_matchers if matcher not in self.matchers]

    def match(self, line: str) -> dict[str, Any]:
        """What is offered at the end of a line; `suppress`: and nothing of Python's beside it."""
        found = LINE.fullmatch(line)
        if found is None:
            return {"completions": []}
        magic, before, begun = found[1], found[2].split(), found[3]
        offered, begun = self.offered(magic, before, begun)
        fitting = [text for text in offered if text.startswith(begun)]
        # The beginning of an expression may be a name as well: `%jit on` beside the user's `only`.
        is_all = magic != "%jit" or not begun or begun.startswith("-")
        return {
            "completions": [_Completion(text, "magic") for text in fitting],
            "suppress": is_all, "ordered": True, "matched_fragment": begun,
        }  # fmt: skip

    def offered(self, magic: str, before: list[str], begun: str) -> tuple[list[str], str]:
        """What may stand there, and the part of the word that it replaces."""
        if magic == "%jitlab":
            return self.of_command(before), begun
        actions = self.magics.jit.parser._actions
        if magic == "%jit":
            if before[:1] == ["on"]:
                actions = [action for action in actions if not set(action.option_strings) & set(OF_ONE_CELL)]
            elif before and not before[-1].startswith("-") and not _is_value(actions, before):
                return [], begun  # the expression has begun
        option, equal, value = begun.partition("=")
        if equal and option.startswith("--"):
            before, begun = [*before, option], value
        values = _values_of(actions, before, begun)
        if values is not None and values[0]:
            begun = begun.rpartition(",")[2]
        more = [] if equal or (values is not None and values[1]) else _unused(actions, before)
        words = ["on", "off"] if magic == "%jit" and not before else []
        return [*words, *(values[0] if values is not None else ()), *more], begun

    def of_command(self, before: list[str]) -> list[str]:
        """Behind `%jitlab`: a command; behind it, what that one takes."""
        if not before:
            return list(self.commands)
        session = self.magics.session
        cells = [str(run.count) for run in session.cells.values() if run is not session.running]
        match before:
            case ["explain"]:
                return cells
            case ["baseline" | "compare", *_, "--cell"]:
                return cells
            case [*_, "--run"]:
                runs = [run for run in session.cells.values() if run is not session.running][-1:]
                return [str(told["run"]) for run in runs for told in session.history.to_json(run)["runs"][:-1]]
            case ["baseline" | "compare" as command, *words]:
                parser = run_commands.BASELINE if command == "baseline" else run_commands.COMPARE
                if words[-1:] in (["--save"], ["--load"]):
                    return []  # a path, which IPython completes
                names = [] if any(not word.startswith("-") for word in words) else list(session.history.names)
                return [*names, *_unused(parser._actions, words)]
        return []


class _Completion:
    """IPython's SimpleCompletion, as it reads it."""

    def __init__(self, text: str, type: str) -> None:
        self.text, self.type = text, type


def _unused(actions: Iterable[argparse.Action], before: list[str]) -> list[str]:
    """Options that do not stand there yet, long ones first; nothing while one of them waits for its value."""
    names = {word.partition("=")[0] for word in before}
    options = [option for action in actions if not names & set(action.option_strings) for option in action.option_strings]
    shown = [option for option in options if option not in ("-h", "--help")]
    return sorted(shown, key=lambda option: not option.startswith("--"))


def _is_value(actions: Iterable[argparse.Action], before: list[str]) -> bool:
    """Is the last word what an option before it takes?"""
    return any(before[-2:-1] == [option] and action.nargs != 0 for action in actions for option in action.option_strings)


def _values_of(actions: Iterable[argparse.Action], before: list[str], begun: str) -> tuple[list[str], bool] | None:
    """What the option before takes, where a list is known, and whether that has to stand there; None: it takes nothing."""
    action = next((action for action in actions if before and before[-1] in action.option_strings), None)
    if action is None or action.nargs == 0:
        return None
    must = action.nargs != "?"
    if action.dest == "show":
        chosen = begun.split(",")[:-1]
        return [part for part in (*PARTS, *(() if chosen else ("verdict", "none"))) if part not in chosen], must
    return [str(choice) for choice in action.choices or () if choice != action.const], must


__all__ = ["Completions"]
