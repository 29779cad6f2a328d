"""How a `%%jit` cell runs: IPython prepares, numbers and remembers the cell as always; its statements run captured.

`%%jit` becomes a comment, so what is below it is an ordinary cell: it may `await`, hold magics, and be wrong. Only the last
step, `run_ast_nodes`, is ours.
"""

# IPython's functions have no types:
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import ast
import io
import linecache
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

from IPython.core.compilerop import CachingCompiler
from IPython.display import display

from jitlab import costs, events
from jitlab.api import Options, compile_trace
from jitlab.api.deciding_cells import DecidedCell
from jitlab.capture.drivers import cells
from jitlab.capture.drivers.cells import Settles
from jitlab.capture.effort import waited_by
from jitlab.capture.positions import cell_names, cell_traceback
from jitlab.capture.rewrite.cell_code import waits
from jitlab.messages.escape import clean
from jitlab.notebook.cell_session import JIT_LINE, KEPT_SOURCES, CellRun, Session
from jitlab.report import Recording
from jitlab.report.render.outline import PARTS
from jitlab.support.later import Later
from jitlab.support.lazy import lazy
from jitlab.support.transactions import Undisturbed
from jitlab.targets.devices import placement

from .waiting import Measuring, Waiting

if TYPE_CHECKING:
    from . import compare, kept_factors
    from .kept_factors import KeptFactors
else:
    compare, kept_factors = Later(f"{__package__}.compare"), Later(f"{__package__}.kept_factors")

#: What `--compare` means alone: a factor that was measured before stands while the cell is the same.
KEPT = "kept"

ENTER = compile(f"__import__({__name__!r}, fromlist=['entered']).entered()", __file__, "eval")


