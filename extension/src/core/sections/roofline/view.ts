import { CanvasView } from '../../base/canvas';
import { h, on, placeItems, set } from '../../base/dom';
import { bytes, duration, joined, lines, some } from '../../base/format';
import { swatch } from '../../base/marks';
import { stateKey, type Section, type SectionContext, type SectionView } from '../../panel/section';
import type { Report } from '../../report/report';
import { layoutRoofline } from './layout';
import { flopRate, meaningOf, rooflineOf, rooflineSummary, roofText, type Roofline, type RoofPoint } from './points';

/** What the machine allows a kernel that moves so many bytes, and what each kernel reaches of it. */
export class RooflineView implements SectionView {
  constructor(
    private readonly section: Section,
    private readonly context: Pick<SectionContext, 'selection'>
  ) {
    this.layer = h('div.jl-layer', { role: 'group', 'aria-label': 'Kernels' });
    const pointOf = (event: Event): RoofPoint | undefined => {
      const item = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>('.jl-item') : null;
      return item ? this.roof.points[Number(item.dataset.at)] : undefined;
    };
    on(this.layer, {
      pointerover: event => this.context.selection.hover(this.idOf(pointOf(event))),
      pointerleave: () => this.context.selection.hover(null),
      click: event => {
        const id = this.idOf(pointOf(event));
        if (id) {
          this.context.selection.togglePin(id);
        }
      },
      keydown: event => {
        const id = this.idOf(pointOf(event));
        if (id && (event.key === 'Enter' || event.key === ' ')) {
          event.preventDefault();
          this.context.selection.togglePin(id);
        }
      }
    });
    this.picture = h('div.jl-frame', this.canvas.element, this.layer);
  }

  show(report: Report, width: number): void {
    if (report !== this.report) {
      this.report = report;
      this.roof = rooflineOf(report);
    }
    this.width = width;
    const key = stateKey(this.section, width, this.context.selection);
    if (this.shown?.report === report && this.shown.key === key) {
      return;
    }
    this.shown = { report, key };
    this.section.summary = rooflineSummary(report);
    this.render();
  }

  render(): void {
    if (!this.section.open || !this.report) {
      return;
    }
    const { points } = this.roof;
    const { body } = this.section;
    if (points.length === 0) {
      body.replaceChildren(h('p.jl-muted', 'No kernel ran that computes with floating-point numbers.'));
      return;
    }
    if (this.section.asTable) {
      body.replaceChildren(tableOf(points), this.note());
      return;
    }
    if (this.picture.parentElement !== body) {
      body.replaceChildren(this.picture);
    }
    body.replaceChildren(this.picture, this.note());
    const measure = this.canvas.prepare();
    if (!measure) {
      return;
    }
    const { lit } = this.context.selection;
    const picture = layoutRoofline(
      this.roof,
      this.width - 24,
      measure,
      ({ name, plan }) => lit?.kernels.has(this.context.selection.links?.idOf(name, plan) ?? name) === true
    );
    this.canvas.paint(picture);
    placeItems(this.layer, picture.items, (element, item) => {
      element.tabIndex = 0;
      element.dataset.at = String(picture.items.indexOf(item));
      set(element, { role: 'button', 'aria-label': item.label, title: item.label });
      return { left: item.x, top: item.y, width: item.width, height: item.height };
    });
  }

  private note(): HTMLElement {
    const { others, peaks } = this.roof;
    const count = some(others.length, 'kernel');
    const said = [
      meaningOf(this.roof),
      peaks ? '' : 'The limits of this machine were not measured.',
      others.length
        ? `Not shown: ${others.length > 3 ? count : others.join(', ')} (almost no arithmetic, or bytes not known).`
        : ''
    ];
    return h('p.jl-note.jl-muted', said.filter(Boolean).join(' '));
  }

  private idOf(point: RoofPoint | undefined): string | null {
    const { links } = this.context.selection;
    return point ? (links?.idOf(point.kernel.name, point.kernel.plan) ?? point.kernel.name) : null;
  }

  private readonly canvas = new CanvasView({ 'aria-hidden': 'true' });
  private readonly layer: HTMLElement;
  private readonly picture: HTMLElement;
  private roof: Roofline = { points: [], others: [], peaks: null };
  private report: Report | null = null;
  private width = 0;
  private shown: { report: Report; key: string } | null = null;
}

function tableOf(points: readonly RoofPoint[]): HTMLElement {
  const number = (text: string): HTMLElement => h('td.jl-number', text);
  const head = (text: string): HTMLElement => h('th.jl-number', text);
  return h(
    'table',
    { 'aria-label': 'What each kernel reaches' },
    h('thead', h('tr', h('th', 'kernel'), head('time'), head('a byte'), head('reached'), head('limit'))),
    h(
      'tbody',
      points.map(point => {
        const { kernel, name, mark, intensity, rate } = point;
        const moved = bytes(kernel.bytesRead + kernel.bytesWritten);
        const title = joined(', ', lines(kernel.lines), `${moved} a call`, roofText(point));
        const cells = [
          duration(kernel.seconds ?? 0),
          String(Number(intensity.toPrecision(2))),
          flopRate(rate),
          roofText(point)
        ];
        return h('tr', h('th', { scope: 'row', title }, swatch(mark), ' ', name), cells.map(number));
      })
    )
  );
}
