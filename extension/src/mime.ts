import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
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

  follow(report: Report | null, isSaved: boolean): void {
    this.draw(report ?? this.kept, isSaved);
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
    this.fold(report);
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

  /** Below a traceback stands one line, which opens. */
  private fold(report: Report | null): void {
    const error = report?.cell.error ?? null;
    this.summary.textContent = error === null ? '' : `jitlab: stopped by ${error} · ${report?.verdict.lead ?? ''}`;
    if (error === null) {
      this.node.replaceChildren(this.room);
    } else {
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
}

const extension: IRenderMime.IExtension = {
  id: 'jitlab:mime',
  description: 'Shows the jitlab reports kept in a notebook',
  rendererFactory: { safe: true, mimeTypes: [REPORT_MIME], createRenderer: () => new ReportOutput() },
  rank: 0,
  dataType: 'json'
};

export default extension;