class Runner:
    """Takes the cells that ask for it out of IPython's hands, between parsing and running."""

    def __init__(self, shell: Any, session: Session, parse: Callable[[str], Any]) -> None:
        self.ip = shell
        self.session = session
        self.parse = parse  # the text behind `%%jit` -> options, or an OptionError
        self._always: Any = None
        self._files: OrderedDict[tuple[str, str], str] = OrderedDict()  # by the id of a cell and its code
        self.unasked: Any = None  # those of the last cell that was captured by it, which may have been `%jit off`

    @property
    def always(self) -> Any:
        """The options of `%jit on`; None where it is off."""
        return self._always

    @always.setter
    def always(self, options: Any) -> None:
        self._always = options
        if self.session.link is not None:
            self.session.link.tell_switch()

    def switch(self, on: bool | None) -> dict[str, Any]:
        """`%jit on` or `%jit off` by a button; None asks. What it is then, for the front end."""
        if on is not None and on != (self._always is not None):
            self._always = self.parse("") if on else None
        options = self._always
        level, strict = (options.level, options.strict) if options is not None else (None, False)
        return {"op": "switch", "on": options is not None, "level": level, "strict": strict}

    @lazy
    def factors(self) -> KeptFactors:
        """How many times as fast as NumPy cells were."""
        return kept_factors.KeptFactors()

    def attach(self) -> None:
        if self.session.link is not None:
            self.session.link.has_switch(self.switch)
        self.ip.input_transformers_cleanup.insert(0, self.as_comment)
        self.plainly = self.ip.run_ast_nodes
        self.ip.run_ast_nodes = self.run_ast_nodes
        if type(self.ip.compile).get_code_name is CachingCompiler.get_code_name:  # a kernel's names are of the text alone
            self.ip.compile.get_code_name = NameOfText(self.ip.compile)
        self.ip.compile.cache = LinesOfPython(self.ip.compile.cache, self.session)

    def detach(self) -> None:
        if self.as_comment in self.ip.input_transformers_cleanup:
            self.ip.input_transformers_cleanup.remove(self.as_comment)
        if self.ip.__dict__.get("run_ast_nodes") == self.run_ast_nodes:
            del self.ip.run_ast_nodes
        if isinstance(self.ip.compile.get_code_name, NameOfText):
            del self.ip.compile.get_code_name
        if isinstance(self.ip.compile.cache, LinesOfPython):
            del self.ip.compile.cache

    def as_comment(self, lines: list[str]) -> list[str]:
        """before: `%%jit --level O0`, code; after: `# %%jit --level O0`, code. Lines keep their numbers, empty ones too."""
        if self.session.running is not None:  # another magic reads the cell it was given, which is not the one that runs
            return lines
        above = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
        found = JIT_LINE.fullmatch(lines[above]) if above < len(lines) else None
        if found is None or not any(line.strip() for line in lines[above + 1 :]):
            return lines
        indent = found[1]
        return [*[f"{indent}#\n"] * above, f"{indent}# {lines[above].strip()}\n", *lines[above + 1 :]]

    async def run_ast_nodes(
        self, nodelist: list[ast.stmt], cell_name: str, interactivity: str = "last_expr", compiler: Any = compile,
        result: Any = None,
    ) -> Any:  # fmt: skip
        """IPython's method: run a cell's statements, and say whether one raised."""
        line = self.asked(nodelist, result)
        if line is None:
            self.note_plain(nodelist, cell_name, result)
            return await self.plainly(nodelist, cell_name, interactivity=interactivity, compiler=compiler, result=result)
        run = self.session.running
        if run is None or run.info is not result.info:  # a run without history, from a tool or a test
            run = self.session.begin(result.info.raw_cell)
            run.is_own = True
        cell_name = self.file_of(run, cell_name)
        cell_names[cell_name] = run.title
        nodes, shown = displayed(nodelist, interactivity)
        flags = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0) if self.ip.autoawait else 0

        refused: list[SyntaxError] = []  # what parses, but does not compile: a `return`

        def compile_(tree: Any, filename: str, mode: str) -> Any:
            try:
                with compiler.extra_flags(flags) if hasattr(compiler, "extra_flags") else nullcontext():
                    return compiler(tree, filename, mode)
            except SyntaxError as error:
                refused.append(error)
                raise

        async def cell() -> None:
            if line is not AUTOMATIC and line.strip() in HELP:  # in place of the cell
                print(self.ip.magics_manager.magics["cell"]["jit"].__doc__.strip())
                return
            options = self.always if line is AUTOMATIC else self.parse(line)
            if line is AUTOMATIC:
                self.unasked = options
            try:
                await self.perform(run, nodes, cell_name, options, shown=shown, compiler=compile_)
            except SyntaxError as error:
                if error not in refused:
                    raise

        is_waiting = bool(flags) and self.may_wait(cell_name) and any(map(waits, nodes))
        _entering.append(cell() if is_waiting else _Driven(cell()))
        failed = await self.ip.run_code(ENTER, result, async_=is_waiting)
        if refused and not failed:
            result.error_before_exec = refused[-1]
            self.ip.showtraceback((type(refused[-1]), refused[-1], None))
            return True
        return failed

    def note_plain(self, nodes: list[ast.stmt], filename: str, result: Any) -> None:
        """An ordinary cell begins: functions that it calls may be compiled, and be measured beside NumPy."""
        run = self.session.running
        if run is not None and result is not None and run.info is result.info:
            run.nodes, run.filename = list(nodes), filename
            if self.session.inputs.wants_all(run.id):
                with Undisturbed("could not keep the statements of a cell"):
                    self.session.inputs.keep(run, self.ip.user_ns)

    def may_wait(self, name: str) -> bool:
        """Has the text of a cell a word of those that wait? True where its statements may be others than its text's."""
        known = linecache.cache.get(name)
        if known is None or len(known) != 4 or self.ip.ast_transformers:
            return True
        return any("await" in line or "async" in line for line in known[2])

    def file_of(self, run: CellRun, name: str) -> str:
        """The name of a cell's file, given what IPython calls it: that of the run before with the same code, whose options may
        have been others, so that its traces are found."""
        key = run.id, "\n".join(run.code)
        known = self._files.pop(key, name)
        if known != name and (is_debugged() or name not in linecache.cache):  # breakpoints are those of the name
            known = name
        self._files[key] = known
        if known != name:
            linecache.cache[known] = linecache.cache[name]
            getattr(self.ip.compile, "_filename_map", {})[known] = run.count
        if len(self._files) > KEPT_SOURCES:
            self._files.popitem(last=False)
        return known

    def asked(self, nodes: list[ast.stmt], result: Any) -> str | None:
        """The options of this cell, as text; None when IPython shall run it."""
        info = getattr(result, "info", None)
        if info is None or not nodes or _is_cell_magic(nodes):
            return None
        first = next((line for line in (info.raw_cell or "").split("\n") if line.strip()), "")
        found = JIT_LINE.fullmatch(first)
        if found is not None:
            return found[2]
        if self.always is not None and info.store_history and not info.silent and not first.lstrip().startswith("%%"):
            return AUTOMATIC
        return None

    async def perform(
        self, run: CellRun, nodes: list[ast.stmt], filename: str, options: Any, *, shown: str, compiler: Any,
        show: Callable[[Any], object] | None = None, report: bool = True,
    ) -> None:  # fmt: skip
        """Run statements captured, and show the values and the report. `options.output` names it, "" makes it the value.
        `report` False: they are one expression of a cell that goes on."""
        device = placement(options.device)
        said = f"{options.level} {options.strict} {device}".rstrip()
        key = kept_factors.key_of(nodes, said, self.ip.user_ns) if options.compare else ()
        is_known = options.compare == KEPT and self.factors.find(key) is not None
        again = bool(options.compare and not is_known) or options.check or is_timed(options)
        comparison = compare.Comparison(leaves_out=is_timed(options)) if again else None
        settings = Options(jit_compile=True if options.strict else None, level=options.level, replays=True, device=device)
        observer = partial(DecidedCell, str(options.level), device)
        perform = partial(
            cells.run_nodes, nodes, self.ip.user_ns, filename, shown=shown, compiler=compiler, strict=options.strict,
            executor=lambda trace: compile_trace(trace, settings), title=run.title,
        )  # fmt: skip
        run.nodes, run.filename, run.is_found = nodes, filename, True
        run.again = lambda: driven(perform(display=lambda value: None, observer=observer()))
        if comparison is not None and options.compare and not is_known:
            comparison.keep(nodes, filename, self.ip.user_ns, run.again)
        run.found = self.session.inputs.found(run, self.ip.user_ns)
        is_wanted = self.session.inputs.wants_all(run.id)
        if is_wanted:
            self.session.inputs.keep(run, self.ip.user_ns)
        ran = kept_factors.Ran() if options.compare else None
        is_asked = bool(again or is_known or options.strict or is_wanted or device)
        settles = Settles.NEVER if is_asked else Settles.ALWAYS if options is self.unasked else Settles.RERUN
        error: BaseException | None = None
        run.is_captured = report
        started, captured_ns, processor_ns = time.perf_counter_ns(), costs.waited_ns(), events.thread_ns()
        wait = self.session.waiting = Waiting(self.session, run)
        if show is None:
            show = display_value if options.output == "" else sys.displayhook
        try:
            with (
                comparison.watching() if comparison is not None else nullcontext(),
                ran.watching() if ran is not None else nullcontext(),
                waited_by(wait),
            ):
                await perform(display=show, settles=settles, observer=observer())
        except BaseException as raised:
            error = raised
            run.error = type(raised).__name__
            self.point_at_cell(raised, run)
            raise
        finally:
            self.session.waiting = None
            wait.ended()
            copying_ns = comparison.copying_ns if comparison is not None else 0
            captures_ns = costs.waited_ns() - captured_ns
            if report:
                had_ns = events.thread_ns() - processor_ns  # 0: not known
                run.took(started + copying_ns, time.perf_counter_ns(), captures_ns, had_ns and had_ns - copying_ns)
            else:  # one expression of a cell, which goes on
                run.aside_ns, run.captures_ns = run.aside_ns + copying_ns, run.captures_ns + captures_ns
            if run.is_own:
                self.session.end(run, error)
            if error is not None and report:
                self.show_below(run, options)
        self.measured(run, options, comparison, key, ran, is_known)
        if report:
            self.give_report(run, options)

    def measured(
        self, run: CellRun, options: Any, comparison: compare.Comparison | None, key: kept_factors.Key,
        ran: kept_factors.Ran | None, is_known: bool,
    ) -> None:  # fmt: skip
        """What was asked for beside the run of the cell, which has ended. `ran`: where a comparison was."""
        began = time.perf_counter_ns()
        if comparison is not None and options.check:
            self.replayed(run, comparison.check, "Not checked beside NumPy", "the check")
        if is_known and ran is not None:
            self.replayed(run, partial(self.factors.tell, key, ran), "NumPy was not measured", "the comparison")
        elif comparison is not None and ran is not None:
            wait = self.session.waiting = Measuring(self.session, run, comparison.limit_ns(run.recording) / 1e9)
            try:
                replay = partial(comparison.replay, between=wait.between, is_stopped=wait.asked)
                self.replayed(run, replay, "NumPy was not measured", "the comparison")
            finally:
                self.session.waiting = None
                wait.ended()
            if run.recording is not None and run.recording.compared is not None:
                self.factors.keep(key, run.recording.compared, ran)
        if comparison is not None and is_timed(options):
            timed = partial(comparison.time, loops=options.loops, runs=options.runs)
            self.replayed(run, timed, "Not timed", "the timing")
        took = time.perf_counter_ns() - began
        run.aside_ns += took
        if comparison is not None and run.recording is not None:
            run.recording.measuring_ns += took

    def point_at_cell(self, error: BaseException, run: CellRun) -> None:
        """The traceback that is shown begins at the cell's own line and has no frame of jitlab or IPython."""
        if getattr(error, "_jitlab_run", None) is run:  # a magic of the cell has done it
            return
        frames = cell_traceback(error.__traceback__)
        if frames is not None:
            kind, formatter = type(error), self.ip.InteractiveTB

            def render(*_: Any) -> list[str]:
                return list(formatter.structured_traceback(kind, error, frames, tb_offset=0))

            try:
                error._render_traceback_ = render  # type: ignore[attr-defined]
                error._jitlab_run = run  # type: ignore[attr-defined]
            except AttributeError:  # an exception that takes no attributes
                pass

    def replayed(self, run: CellRun, replay: Callable[[Any], str], failed: str, what: str) -> None:
        """Run something again on copies; the events of its own compiled runs are not the cell's. `replay` says why not."""
        recording = run.recording
        why = "nothing was compiled in this cell"
        if recording is not None:
            with self.session.deaf():
                try:
                    why = replay(recording)
                except KeyboardInterrupt:
                    why = f"{what} was interrupted; the cell itself had ended"
                except Exception as raised:  # the cell has run: what a second run meets is no error of the user's
                    text = clean(f"{raised}".strip().split("\n")[0]) or type(raised).__name__
                    why = f"the cell takes another path when it is repeated: {text.rstrip('.')}"
        if why:
            print(f"{failed}: {why}.", file=sys.stderr)

    def show(self, run: CellRun, options: Any = None) -> None:
        """The report below the cell. Of a cell that was captured unasked, only when there is something to tell."""
        show = parts_of(options)
        if show is None:
            run.is_shown = True
            return
        report = self.session.shown_report(run, show)
        if report is not None and (options is not self.unasked or options is None or report.ops):
            run.is_shown = True
            display(report, transient=self.session.beside(report))

    def show_below(self, run: CellRun, options: Any) -> None:
        """The report of a cell that an error stopped, below the traceback."""
        if run.running:
            run.finish = lambda: None if run.is_shown else self.show(run, options)
        else:
            self.show(run, options)

    def give_report(self, run: CellRun, options: Any) -> None:
        """Show the report, or give it to who asked for it."""
        if options.output is None:
            self.show(run, options)
            return
        report = self.session.shown_report(run, parts_of(options) or PARTS) or Recording(run.about(saved=True)).report()
        if options.output == "":
            sys.displayhook(report)  # the cell's value
        else:
            self.ip.user_ns[options.output] = report
            self.show(run, options)


