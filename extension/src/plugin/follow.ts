import type { Cell, ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { INotebookCellExecutor, NotebookPanel } from '@jupyterlab/notebook';
import type { KernelMessage } from '@jupyterlab/services';
import { editsOf, type Edits } from '../core/report/edits';
import type { KernelAccess } from '../core/report/kernel';
import { cellOfFile, compiledSource, lineMarks, type LineMark } from '../core/sections/code/lines';
import type { PanelState } from '../core/panel/panel-state';
import { record } from '../core/base/read';
import { REPORT_MIME, type Report } from '../core/report/report';
import { Signal } from '../core/base/signal';
import { savedText } from '../core/report/saved';
import { prompted } from '../core/report/sources';
import { KernelLink } from './link';

const SETTLE_MS = 150;

/** One notebook as jitlab follows it: its link, which of its cells is shown, and what its cells' lines say. */
export class FollowedNotebook {
  readonly link: KernelLink;
  /** A cell came, its report changed, or what it says of its lines may have. */
  readonly cellChanged = new Signal<Cell>();
  pinned: string | null = null;

  constructor(readonly notebook: NotebookPanel) {
    this.link = new KernelLink(notebook.sessionContext);
    this.link.model.changed.connect(id => {
      if (id === null) {
        this.link.model.reported().forEach(reported => this.index(reported));
        this.notebook.content.widgets.forEach(cell => this.cellChanged.emit(cell));
      } else {
        this.touch(id);
        this.index(id)?.forEach(other => this.touch(other));
      }
    });
    notebook.sessionContext.iopubMessage.connect((_, message) => {
      const sent = newestOf(message);
      if (sent) {
        this.newest.add(sent.cell);
        this.link.model.takeOutput(sent.cell, sent.report);
      }
    });
    const { content } = notebook;
    content.modelChanged.connect(() => this.watchCells());
    this.watchCells();
    void notebook.context.ready.then(() => {
      if (!notebook.isDisposed) {
        this.watchCells();
        this.readSaved(content.model?.cells ?? []);
      }
    });
  }

  /** Pinned first; then the active cell; where that has nothing to show, the cell that ran last, or the next one below. */
  shownCell(): string | null {
    const { model } = this.link;
    const active = this.notebook.content.activeCell?.model.id ?? null;
    if (this.pinned !== null && this.find(this.pinned)) {
      return this.pinned;
    }
    const here = this.ids();
    const reported = model.reported().filter(id => here.has(id));
    const latest = model.latest !== null && here.has(model.latest) ? model.latest : null;
    this.openedOn ??= active;
    const atOpening = active === this.openedOn; // who goes to a cell wants that one
    const last = latest ?? (atOpening ? nextBelow(reported, here, here.get(active ?? '') ?? 0) : null);
    return active !== null && (reported.includes(active) || last === null) ? active : last;
  }

  state(): PanelState {
    const { model } = this.link;
    const id = this.shownCell();
    const cell = id === null ? undefined : model.cell(id);
    const here = this.ids();
    const others = model.reported().filter(known => known !== id && here.has(known) && model.cell(known)?.report);
    const isSaved = model.latest === null;
    const other = isSaved ? nearest(others, here, here.get(id ?? '') ?? 0) : others.at(-1);
    const active = this.notebook.content.activeCell?.model.id;
    const report = other === undefined ? undefined : model.cell(other)?.report;
    return {
      notebook: this.notebook.context.path.split('/').at(-1) ?? '',
      cell,
      loaded: model.loaded,
      source: id === null ? null : this.sourceOf(id),
      other: other !== undefined && report ? { id: other, title: report.cell.title, lead: report.verdict.lead } : null,
      isSaved,
      saved: savedText(cell),
      instead: isSaved && this.pinned === null && active !== undefined && id !== active,
      pinned: this.pinned !== null,
      behind: model.behind,
      underway: this.underway(),
      busy: model.busy(id)
    };
  }

  /** How far the compiler is in the cell that runs, and what leaves the rest of the run to Python. */
  underway(): { title: string; cell: string; cancel: (() => void) | null } | null {
    const job = this.link.jobs.underway;
    const cancel = (): void => void this.link.request({ want: 'cancel', job: job?.id ?? '' }).catch(() => undefined); // it has ended
    return job ? { title: job.title, cell: job.cell, cancel: job.progress && cancel } : null;
  }

  togglePin(): void {
    this.pinned = this.pinned === null ? this.shownCell() : null;
  }

  /** The kernel that made the report that is shown, while it lives. */
  kernel(): KernelAccess | null {
    const { model } = this.link;
    const id = this.shownCell();
    return model.loaded && id !== null && model.cell(id)?.origin === 'live' ? this.link : null;
  }

  /** Makes a cell the active one; `line` counts from 1. */
  goTo(id: string, line?: number): void {
    const { content } = this.notebook;
    const index = content.widgets.findIndex(cell => cell.model.id === id);
    if (index < 0) {
      return;
    }
    content.activeCellIndex = index;
    const cell = content.widgets[index];
    void cell?.ready.then(() => {
      const { editor } = cell;
      if (line !== undefined && editor) {
        content.mode = 'edit';
        editor.setCursorPosition({ line: Math.min(line, editor.lineCount) - 1, column: 0 });
        editor.focus();
      }
    });
  }

  /** Runs a cell where it stands: who is at work in another cell stays there. Whether it ended well. */
  run(id: string, executor: INotebookCellExecutor): Promise<boolean> {
    const { content, sessionContext } = this.notebook;
    const cell = this.find(id);
    if (!cell || !content.model) {
      return Promise.resolve(false);
    }
    const { model: notebook, notebookConfig } = content;
    const nobody = { onCellExecuted: () => undefined, onCellExecutionScheduled: () => undefined };
    return executor.runCell({ cell, notebook, notebookConfig, sessionContext, ...nobody });
  }

  /** Goes to the line as it stands now of what was compiled from `file`; where it was edited, to its cell. */
  goToLine(file: string, line: number): void {
    const id = this.shownCell();
    const report = id === null ? null : this.link.model.cell(id)?.report;
    const cell = report ? this.homeOf(report, file, id ?? '') : null;
    if (cell !== null) {
      this.goTo(cell, this.alignment(cell)?.now.get(line) ?? line);
    }
  }

  /** Lines of the cell now that differ from those that were compiled. */
  editsOf(id: string): readonly number[] {
    return this.alignment(id)?.differ ?? [];
  }

  /** The marks of a cell's lines, where these stand now; lines that were edited have none. */
  marksOf(id: string): LineMark[] {
    const { model } = this.link;
    const reports = [...(this.speakers.get(id) ?? [])].sort((a, b) => Number(a === id) - Number(b === id));
    const marks = new Map<number, LineMark>();
    for (const speaker of reports) {
      const report = model.cell(speaker)?.report;
      const now = report && this.align(id, compiledFor(report, speaker, id))?.now;
      for (const mark of now ? (this.linesOf(speaker).get(id) ?? []) : []) {
        const line = now?.get(mark.line);
        if (line !== undefined) {
          // The cell's own report has the last word on it. Lines it speaks of are told where they stand now.
          const span = mark.span.map(each => now?.get(each) ?? 0).filter(each => each > 0);
          const head = mark.headFile ? mark.head : (now?.get(mark.head) ?? 0);
          marks.set(line, { ...mark, line, span: span.length > 1 ? span : [], head });
        }
      }
    }
    return [...marks.values()].sort((a, b) => a.line - b.line);
  }

  /** The reports that the notebook keeps in its outputs. */
  readSaved(cells: Iterable<ICellModel>): void {
    const reports = new Map<string, unknown>();
    for (const cell of cells) {
      const report = reportIn(cell);
      if (report !== undefined) {
        reports.set(cell.id, report);
      }
    }
    if (reports.size) {
      this.link.model.setSaved(reports);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
  }

  private watchCells(): void {
    const cells = this.notebook.content.model?.cells;
    if (!cells || this.watched.has(cells)) {
      return;
    }
    this.watched.add(cells);
    cells.changed.connect((_, change) => {
      this.known = null;
      for (const model of change.newValues) {
        this.watchCell(model);
      }
      this.readSaved(change.newValues); // a cell that was pasted brings its outputs
    });
    for (const model of cells) {
      this.watchCell(model);
    }
  }

  private watchCell(model: ICellModel): void {
    const { id } = model;
    this.touch(id);
    if (this.watched.has(model)) {
      return;
    }
    this.watched.add(model);
    model.contentChanged.connect(() => this.touch(id));
    if (model.type === 'code') {
      const code = model as ICodeCellModel;
      const take = (): void => {
        const report = reportIn(model);
        if (report === undefined) {
          this.newest.delete(id);
        } else if ((!this.link.model.isShown || this.link.isDeaf) && !this.newest.has(id)) {
          this.link.model.takeOutput(id, report); // no view is open, or not to this notebook: the kernel does not send it
        }
      };
      code.outputs.changed.connect(take);
      code.stateChanged.connect((_, { name }) => {
        if (name === 'executionCount') {
          take(); // it comes after the outputs, and the report's title with it
        }
      });
    }
  }

  /** Looks at a cell anew when typing has paused; nothing is worked out while keys are pressed. */
  private touch(id: string): void {
    this.touched.add(id);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const ids = [...this.touched];
      this.touched.clear();
      for (const cell of ids.map(touched => this.find(touched))) {
        if (cell && !cell.isDisposed) {
          this.cellChanged.emit(cell);
        }
      }
    }, SETTLE_MS);
  }

  private find(id: string): Cell | undefined {
    const at = this.ids().get(id);
    const cell = at === undefined ? undefined : this.notebook.content.widgets[at];
    return cell?.model.id === id ? cell : this.notebook.content.widgets.find(widget => widget.model.id === id);
  }

  private ids(): ReadonlyMap<string, number> {
    const { widgets } = this.notebook.content;
    if (this.known?.size !== widgets.length) {
      this.known = new Map(widgets.map((cell, index) => [cell.model.id, index]));
    }
    return this.known;
  }

  private sourceOf(id: string): string[] | null {
    return this.find(id)?.model.sharedModel.getSource().split('\n') ?? null;
  }

  private alignment(id: string): Edits | null {
    const report = this.link.model.cell(id)?.report;
    return report ? this.align(id, report.cell.source) : null;
  }

  private align(id: string, compiled: string[] | null): Edits | null {
    const now = this.find(id)?.model.sharedModel.getSource();
    if (now === undefined || !compiled) {
      return null;
    }
    const last = this.aligned.get(id);
    if (last?.now === now && last.compiled === compiled) {
      return last.edits;
    }
    const edits = editsOf(compiled, now.split('\n'));
    this.aligned.set(id, { now, compiled, edits });
    return edits;
  }

  /** The marks of a report, by the cell in which the lines stand. */
  private linesOf(speaker: string): ReadonlyMap<string, LineMark[]> {
    const report = this.link.model.cell(speaker)?.report;
    const last = this.lines.get(speaker);
    if (last && last.report === report) {
      return last.marks;
    }
    const marks = new Map<string, LineMark[]>();
    for (const mark of report ? lineMarks(report) : []) {
      const home = report ? this.homeOf(report, mark.file, speaker) : null;
      if (home !== null) {
        marks.set(home, [...(marks.get(home) ?? []), mark]);
      }
    }
    this.lines.set(speaker, { report: report ?? null, marks });
    return marks;
  }

  /** Notes which cells a report speaks of; returns them and those that it spoke of before. */
  private index(speaker: string): Set<string> | null {
    const report = this.link.model.cell(speaker)?.report ?? null;
    const last = this.lines.get(speaker);
    if (last && last.report === report) {
      return null;
    }
    const before = [...(last?.marks.keys() ?? [])];
    const after = [...this.linesOf(speaker).keys()];
    for (const id of before) {
      this.speakers.get(id)?.delete(speaker);
    }
    for (const id of after) {
      this.speakers.set(id, (this.speakers.get(id) ?? new Set()).add(speaker));
    }
    return new Set([...before, ...after]);
  }

  /** A report that was copied with its cell speaks of the cell that it is in. */
  private homeOf(report: Report, file: string, speaker: string): string | null {
    const cell = cellOfFile(report, file);
    return cell === report.cell.id ? speaker : cell;
  }

  /** The active cell when its report was first looked for. */
  private openedOn: string | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private known: Map<string, number> | null = null;
  private readonly touched = new Set<string>();
  /** Cells whose output came with a newer report than it keeps. */
  private readonly newest = new Set<string>();
  private readonly watched = new WeakSet<object>();
  private readonly aligned = new Map<string, { now: string; compiled: string[]; edits: Edits }>();
  private readonly lines = new Map<string, { report: Report | null; marks: Map<string, LineMark[]> }>();
  /** Cells whose reports speak of a cell's lines. */
  private readonly speakers = new Map<string, Set<string>>();
}

