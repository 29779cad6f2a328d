import type { NotebookPanel } from '@jupyterlab/notebook';
import type { PanelState } from './core/panel';
import type { KernelAccess } from './core/kernel';
import { REPORT_MIME } from './core/report';
import { KernelLink } from './link';

/** One notebook as the panel follows it: its link, and which of its cells is shown. */
export class FollowedNotebook {
  readonly link: KernelLink;
  pinned: string | null = null;

  constructor(readonly notebook: NotebookPanel) {
    this.link = new KernelLink(notebook.sessionContext);
    void notebook.context.ready.then(() => {
      this.readSaved();
    });
  }

  /** Pinned first; then the active cell; where that has nothing to show, the cell that ran last. */
  shownCell(): string | null {
    const { model } = this.link;
    const active = this.notebook.content.activeCell?.model.id ?? null;
    if (this.pinned !== null) {
      return this.pinned;
    }
    const reported = model.reported();
    const last = model.latest ?? reported.at(-1) ?? null;
    return active !== null && (reported.includes(active) || last === null) ? active : last;
  }

  state(): PanelState {
    const { model } = this.link;
    const id = this.shownCell();
    const cell = id === null ? undefined : model.cell(id);
    const other = model.reported().findLast(known => known !== id && model.cell(known)?.report);
    const report = other === undefined ? undefined : model.cell(other)?.report;
    return {
      notebook: this.notebook.context.path.split('/').at(-1) ?? '',
      cell,
      loaded: model.loaded,
      source: id === null ? null : this.sourceOf(id),
      other: other !== undefined && report ? { id: other, title: report.cell.title, lead: report.verdict.lead } : null,
      pinned: this.pinned !== null
    };
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
    const { editor } = content.widgets[index] ?? {};
    if (line !== undefined && editor) {
      content.mode = 'edit';
      editor.setCursorPosition({ line: Math.min(line, editor.lineCount) - 1, column: 0 });
      editor.focus();
    }
  }

  /** The reports that the notebook keeps in its outputs. */
  readSaved(): void {
    const reports = new Map<string, unknown>();
    for (const cell of this.notebook.content.model?.cells ?? []) {
      const outputs = cell.toJSON().outputs;
      for (const output of Array.isArray(outputs) ? outputs : []) {
        const report = (output as { data?: Record<string, unknown> }).data?.[REPORT_MIME];
        if (report !== undefined) {
          reports.set(cell.id, report);
        }
      }
    }
    this.link.model.setSaved(reports);
  }

  private sourceOf(id: string): string[] | null {
    const cell = this.notebook.content.widgets.find(widget => widget.model.id === id);
    return cell ? cell.model.sharedModel.getSource().split('\n') : null;
  }
}