class NameOfText:
    """What IPython calls the file of a cell, without a kernel: a text keeps the name of its first run, and so its traces."""

    def __init__(self, compiler: Any) -> None:
        self.own = compiler.get_code_name
        self.known: OrderedDict[str, str] = OrderedDict()

    def __call__(self, raw_code: str, transformed_code: str, number: int) -> str:
        name = self.known.setdefault(transformed_code, self.own(raw_code, transformed_code, number))
        self.known.move_to_end(transformed_code)
        if len(self.known) > KEPT_SOURCES:
            self.known.popitem(last=False)
        return name


class LinesOfPython:
    """IPython keeps a cell's text split where `str.splitlines` splits, which is also at form feeds and at the separators that
    pasted text has in comments. Python ends no line there, so all lines below would have the text of others. It is also where
    the cell that runs gets its file's name: a kernel takes long to make one."""

    def __init__(self, own: Callable[..., str], session: Session) -> None:
        self.own, self.session = own, session

    def __call__(self, transformed_code: str, *args: Any, **options: Any) -> str:
        name = self.own(transformed_code, *args, **options)
        run = self.session.running
        if run is not None and options.get("raw_code", transformed_code) == run.source:
            cell_names[name] = run.title
        known: tuple[Any, ...] | None = linecache.cache.get(name)
        ends = transformed_code.count("\n") + (not transformed_code.endswith("\n"))
        if known is not None and len(known) == 4 and (len(known[2]) != ends or "\r" in transformed_code):
            lines = [line.rstrip("\n") + "\n" for line in io.StringIO(transformed_code, newline=None)]
            linecache.cache[name] = (known[0], known[1], lines, known[3])
        return name


