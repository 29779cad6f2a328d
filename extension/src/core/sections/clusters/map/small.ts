import { h } from '../../../base/dom';
import { shareText } from '../../../base/format';
import type { Report } from '../../../report/report';
import type { Section } from '../../../panel/section';
import { clusterCount, flowOf, slowest, type Flow } from '../flow';
import { SpineView } from '../spine';

const MOST_BOXES = 40;
const FIRST_BOXES = 12;
const MOST_OPEN = 60;

/** The spine alone, without map, search and table: what fits in a widget and in a file that is one page. */
export class SmallClustersView {
  constructor(private readonly section: Section) {
    const toggle = (id: string): void => {
      if (this.flow?.parts.some(part => part.nodes.some(node => node.id === id))) {
        if (!this.open.delete(id)) {
          this.open.add(id);
        }
        this.render();
      }
    };
    this.spine = new SpineView({
      hover: () => undefined,
      pin: toggle, // there is no other view that could show what is pinned
      pinned: null,
      toggle,
      menu: () => undefined,
      key: () => false
    });
    this.notice = h('p.jl-note');
  }

  show(report: Report, width: number): void {
    this.width = width;
    if (report !== this.report) {
      this.report = report;
      this.flow = flowOf(report);
      const clusters = this.flow.parts.flatMap(part => part.nodes).filter(node => node.cluster);
      const slow = clusters.sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0))[0];
      this.open = new Set(slow && slow.ops.length <= MOST_OPEN ? [slow.id] : []);
    }
    this.section.summary = report.clusters.length ? clusterCount(report) : 'none';
    this.render();
  }

  render(): void {
    const { flow } = this;
    if (!flow || !this.section.open) {
      return;
    }
    const { body } = this.section;
    const all = flow.parts.reduce((sum, part) => sum + part.nodes.length, 0);
    if (all + flow.statements.length === 0) {
      body.replaceChildren(h('p.jl-muted', 'No NumPy operation was found: there is nothing to compile.'));
      return;
    }
    const part = all > MOST_BOXES ? slowest(flow, FIRST_BOXES) : null;
    this.notice.textContent = part ? `The ${part.shown} slowest of ${part.of} boxes${shareText(part.share)}.` : '';
    if (this.spine.element.parentElement !== body) {
      body.replaceChildren(this.notice, this.spine.element);
    }
    this.notice.hidden = part === null;
    this.spine.render(part?.flow ?? flow, {
      width: this.width - 12,
      open: this.open,
      linked: null
    });
  }

  private readonly spine: SpineView;
  private readonly notice: HTMLElement;
  private report: Report | null = null;
  private flow: Flow | null = null;
  private open = new Set<string>();
  private width = 0;
}
