import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { joined } from './core/base/format';
import type { CellState } from './core/report/model';
import { PanelView } from './core/panel/panel';
import { readReport } from './core/report/read-report';
import { REPORT_MIME, type Report } from './core/report/report';
import { savedText } from './core/report/saved';
import { shownReports, type ShownReport } from './plugin/outputs';

/** What `%%jit --show` chooses from. */
const PARTS = ['graph', 'retraces', 'timeline'];

/** Shows a report where a notebook keeps it, with or without a kernel; with one, the newest of the same cell. */
class ReportOutput extends Widget implements IRenderMime.IRenderer, ShownReport {
  kept: Report | null = null;

  constructor() {
    super();
    this.addClass('jl-mime');
    this.node.append(this.room);
    this.view = new PanelView(this.room, null);
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const read = readReport(model.data[REPORT_MIME]);
    this.kept = typeof read === 'string' ? null : read;
    this.refusal = typeof read === 'string' ? read : null;
    const shown = (model.data[REPORT_MIME] as { show?: unknown } | null)?.show;
    for (const part of PARTS) {
      this.toggleClass(`jl-without-${part}`, Array.isArray(shown) && !shown.includes(part));
    }
    this.draw(this.kept, false);
    if (this.isAttached) {
      shownReports.add(this);
    }
    return Promise.resolve();
  }

  follow(report: Report | null, isSaved: boolean, isBeside: boolean): void {
    this.isBeside = isBeside;
    this.draw(report ?? this.kept, isSaved);
    this.fold();
  }

  override dispose(): void {
    shownReports.delete(this);
    this.view.dispose();
    super.dispose();
  }

  protected override onAfterAttach(): void {
    shownReports.add(this);
  }

  protected override onBeforeDetach(): void {
    shownReports.delete(this);
  }

  private draw(report: Report | null, isSaved: boolean): void {
    if (report === this.shown && isSaved === this.isSaved && report !== null) {
      return;
    }
    this.shown = report;
    this.isSaved = isSaved;
    this.fold();
    const cell: CellState = { report, refusal: this.refusal, origin: 'saved', running: false, events: 0 };
    this.view.show({
      notebook: '',
      cell,
      saved: isSaved ? savedText(cell) : '',
      loaded: null,
      source: null,
      other: null,
      pinned: false
    });
  }

  /** Below a traceback, and beside a panel, stands one line, which opens. */
  private fold(): void {
    const line = this.shown ? lineOf(this.shown, this.isBeside) : null;
    this.summary.textContent = line;
    if (line === null && this.room.parentNode !== this.node) {
      this.node.replaceChildren(this.room);
    } else if (line !== null && this.room.parentNode === this.node) {
      this.folded.open = false;
      this.folded.replaceChildren(this.summary, this.room);
      this.node.replaceChildren(this.folded);
    }
  }

  private readonly room = document.createElement('div');
  private readonly folded = document.createElement('details');
  private readonly summary = document.createElement('summary');
  private readonly view: PanelView;
  private refusal: string | null = null;
  private shown: Report | null = null;
  /** The file alone has this report: it says of which run it is. */
  private isSaved = false;
  /** A panel shows it too. */
  private isBeside = false;
}

/** What stands for a report that is folded; null: it is not. */
function lineOf({ cell, verdict }: Report, isBeside: boolean): string | null {
  if (cell.error !== null) {
    return `jitlab: stopped by ${cell.error} · ${verdict.lead}`;
  }
  return isBeside ? `jitlab: ${joined(' · ', verdict.waited?.text, verdict.speed?.text, verdict.lead)}` : null;
}

const extension: IRenderMime.IExtension = {
  id: 'jitlab:mime',
  description: 'Shows the jitlab reports kept in a notebook',
  rendererFactory: { safe: true, mimeTypes: [REPORT_MIME], createRenderer: () => new ReportOutput() },
  rank: 0,
  dataType: 'json'
};

export default extension;