#: What else the parts of `--show` are called: the panel's sections, one for many.
MEANT = {
    "cluster": "graph", "clusters": "graph", "graphs": "graph", "kernels": "graph", "retrace": "retraces", "time": "timeline",
    "timelines": "timeline", "text": "verdict",
}  # fmt: skip
#: Options that ask for the documentation.
HELP = ("-h", "--help", "?")


def is_timed(options: Any) -> bool:
    """`-n` or `-r` was given."""
    return bool(getattr(options, "loops", None) or getattr(options, "runs", None))


def parts_of(options: Any) -> tuple[str, ...] | None:
    """What `--show` asks for, in the order of PARTS; None for nothing at all, as for `-q`. ValueError for anything else."""
    asked = getattr(options, "show", None)
    if getattr(options, "quiet", False):
        if asked not in (None, "none"):
            raise ValueError(f"-q shows nothing, and --show {asked} asks for something")
        return None
    if asked is None:
        return PARTS
    names = [MEANT.get(name.strip().lower(), name.strip()) for name in asked.split(",")]
    if names == ["none"]:
        return None
    unknown = [name for name in names if name not in (*PARTS, "verdict")]
    if unknown:
        near = get_close_matches(unknown[0].lower(), (*PARTS, *MEANT, "verdict", "none"), 1)
        meant = f" (did you mean {MEANT.get(near[0], near[0])}?)" if near else ""
        takes = f"{', '.join(PARTS)}, verdict (alone, for no more than that) or none"
        raise ValueError(f"--show knows no {unknown[0]!r}{meant}: {takes}")
    return tuple(part for part in PARTS if part in names)


