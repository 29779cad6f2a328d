"""The magics: `%%jit` runs a cell compiled, `%jitlab` shows, exports and forgets what was recorded."""

# IPython's decorators have no types:
# mypy: disable-error-code="no-untyped-call,untyped-decorator"

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

import jitlab
from jitlab.api import Options, compile_trace
from jitlab.capture import cells
from jitlab.capture.positions import cell_names
from jitlab.config import config
from jitlab.errors import OptionError
from jitlab.report import Recording, Report

from .compare import Comparison
from .session import CellRun, Session

COMMANDS = ("status", "explain", "export", "clear")
PACKAGE = os.path.dirname(os.path.abspath(jitlab.__file__)) + os.sep


@magics_class
class JitMagics(Magics):
    """Registered by `%load_ext jitlab`."""

    def __init__(self, shell: Any, session: Session) -> None:
        super().__init__(shell)
        self.ip: Any = shell
        self.session = session

    @magic_arguments()
    @argument("--level", choices=("O0", "O1"), default="O1", help="O1 fuses operations (default), O0 keeps a kernel for each.")
    @argument("--strict", action="store_true", help="What cannot be compiled is an error, not a host operation.")
    @argument("--compare", action="store_true", help="Replay the cell op by op on NumPy, on copies, and show both times.")
    @argument("-o", dest="output", nargs="?", const="", metavar="NAME", help="Return the report, or bind it to NAME.")
    @cell_magic
    def jit(self, line: str, cell: str) -> Any:
        """Run the cell compiled, as far as it can be, and show what happened."""
        options = self._options(line)
        run = self.session.running
        own = run is None
        if run is None:  # a run without history, from a tool or a test
            run = self.session.begin(f"%%jit {line}\n{cell}")
        comparison = Comparison() if options.compare else None
        error: BaseException | None = None
        try:
            value = self._run(run, cell, options, comparison)
        except BaseException as raised:
            error = raised
            run.error = type(raised).__name__
            self._point_at_cell(raised)
            raise
        finally:
            if own:
                self.session.end(run, error)
            if error is not None:
                self._show(run)
        if value is not None and not DisplayHook.semicolon_at_end_of_expression(cell):
            if options.output == "":  # the cell's value will be the report
                display(value)
            else:
                self.ip.displayhook(value)
        if comparison is not None:
            self._compare(run, comparison)
        return self._give_report(run, options.output)

    @line_magic
    def jitlab(self, line: str) -> Any:
        """`%jitlab status | explain [N] | export PATH | clear`: what jitlab recorded in this notebook."""
        command, *rest = line.split() or ["status"]
        if command not in COMMANDS or (rest and command in ("status", "clear")) or len(rest) > 1:
            raise self._unknown(
                f"%jitlab {line}".strip(), "it does not know this command", "%jitlab status, explain [N], export PATH or clear"
            )
        match command:
            case "status":
                print(self._status())
            case "explain":
                display(self._chosen(rest[0] if rest else None))
            case "export":
                print(f"Written: {self._export(rest[0] if rest else None)}")
            case "clear":
                print(f"Forgot {self.session.clear()} recorded cells.")

    # ---- %%jit
    def _options(self, line: str) -> Any:
        """The options, all known; otherwise an error before anything ran."""
        try:
            options = parse_argstring(self.jit, line)
        except UsageError as error:
            why = str(error)
        except SystemExit:
            why = "it asks for help, which is shown by %%jit?"
        except ValueError as error:  # quotes that do not close
            why = str(error)
        else:
            if not options.output or options.output.isidentifier():
                return options
            why = f"{options.output!r} is not a name"
        raise self._unknown(f"%%jit {line}".rstrip(), why, "%%jit [--level O0|O1] [--strict] [--compare] [-o NAME]")

    def _unknown(self, command: str, why: str, hint: str) -> OptionError:
        run = self.session.running
        where = f"{run.title}, line {_line_of(command, run.source)}: {command}" if run else command
        error = OptionError("This magic has other options.", where=where, why=why, hint=hint)
        return self._without_frames(error)

    def _without_frames(self, error: OptionError) -> OptionError:
        """A wrong option has no history: the message stands alone."""
        error._render_traceback_ = lambda: self.ip.InteractiveTB.get_exception_only(type(error), error)  # type: ignore[attr-defined]
        return error

    def _point_at_cell(self, error: BaseException) -> None:
        """The traceback that is shown begins at the cell's own line and has no frame of jitlab or IPython."""
        frames = _of_user(error.__traceback__)
        if frames is not None:
            kind, formatter = type(error), self.ip.InteractiveTB

            def render() -> list[str]:
                return list(formatter.structured_traceback(kind, error, frames, tb_offset=0))

            error._render_traceback_ = render  # type: ignore[attr-defined]

    def _run(self, run: CellRun, cell: str, options: Any, comparison: Comparison | None) -> Any:
        """The cell's statements in the user's namespace; the value of a last expression."""
        source = _in_place(run.source, cell, self.ip.transform_cell(cell))
        filename = self.ip.compile.cache(source, run.count, raw_code=run.source)
        cell_names[filename] = run.title
        settings = Options(jit_compile=True if options.strict else None, level=options.level)
        with comparison.watching() if comparison is not None else nullcontext():
            result = cells.run_cell(
                source, self.ip.user_ns, filename, strict=options.strict, title=run.title,
                executor=lambda trace: compile_trace(trace, settings),
            )  # fmt: skip
        return result.value if result.has_value else None

    def _compare(self, run: CellRun, comparison: Comparison) -> None:
        """Replay on NumPy; the events of the replay's own compiled runs are not the cell's."""
        recording = run.recording
        why = "nothing was compiled in this cell"
        if recording is not None:
            with self.session.deaf():
                try:
                    why = comparison.replay(recording)
                except KeyboardInterrupt:
                    why = "the comparison was interrupted; the cell itself had ended"
        if why:
            print(f"Not compared with NumPy: {why}.", file=sys.stderr)

    def _show(self, run: CellRun) -> Report | None:
        report = self.session.report_of(run, saved=True)
        if report is not None:
            display(report)
        return report

    def _give_report(self, run: CellRun, output: str | None) -> Report | None:
        if output is None:
            self._show(run)
            return None
        report = self.session.report_of(run, saved=True) or Recording(run.about(saved=True)).report()
        if output == "":
            return report  # displayed as the cell's value
        self.ip.user_ns[output] = report
        self._show(run)
        return None

    # ---- %jitlab
    def _status(self) -> str:
        session = self.session
        panel = "no panel here" if session.link is None else "panel open" if session.link.attached else "panel not open"
        lines = [f"jitlab {jitlab.__version__}: clustering {config.global_jit_level}, {panel}"]
        reports = [(run, session.report_of(run)) for run in session.cells.values()]
        lines += [f"{run.title}: {str(report).splitlines()[0]}" for run, report in reports if report is not None]
        if not reports:
            lines.append("No cell has used it yet. Try: %%jit above a cell, or @jl.function above a function.")
        return "\n".join(lines)

    def _chosen(self, number: str | None) -> Report:
        """The report of In [number]; of the last cell that has one."""
        cells = [run for run in self.session.cells.values() if run is not self.session.running]
        chosen = [run for run in cells if number is None or str(run.count) == number]
        report = self.session.report_of(chosen[-1]) if chosen else None
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
            raise self._unknown(
                f"%jitlab export {path or ''}".rstrip(),
                "the ending of the path says what is written",
                f"%jitlab export report.html (or {', '.join(list(writers)[1:])})",
            )
        target = Path(path).expanduser()
        target.write_text(writers[ending](self._chosen(None)), encoding="utf-8")
        return target


JitMagics.jit.parser.allow_abbrev = False


def _in_place(raw: str, cell: str, code: str) -> str:
    """The cell's code below its magic (as a comment), so that its lines have the numbers that the person sees."""
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


def _of_user(whole: TracebackType | None) -> TracebackType | None:
    """A traceback without jitlab's own frames: the user's lines, and those of libraries they called."""
    frames = []
    while whole is not None:
        if not os.path.abspath(whole.tb_frame.f_code.co_filename).startswith(PACKAGE):
            frames.append(whole)
        whole = whole.tb_next
    result: TracebackType | None = None
    for frame in reversed(frames):
        result = TracebackType(result, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return result