/** Nothing has run here yet: what a reader of a saved notebook comes to next, at its end what came last. */
function nextBelow(reported: readonly string[], places: ReadonlyMap<string, number>, from: number): string | null {
  const sorted = [...reported].sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0));
  return sorted.find(id => (places.get(id) ?? 0) >= from) ?? sorted.at(-1) ?? null;
}

function nearest(reported: readonly string[], places: ReadonlyMap<string, number>, from: number): string | undefined {
  const away = (id: string): number => Math.abs((places.get(id) ?? 0) - from);
  return [...reported].sort((a, b) => away(a) - away(b))[0];
}

function compiledFor(report: Report, speaker: string, cell: string): string[] | null {
  return speaker === cell ? report.cell.source : compiledSource(report, cell);
}

/** The newest report that comes beside an output which keeps an earlier one: it is not part of the notebook's file. */
function newestOf({ content }: KernelMessage.IMessage): { cell: string; report: unknown } | null {
  const { report } = record(record(record(content).transient).jitlab);
  const { id } = record(record(report).cell);
  return typeof id === 'string' ? { cell: id, report } : null;
}

/** The report in a cell's outputs; undefined where there is none. */
function reportIn(cell: ICellModel): unknown {
  if (cell.type !== 'code') {
    return undefined;
  }
  const { outputs } = cell as ICodeCellModel;
  for (let at = outputs.length - 1; at >= 0; at--) {
    const report = outputs.get(at).data[REPORT_MIME];
    if (report !== undefined) {
      return prompted(report, (cell as ICodeCellModel).executionCount);
    }
  }
  return undefined;
}