def is_debugged() -> bool:
    """Somebody traces what runs, and may have asked for a stop at a line of a file."""
    monitoring = getattr(sys, "monitoring", None)
    return sys.gettrace() is not None or (monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None)


AUTOMATIC = "%jit on"
_entering: list[Any] = []


def entered() -> Any:
    """What IPython runs for a cell: the cell; or its coroutine, when it waits."""
    cell = _entering.pop()
    return cell() if isinstance(cell, _Driven) else cell


class _Driven:
    """A coroutine that waits for nothing, run to its end when called."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.coroutine = coroutine

    def __call__(self) -> Any:
        return driven(self.coroutine)


def driven(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("a cell that does not wait has waited")


def display_value(value: Any) -> None:
    if value is not None:
        display(value)


def displayed(nodes: list[ast.stmt], interactivity: str) -> tuple[list[ast.stmt], str]:
    """IPython's `last_expr_or_assign` is an expression more."""
    if interactivity != "last_expr_or_assign":
        if interactivity not in ("all", "last", "last_expr", "none"):
            raise ValueError(f"Interactivity was {interactivity!r}")
        return nodes, interactivity
    last = nodes[-1] if nodes else None
    target = last.targets[0] if isinstance(last, ast.Assign) and len(last.targets) == 1 else getattr(last, "target", None)
    if isinstance(last, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and isinstance(target, ast.Name):
        value = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        nodes = [*nodes, ast.copy_location(ast.Expr(value), target)]
    return nodes, "last_expr"


def _is_cell_magic(nodes: list[ast.stmt]) -> bool:
    match nodes:
        case [ast.Expr(value=ast.Call(func=ast.Attribute(attr="run_cell_magic")))]:
            return True
    return False


__all__ = ["Runner", "displayed", "driven"]
