"""The magics: `%%jit` and `%jit` run cells and expressions compiled, `%jitlab` shows, exports and forgets what was recorded."""

# IPython's decorators have no types:
# mypy: disable-error-code="no-untyped-call,untyped-decorator"

from __future__ import annotations

import ast
import builtins
import inspect
import json
import linecache
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from copy import copy
from difflib import get_close_matches
from keyword import iskeyword
from pathlib import Path
from typing import Any, TypeVar

from IPython.core.displayhook import DisplayHook
from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    line_magic,
    magics_class,
    no_var_expand,
    output_can_be_silenced,
)
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

import jitlab
from jitlab.capture.positions import cell_names
from jitlab.capture.rewrite.cell_code import python_compiler
from jitlab.config import PLACES, config
from jitlab.errors import OptionError
from jitlab.messages.escape import clean
from jitlab.notebook.cell_session import CellRun, Session
from jitlab.report import Report
from jitlab.support import trees

from . import run_commands
from .completion import Completions
from .running import HELP, KEPT, Runner, displayed, driven, is_timed, parts_of
from .timing import whole_number

T = TypeVar("T")
SWITCHES = ("on", "off")  # of %jit
MEANT = {"report": "explain", "show": "explain", "save": "export", "list": "status", "reset": "clear", "forget": "clear"}
COMMANDS = ("status", "explain", "baseline", "compare", "export", "clear", "help")
OPTIONS_HINT = (
    "%%jit [--level O0|O1] [--device cpu|gpu] [--strict] [--compare [anew]] [--check] [--show PARTS] [-n N] [-r R] [-q] "
    "[-o NAME]"
)
LINE_HINT = (
    "%jit (x * 2).sum(), %jit on [--level O0|O1] [--device cpu|gpu] [--strict], %jit off, %jit -n 100 (x * 2).sum(); "
    "%%jit above a cell"
)
MOST_PARSED = 64  # lines of options that are known
LONG_OPTION = re.compile(r"\s*(?:--(?:level|device|show)(?:\s+|=)\S+|--strict|--compare(?:\s+anew)?|--check)(?:\s+|$)")
SHORT_OPTION = re.compile(r"\s*(?:-q|-[nr]\s*\S+)(?:\s+|$)")


