import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';
import { PanelView } from './core/panel';
import { readReport, REPORT_MIME } from './core/report';

/** What `%%jit --show` chooses from. */
const PARTS = ['graph', 'retraces', 'timeline'];

/** Shows a report where a notebook keeps it, with or without a kernel. */
class ReportOutput extends Widget implements IRenderMime.IRenderer {
  constructor() {
    super();
    this.addClass('jl-mime');
    this.view = new PanelView(this.node, null);
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const read = readReport(model.data[REPORT_MIME]);
    const refused = typeof read === 'string';
    const shown = (model.data[REPORT_MIME] as { show?: unknown } | null)?.show;
    for (const part of PARTS) {
      this.toggleClass(`jl-without-${part}`, Array.isArray(shown) && !shown.includes(part));
    }
    this.view.show({
      notebook: '',
      cell: {
        report: refused ? null : read,
        refusal: refused ? read : null,
        origin: 'saved',
        running: false,
        events: 0
      },
      loaded: null,
      source: null,
      other: null,
      pinned: false
    });
    return Promise.resolve();
  }

  override dispose(): void {
    this.view.dispose();
    super.dispose();
  }

  private readonly view: PanelView;
}

const extension: IRenderMime.IExtension = {
  id: 'jitlab:mime',
  description: 'Shows the jitlab reports kept in a notebook',
  rendererFactory: { safe: true, mimeTypes: [REPORT_MIME], createRenderer: () => new ReportOutput() },
  rank: 0,
  dataType: 'json'
};

export default extension;
