import { SmallClustersView } from '../sections/clusters/map/small';
import { h } from '../base/dom';
import { readReport } from '../report/read-report';
import type { Report } from '../report/report';
import { RetracesView } from '../sections/retraces/view';
import { Section } from './section';
import { VerdictView } from '../sections/verdict/view';

interface Part {
  section: Section;
  show(report: Report, width: number): void;
}

/** A report in a host that has little room for scripts: verdict, clusters and retraces, each the view that the panel has. */
export class ReportView {
  readonly element: HTMLElement;

  constructor(host: HTMLElement) {
    const clusters = new Section({ id: 'clusters', title: 'Clusters', column: 1 }, { open: true });
    const retraces = new Section({ id: 'retraces', title: 'Retraces', column: 0 }, { open: true });
    const graph = new SmallClustersView(clusters);
    const ledger = new RetracesView(retraces);
    this.parts = [
      {
        section: clusters,
        show: (report, width) => graph.show(report, width)
      },
      {
        section: retraces,
        show: (report, width) => ledger.show(report, width)
      }
    ];
    this.verdict = new VerdictView(id => {
      const part = this.parts.find(({ section }) => section.place.id === id);
      if (part) {
        part.section.open = true;
        part.section.element.scrollIntoView({ block: 'nearest' });
      }
    });
    this.element = h(
      'div.jl.jl-output',
      { role: 'region', 'aria-label': 'jitlab' },
      this.message,
      this.verdict.element,
      this.parts.map(({ section }) => section.element),
      this.foot
    );
    host.append(this.element);
    for (const { section } of this.parts) {
      section.changed = () => this.render();
    }
    this.observer = new ResizeObserver(() => {
      if (this.element.clientWidth !== this.width) {
        this.render();
      }
    });
    this.observer.observe(this.element);
  }

  /** Any JSON that came: what is no report is told in a sentence. */
  show(value: unknown): void {
    const read = readReport(value);
    this.report = typeof read === 'string' ? null : read;
    this.refusal = typeof read === 'string' ? read : '';
    this.render();
  }

  /** Draws again: another width, another theme. */
  render(): void {
    const { report } = this;
    this.width = this.element.clientWidth;
    this.message.textContent = this.refusal;
    this.message.hidden = this.refusal === '';
    this.verdict.element.hidden = report === null;
    this.foot.textContent = report?.run ?? '';
    for (const { section } of this.parts) {
      section.element.hidden = report === null;
    }
    if (report && this.width > 0) {
      this.verdict.show(report, this.width);
      for (const part of this.parts) {
        part.show(report, this.width);
      }
    }
  }

  dispose(): void {
    this.observer.disconnect();
    this.element.remove();
  }

  private readonly parts: Part[];
  private readonly verdict: VerdictView;
  private readonly message = h('p.jl-note', { role: 'status' });
  private readonly foot = h('p.jl-note.jl-muted.jl-foot');
  private readonly observer: ResizeObserver;
  private report: Report | null = null;
  private refusal = '';
  private width = 0;
}