def _whole(text: str) -> int:
    """The value of -n or -r, for argparse."""
    try:
        return whole_number(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


@magics_class
class JitMagics(Magics):
    """Registered by `%load_ext jitlab`."""

    def __init__(self, shell: Any, session: Session) -> None:
        super().__init__(shell)
        self.ip: Any = shell
        self.session = session
        self._parsed: dict[str, Any] = {}  # options, by what stands behind `%%jit`
        self.runner = Runner(shell, session, self._options)
        self.runner.attach()
        self.completions = Completions(self, COMMANDS)
        self.completions.attach(shell.Completer)

    def detach(self) -> None:
        """The extension is unloaded."""
        self.runner.detach()
        self.completions.detach(self.ip.Completer)

    @magic_arguments()
    @argument(
        "--level", choices=("O0", "O1"), default="O1", metavar="LEVEL",
        help="O1 fuses operations (default), O0 keeps a kernel for each.",
    )  # fmt: skip
    @argument(
        "--device", choices=PLACES, default=None, metavar="DEVICE",
        help="gpu: what is compiled runs on the GPU, cpu: on the processor, auto: by a model (default: jl.config.device).",
    )  # fmt: skip
    @argument("--strict", action="store_true", help="What cannot be compiled is an error, not a host operation.")
    @argument(
        "--compare", nargs="?", const=KEPT, default="", choices=(KEPT, "anew"), metavar="anew",
        help="Run the cell's statements by NumPy, too, in turns with what is compiled, and show how many times as fast it is. "
        "While the cell and the sizes are the same, that stands; anew measures again.",
    )  # fmt: skip
    @argument("-n", dest="loops", type=_whole, metavar="N", help="Time it: N loops a run (default: as many as take 0.2 s).")
    @argument("-r", dest="runs", type=_whole, metavar="R", help="Time it: R runs (default 7).")
    @argument("-q", dest="quiet", action="store_true", help="Show nothing below the cell; -o has the report.")
    @argument("--check", action="store_true", help="Run each cluster beside NumPy, on copies: errors, bounds, what broke one.")
    @argument(
        "--show", metavar="PARTS", help="Of graph,retraces,timeline those to show below the cell; verdict alone; or none."
    )
    @argument("-o", dest="output", nargs="?", const="", metavar="NAME", help="Return the report, or bind it to NAME.")
    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic
    def jit(self, line: str, cell: str | None = None) -> Any:
        """Run the cell compiled, as far as it can be, and show what happened.

        `%%jit` above a cell; `%jit expression` in any cell; `%jit on` and `%jit off` for all cells from the next one on.

        Examples
        --------
            %%jit                              the cell's verdict, clusters, retraces and timeline stand below it
            %%jit --compare                    and how many times as fast as NumPy that is
            %%jit -n 100 -r 5                  and how long 100 loops take, 5 times, as %timeit tells it
            %%jit --device gpu                 what is compiled runs on the GPU; arrays are copied there and back
            %%jit --strict                     an error where something cannot be compiled
            %%jit --show retraces,timeline     the verdict with these parts; --show none for nothing
            %%jit -o report                    binds the report: report.why("exp", "sum"), report.to_html("a.html")
            %jit (x * 2).sum()                 the value of one expression
            %jit -n 100 (x * 2).sum()          and how long 100 loops take
            %jit on --level O0                 all cells from the next one on; %jit off ends it

        A cell runs once. What --check, -n and -r run again is its compiled code, on copies taken before it ran, with Variables
        and random generators as they were; statements that Python ran do not run again, and the report names them. --compare
        runs the statements themselves by NumPy, and with those that Python ran as jitlab runs them, and puts back what they
        change; where that cannot be done (files, what other libraries hold, iterators) each captured operation runs by itself,
        and the report says why. It measures 0.3 s, where 10 rounds take longer 2 s; a single run of NumPy's that takes longer
        than 2 s, and 10 times what the cell took, is ended: "at least 40 × faster". An interrupt ends the measuring alone.

        The last expression displays as in any cell; `;` behind it hides it. What cannot be traced runs as Python.
        """
        if line.strip() in HELP:
            print(JitMagics.jit.__doc__.strip())
            return None
        if cell is None:
            return self._line(line)
        options = self._options(line)
        run = self._run(f"%%jit {line}\n{cell}")
        source = _in_place(run.source, cell, self.ip.transform_cell(cell))
        filename = self.ip.compile.cache(source, run.count, raw_code=run.source)
        cell_names[filename] = run.title
        tree = self.ip.transform_ast(self.ip.compile.ast_parse(source, filename=filename))
        nodes, shown = displayed(tree.body, self.ip.ast_node_interactivity)
        silent = DisplayHook.semicolon_at_end_of_expression(cell)
        show = (lambda value: None) if silent else None
        driven(self.runner.perform(run, nodes, filename, options, shown=shown, compiler=self.ip.compile, show=show))

    def _run(self, source: str) -> CellRun:
        """The cell that runs; one without history, from a tool or a test, is not known yet."""
        run = self.session.running
        if run is None:
            run = self.session.begin(source)
            run.is_own = True
        return run

    # ---- %jit
    def _line(self, line: str) -> Any:
        """`%jit on`, `%jit off`, `%jit expression`."""
        words = line.split()
        if words[:1] == ["on"]:
            options = self._options(line.strip()[2:].strip(), f"%jit {line}".strip())
            if options.output is not None:
                raise self._unknown(f"%jit {line}", "the reports of later cells have no one name", LINE_HINT)
            if is_timed(options):
                raise self._unknown(f"%jit {line}", "-n and -r would time every later cell", "%%jit -n 100 above one cell")
            self.runner.always = options
            return None
        if words == ["off"]:
            self.runner.always = None
            return None
        if near := self._switch_meant(words):
            what = f"%jit has no switch {words[0]}, and nothing is called so. Did you mean {near}?"
            raise self._unknown(f"%jit {line}", f"{words[0]} is no name of the program", LINE_HINT, what)
        end = _end_of_options(line)
        options = self._options(line[:end], f"%jit {line}".strip())
        return self._expression(line[end:].strip().rstrip(";"), f"%jit {line}".strip(), options)

    def _switch_meant(self, words: list[str]) -> str:
        """Of a word that is no name and stands alone, or with options: `on` or `off` where it is like it, else ""."""
        name = words[0] if words and all(word.startswith("-") for word in words[1:2]) else ""
        if not name.isidentifier() or iskeyword(name) or name in self.ip.user_ns or hasattr(builtins, name):
            return ""
        return next(iter(get_close_matches(name.lower(), SWITCHES, 1)), "")

    def _expression(self, text: str, command: str, options: Any) -> Any:
        """The value of an expression, captured and run; its report is shown when the cell has ended."""
        try:
            expression = trees.parse_expression(text)
        except SyntaxError as error:
            why = f"{text!r} is not one: {error.msg}" if text else "there is nothing behind it"
            raise self._unknown(command, why, LINE_HINT, "This magic runs one expression.") from None
        run = self.session.running
        own = run is None
        run = self._run(command)
        run.is_own = False
        filename, line = self._where(run)
        raw = run.source.split("\n")[line - 1 :][:1]
        column = len(raw[0][: raw[0].find(text)].encode()) if raw and text in raw[0] else 0
        known = linecache.cache.get(filename, ())
        if raw and len(known) == 4 and line <= len(known[2]):
            lines = [*known[2][: line - 1], raw[0] + "\n", *known[2][line:]]  # as the user wrote it
            linecache.cache[filename] = (known[0], known[1], lines, known[3])
        ast.increment_lineno(expression, line - 1)
        for node in ast.walk(expression):
            if isinstance(node, ast.expr) and node.end_col_offset is not None:
                node.col_offset += column * (node.lineno == line)
                node.end_col_offset += column * (node.end_lineno == line)
        statement = ast.copy_location(ast.Expr(expression), expression)
        values: list[Any] = []
        asked = copy(options)
        asked.output = "_"  # no report now
        done = self.runner.perform(
            run, [statement], filename, asked, shown="last_expr", compiler=python_compiler, show=values.append, report=False
        )
        run.finish = lambda: None if run.is_shown else self.runner.show(run, options)
        try:
            driven(done)
        finally:
            if own:
                self.session.end(run, sys.exc_info()[1])
        return values[0]

    def _where(self, run: CellRun) -> tuple[str, int]:
        """The file and line of the cell that a magic stands on."""
        frame = sys._getframe()
        while frame is not None:
            if cell_names.get(frame.f_code.co_filename) == run.title:
                return frame.f_code.co_filename, frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        name = f"<{run.title}>"
        cell_names[name] = run.title
        return name, 1

    @line_magic
    def jitlab(self, line: str) -> None:
        """What jitlab recorded in this notebook.

        %jitlab status                      a line for each cell, of its newest run: how much was compiled, how long it took
        %jitlab explain [N]                 the report of In [N], else of the last cell
        %jitlab baseline [NAME]             keep the newest runs under a name; list the names
                 [--cell N]                 of In [N] alone
                 [--save PATH]              write it to a file
                 [--load PATH]              read it from a file
                 [--drop]                   forget it
        %jitlab compare [NAME]              the last cell's run against a baseline, else against the runs before
                 [--run N] [--cell N]       against run N; of In [N]
        %jitlab export PATH                 the last report as .html, .svg, .txt, .dot, .json or .ctf.json
        %jitlab clear                       forget the runs; baselines stay
        %jitlab help                        what you are reading

        %%jit? documents the cell magic; print(f.ledger), f.check(*args), f.whatif(*args, cut=[...]) ask one function.
        """
        command, *rest = line.split() or ["status"]
        if command in ("help", *HELP):
            print(inspect.getdoc(JitMagics.jitlab))
            return
        where = f"%jitlab {line}".strip()
        if command not in COMMANDS:
            near = [MEANT[command]] if command in MEANT else get_close_matches(command, COMMANDS, 1)
            what = f"%jitlab has no command {command}." + (f" Did you mean {near[0]}?" if near else "")
            why = f"the commands are {', '.join(COMMANDS[:-1])}"
            raise self._unknown(where, why, "%jitlab help, which says what each does", what)
        if len(rest) > {"explain": 1, "export": 1, "status": 0, "clear": 0}.get(command, len(rest)):
            takes = {"explain": "the number of one cell", "export": "one path"}.get(command, "nothing else")
            raise self._unknown(where, f"{command} takes {takes}", "%jitlab help")
        match command:
            case "baseline":
                print(self._told(run_commands.baseline, line))
            case "compare":
                display(self._told(run_commands.compare, line))
            case "status":
                print(self._status())
            case "explain":
                display(self._chosen(rest[0] if rest else None))
            case "export":
                print(f"Written: {clean(self._export(rest[0] if rest else None))}")
            case "clear":
                count = self.session.clear()
                print(f"Forgot {count} recorded {'cell' if count == 1 else 'cells'}.")

    def _told(self, command: Callable[[Session, str], T], line: str) -> T:
        try:
            return command(self.session, line.strip().partition(" ")[2])
        except OptionError as error:
            raise self._without_frames(error) from None

    def _options(self, line: str, command: str = "") -> Any:
        """The options, all known; otherwise an error before anything ran."""
        is_value = True
        if line in self._parsed:
            return copy(self._parsed[line])
        try:
            options = parse_argstring(self.jit, line)
        except UsageError as error:
            why = str(error)
            is_value = why.startswith("argument ")
        except SystemExit:
            why, is_value = "it asks for help, which is shown by %%jit?", False
        except ValueError as error:  # quotes that do not close
            why, is_value = str(error), False
        else:
            try:
                parts_of(options)
                if not options.output or (options.output.isidentifier() and not iskeyword(options.output)):
                    if len(self._parsed) < MOST_PARSED:
                        self._parsed[line] = copy(options)
                    return options
                why = f"{options.output!r} is not a name"
            except ValueError as error:
                why = str(error)
        hint = _value_hint(why, line) + (LINE_HINT if command else OPTIONS_HINT)
        what = "An option has a value that it does not take." if is_value else _no_option(line, "%jit" if command else "%%jit")
        raise self._unknown(command or f"%%jit {line}".rstrip(), why, hint, what)

    def _unknown(self, command: str, why: str, hint: str, what: str = "This magic has other options.") -> OptionError:
        run = self.session.running
        where = f"{run.title}, line {_line_of(command, run.source)}: {command}" if run else command
        error = OptionError(what, where=where, why=why, hint=hint)
        return self._without_frames(error)

    def _without_frames(self, error: OptionError) -> OptionError:
        """A wrong option has no history: the message stands alone."""
        error._render_traceback_ = lambda *_: self.ip.InteractiveTB.get_exception_only(type(error), error)  # type: ignore[attr-defined]
        error._jitlab_run = self.session.running  # type: ignore[attr-defined]
        return error

    # ---- %jitlab
    def _status(self) -> str:
        session = self.session
        panel = "panel open" if session.link is not None and session.link.attached else "panel not open"
        panel = panel if session.link is not None else "the panel is JupyterLab's"
        lines = [f"jitlab {jitlab.__version__}: clustering {config.global_jit_level}, {panel}"]
        always = self.runner.always
        if always is not None:
            strict = ", strict" if always.strict else ""
            lines.append(f"%jit is on: every cell is compiled, at level {always.level}{strict}. %jit off ends it.")
        reports = [(run, session.report_of(run)) for run in session.cells.values()]
        lines += [f"{run.title}: {report.in_short}" for run, report in reports if report is not None]
        if not reports:
            lines.append("No cell has used it yet. Try: %%jit above a cell, or @jl.function above a function.")
        return "\n".join(lines)

    def _chosen(self, number: str | None) -> Report:
        """The report of In [number]; of the last cell that has one."""
        cells = [run for run in self.session.cells.values() if run is not self.session.running]
        chosen = [run for run in cells if number is None or str(run.count) == number]
        report = self.session.shown_report(chosen[-1]) if chosen else None
        if report is None:
            known = ", ".join(str(run.count) for run in cells)
            error = OptionError(
                f"There is no report of In [{number}]." if number else "There is no report yet.",
                why="only cells in which jitlab compiled something have one",
                hint=f"%jitlab explain {known}" if known else "%%jit above a cell, or @jl.function above a function",
            )
            raise self._without_frames(error)
        return report

    def _export(self, path: str | None) -> Path:
        """Write the last report; the ending says as what."""
        writers = {
            ".html": lambda report: report.to_html(),
            ".svg": lambda report: report.to_svg(),
            ".txt": lambda report: str(report) + "\n",
            ".dot": lambda report: report.graph().source,
            ".ctf.json": lambda report: json.dumps(report.timeline.to_chrome(), separators=(",", ":")),
            ".json": lambda report: json.dumps(report.to_json(), indent=1),
        }
        ending = next((ending for ending in writers if path and path.endswith(ending)), None)
        if path is None or ending is None:
            has = f"%jitlab export writes no {Path(path).suffix or 'file without an ending'}." if path else ""
            raise self._unknown(
                f"%jitlab export {path or ''}".rstrip(),
                "the ending of the path says what is written",
                f"%jitlab export report.html (or {', '.join(list(writers)[1:])})",
                has or "%jitlab export takes a path.",
            )
        target = Path(path).expanduser()
        text = writers[ending](self._chosen(None))
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            hint = "a folder that is there and that you may write to"
            raise OptionError(f"{path} can't be written.", why=error.strerror or str(error), hint=hint) from None
        return target


JitMagics.jit.parser.allow_abbrev = False


def _no_option(line: str, magic: str) -> str:
    """Of a line with an option that the magic has not: its name, and the one that is nearest."""
    known = [option for action in JitMagics.jit.parser._actions for option in action.option_strings]
    names = (word.partition("=")[0] for word in line.split())
    unknown = next((name for name in names if name.startswith("-") and name not in known), None)
    if unknown is None:
        return f"{magic} has other options."
    near = get_close_matches(unknown, known, 1)
    return f"{magic} has no option {unknown}." + (f" Did you mean {near[0]}?" if near else "")


def _value_hint(why: str, line: str) -> str:
    """What to write instead of a value that an option does not take; "" where that is not known."""
    found = re.match(r"argument (-[nr]|--level|--device)\b", why)
    if found is None:
        return ""
    action = JitMagics.jit.parser._option_string_actions[found[1]]
    if action.choices is None:
        return f"{found[1]} 10, or leave it away: "
    written = {str(choice).lower(): choice for choice in action.choices}
    wrong = re.split(r"[\s=]+", line.partition(found[1])[2].lower())[1:2]
    near = get_close_matches(wrong[0], written, 1) if wrong else []
    return " or ".join(f"{found[1]} {choice}" for choice in ([written[near[0]]] if near else action.choices)) + ": "


def _end_of_options(line: str) -> int:
    """Where the expression of a `%jit` line begins. `-n` may begin one: what is an expression as it stands has no options."""
    at = 0
    while found := LONG_OPTION.match(line, at) or (None if _is_expression(line[at:]) else SHORT_OPTION.match(line, at)):
        at = found.end()
    return at


def _is_expression(text: str) -> bool:
    try:
        trees.parse_expression(text.strip().rstrip(";"))
    except (SyntaxError, ValueError):
        return False
    return True


def _in_place(raw: str, cell: str, code: str) -> str:
    """The cell's code below its magic (as a comment), so that its lines have the numbers that the user sees."""
    raw_lines, cell_lines = raw.rstrip().split("\n"), cell.rstrip().split("\n")
    above = len(raw_lines) - len(cell_lines)
    if above < 0 or raw_lines[above:] != cell_lines:
        above = 1
    lost = 0  # IPython takes empty lines away at the start
    for line in cell_lines:
        if line.strip():
            break
        lost += 1
    kept = len(code) - len(code.lstrip("\n"))
    magic = "".join(f"# {line}\n" for line in raw_lines[:above]) if above <= len(raw_lines) else "\n" * above
    return magic + "\n" * max(0, lost - kept) + code


def _line_of(command: str, source: str) -> int:
    """The line of a cell on which a magic stands."""
    words = command.split()
    return next((n for n, line in enumerate(source.split("\n"), 1) if line.split()[:1] == words[:1]), 1)
