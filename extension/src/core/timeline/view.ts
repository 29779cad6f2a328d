import { CanvasView } from '../canvas';
import { h, on } from '../dom';
import { duration } from '../format';
import { swatch } from '../marks';
import type { Report } from '../report';
import type { Section } from '../section';
import type { Selection } from '../selection';
import {
  axis,
  homeWindow,
  layoutTimeline,
  prepareLanes,
  spanAt,
  totals,
  wholeWindow,
  type PreparedLane,
  type SpanPlace,
  type TimeWindow
} from './layout';
import { timelineTable } from './table';

/** All lanes on one axis: op by op against compiled, and what the first call spent. */
export class TimelineView {
  constructor(
    private readonly section: Section,
    private readonly selection: Selection
  ) {
    on(this.canvas.element, {
      keydown: event => {
        this.onKey(event);
      },
      wheel: event => {
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          this.zoom(Math.exp(event.deltaY * 0.01), this.axis().time(event.offsetX));
        }
      },
      pointerdown: event => {
        this.dragFrom = this.axis().time(event.offsetX);
        this.canvas.element.setPointerCapture(event.pointerId);
      },
      pointermove: event => {
        this.onMove(event);
      },
      pointerup: event => {
        this.onUp(event);
      },
      pointerleave: () => {
        this.canvas.element.title = '';
        this.selection.hover(null);
      }
    });
  }

  show(report: Report, width: number): void {
    if (report !== this.report) {
      const other = report.cell.id !== this.report?.cell.id;
      this.report = report;
      this.lanes = prepareLanes(report.lanes, report.clusters).filter(lane => lane.spans.length > 0);
      if (other || !this.touched) {
        this.fit();
      }
      if (other) {
        this.selected = null;
        this.cursor = null;
      }
    }
    this.width = width - 24;
    const names = this.lanes.map(lane => `${lane.name} ${duration(lane.busy / 1e6)}`);
    this.section.summary = names.slice(0, 2).join(' · ') || 'nothing was timed';
    this.render();
  }

  render(): void {
    if (!this.report || !this.section.open) {
      return;
    }
    const { body } = this.section;
    if (this.lanes.length === 0) {
      body.replaceChildren(h('p', { class: 'jl-muted' }, 'No times were recorded.'));
      return;
    }
    if (this.section.asTable) {
      body.replaceChildren(h('div', { class: 'jl-scroll' }, timelineTable(this.lanes)));
      return;
    }
    if (this.canvas.element.parentElement !== body) {
      body.replaceChildren(this.canvas.element, this.legend, this.drawer, keysLine());
    }
    const measure = this.canvas.prepare();
    if (!measure) {
      return;
    }
    const { width, window, selected, cursor } = this;
    const picture = layoutTimeline(this.lanes, {
      width,
      measure,
      window,
      selected,
      cursor,
      linked: this.selection.lit
    });
    this.canvas.paint(picture);
    const lanes = this.lanes.map(lane => `${lane.name}: ${lane.spans.length} spans, ${duration(lane.busy / 1e6)}`);
    this.canvas.element.setAttribute('aria-label', `Timeline. ${lanes.join('; ')}. Press T for the table.`);
    this.showLegend();
    this.showDrawer();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { start, end } = this.window;
    const middle = (start + end) / 2;
    const tenth = (end - start) / 10;
    switch (event.key) {
      case 'w':
      case 'W':
        this.zoom(1 / 1.5, middle);
        break;
      case 's':
      case 'S':
        this.zoom(1.5, middle);
        break;
      case 'a':
      case 'A':
        this.pan(-tenth);
        break;
      case 'd':
      case 'D':
        this.pan(tenth);
        break;
      case ',':
        this.step(-1);
        break;
      case '.':
        this.step(1);
        break;
      case 'f':
      case 'F':
      case ' ':
        this.fit(!this.fitted || isWhole(this.window, this.lanes));
        this.render();
        break;
      case 'r':
      case 'R':
        this.selectCursor();
        break;
      case 'ArrowLeft':
      case 'ArrowRight':
        if (!event.shiftKey) {
          return;
        }
        this.extend(event.key === 'ArrowRight' ? tenth / 2 : -tenth / 2);
        break;
      case 'Escape':
        if (!this.selected && !this.cursor) {
          return;
        }
        this.selected = this.cursor = null;
        this.render();
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private onMove(event: PointerEvent): void {
    if (this.dragFrom !== null && event.buttons) {
      const time = this.axis().time(event.offsetX);
      this.selected = { start: Math.min(this.dragFrom, time), end: Math.max(this.dragFrom, time) };
      this.render();
      return;
    }
    const span = this.spanOf(spanAt(this.lanes, this.window, this.width, event.offsetX, event.offsetY));
    this.canvas.element.title = span ? `${span.label || span.name}  ${duration(span.duration / 1e6)}` : '';
    this.selection.hover(span ? (span.cluster ?? span.name) : null);
  }

  private onUp(event: PointerEvent): void {
    const time = this.axis().time(event.offsetX);
    const dragged =
      this.dragFrom !== null && Math.abs(time - this.dragFrom) > (this.window.end - this.window.start) / 100;
    this.dragFrom = null;
    if (!dragged) {
      this.selected = null;
      this.cursor = spanAt(this.lanes, this.window, this.width, event.offsetX, event.offsetY);
      this.render();
    }
  }

  private zoom(factor: number, around: number): void {
    const whole = wholeWindow(this.lanes);
    const { start, end } = this.window;
    const size = Math.min((end - start) * factor, whole.end - whole.start);
    const least = (whole.end - whole.start) / 1e5;
    const next = Math.max(size, least);
    const from = around - ((around - start) / (end - start)) * next;
    this.moveTo(from, next);
  }

  private pan(by: number): void {
    this.moveTo(this.window.start + by, this.window.end - this.window.start);
  }

  private moveTo(start: number, size: number): void {
    const whole = wholeWindow(this.lanes);
    const from = Math.max(whole.start, Math.min(start, whole.end - size));
    this.window = { start: from, end: from + size };
    this.touched = true;
    this.fitted = false;
    this.render();
  }

  /** First what is to be compared, then everything. */
  private fit(home = true): void {
    this.window = home ? homeWindow(this.lanes) : wholeWindow(this.lanes);
    this.fitted = true;
    this.touched = !home;
  }

  private step(by: number): void {
    const lane = this.cursor?.lane ?? 0;
    const spans = this.lanes[lane]?.spans.length ?? 0;
    const next = this.cursor === null ? 0 : this.cursor.span + by;
    if (next >= 0 && next < spans) {
      this.cursor = { lane, span: next };
    } else if (this.lanes[lane + by]) {
      this.cursor = { lane: lane + by, span: by > 0 ? 0 : (this.lanes[lane + by]?.spans.length ?? 1) - 1 };
    }
    const span = this.spanOf(this.cursor);
    if (span && (span.start < this.window.start || span.start + span.duration > this.window.end)) {
      this.moveTo(span.start - (this.window.end - this.window.start) / 3, this.window.end - this.window.start);
    }
    this.render();
  }

  private selectCursor(): void {
    const span = this.spanOf(this.cursor);
    if (span) {
      this.selected = { start: span.start, end: span.start + span.duration };
      this.render();
    }
  }

  private extend(by: number): void {
    const { start, end } = this.selected ?? { start: this.window.start, end: this.window.start };
    this.selected = { start, end: Math.max(start, Math.min(this.window.end, end + by)) };
    this.render();
  }

  /** Totals stand below the picture, never on top of it. */
  private showDrawer(): void {
    const span = this.spanOf(this.cursor);
    const rows: [string, string][] = [];
    let title = '';
    if (this.selected) {
      title = `Selected ${duration(this.selected.start / 1e6)} to ${duration(this.selected.end / 1e6)}`;
      rows.push(...totals(this.lanes, this.selected).map(({ lane, text }): [string, string] => [lane, text]));
    } else if (span) {
      title = `${span.label || span.name}, ${duration(span.duration / 1e6)}`;
      rows.push(
        ['starts at', duration(span.start / 1e6)],
        ['is', [span.name, span.cluster].filter(Boolean).join(', ')]
      );
    }
    const signature = title + rows.join();
    if (signature !== this.drawn) {
      this.drawn = signature;
      this.drawer.replaceChildren(
        h('b', {}, title),
        h(
          'table',
          {},
          rows.map(([name, text]) => h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, text)))
        )
      );
    }
    this.drawer.hidden = title === '';
  }

  private showLegend(): void {
    const byColor = new Map<number, string[]>();
    for (const { name, color } of this.report?.clusters ?? []) {
      byColor.set(color, [...(byColor.get(color) ?? []), name]);
    }
    const clusters = [...byColor].map(([color, [first = '', ...rest]]): [string | number, string] => [
      color,
      rest.length ? `${first} and ${rest.length} more` : first
    ]);
    const used = new Set(this.lanes.flatMap(lane => lane.marks.slice(0, 10_000)));
    const kinds = (['host', 'statement', 'capture', 'passes', 'quick', 'codegen', 'load'] as const).filter(kind =>
      used.has(kind)
    );
    const names: Record<string, string> = {
      quick: 'quick tier',
      codegen: 'good tier',
      load: 'from the disk cache',
      statement: 'Python'
    };
    this.legend.replaceChildren(
      ...[...clusters, ...kinds.map((kind): [string, string] => [kind, names[kind] ?? kind])].map(([mark, name]) =>
        h('span', {}, swatch(mark), ` ${name}`)
      )
    );
  }

  private spanOf(place: SpanPlace | null) {
    return place === null ? undefined : this.lanes[place.lane]?.spans[place.span];
  }

  private axis() {
    return axis(this.window, this.width);
  }

  private readonly canvas = new CanvasView({ tabindex: '0', role: 'application', 'aria-roledescription': 'timeline' });
  private readonly legend = h('div', { class: 'jl-keys' });
  private readonly drawer = h('div', { class: 'jl-drawer', role: 'status', hidden: true });
  private report: Report | null = null;
  private lanes: PreparedLane[] = [];
  private window: TimeWindow = { start: 0, end: 1 };
  /** Whether the person has moved the window; until then it follows what is recorded. */
  private touched = false;
  private fitted = false;
  private selected: TimeWindow | null = null;
  private cursor: SpanPlace | null = null;
  private dragFrom: number | null = null;
  private width = 0;
  private drawn = '';
}

function isWhole(window: TimeWindow, lanes: readonly PreparedLane[]): boolean {
  const whole = wholeWindow(lanes);
  return window.start === whole.start && window.end === whole.end;
}

function keysLine(): HTMLElement {
  const keys: [string, string][] = [
    ['W S', 'zoom'],
    ['A D', 'pan'],
    [', .', 'previous, next'],
    ['F', 'fit, again all']
  ];
  return h(
    'div',
    { class: 'jl-keys' },
    keys.map(([key, text]) => h('span', {}, h('kbd', {}, key), ` ${text}`))
  );
}
