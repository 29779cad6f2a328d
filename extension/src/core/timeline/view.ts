import { CanvasView } from '../canvas';
import { h, icon, on } from '../dom';
import { duration, grouped, lines, some } from '../format';
import type { Lane, Report, Span } from '../report';
import { stateKey, type Section, type SectionContext } from '../section';
import { chromeTrace } from './chrome';
import { Drawer } from './drawer';
import { axis, laneTitle, layoutTimeline, nameOf, spanAt, type SpanPlace } from './layout';
import { keysOf, legendOf } from './legend';
import {
  busyOf,
  countOf,
  homeWindow,
  lastStartingBefore,
  prepareLanes,
  wholeWindow,
  type PreparedLane,
  type TimeWindow
} from './prepare';
import { fetchSpans } from './spans';
import { TimelineTable } from './table';
import { trafficOf, type Traffic } from './totals';

/** All lanes on one axis: op by op against compiled, and what the first call spent. */
export class TimelineView {
  constructor(
    private readonly section: Section,
    private readonly context: Pick<SectionContext, 'selection' | 'kernel'>
  ) {
    this.table = new TimelineTable({
      point: (lane, span) => {
        this.hover(this.spanOf({ lane, span }));
      },
      pin: (lane, span) => {
        this.cursor = { lane, span };
        this.pin(this.spanOf(this.cursor));
      }
    });
    this.exporting = h('button', { type: 'button', class: 'jl-button' }, icon('save'), 'Export Chrome trace');
    on(this.exporting, {
      click: () => {
        void this.save();
      }
    });
    this.notice = h('div', { class: 'jl-note', role: 'status', hidden: true });
    this.showKeys();
    on(this.canvas.element, {
      keydown: event => {
        this.onKey(event);
      },
      wheel: event => {
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          this.zoom(Math.exp(event.deltaY * 0.01), this.axis().time(event.offsetX));
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          event.preventDefault();
          const size = this.window.end - this.window.start;
          this.pan(((event.deltaX || event.deltaY) / Math.max(200, this.width)) * size);
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
        this.hover(undefined);
      }
    });
  }

  show(report: Report, width: number): void {
    if (report !== this.report) {
      const other = report.cell.id !== this.report?.cell.id;
      this.report = report;
      this.whole = null;
      this.notice.hidden = true;
      this.traffic = trafficOf(report);
      this.touched &&= !other;
      this.waiting = true;
      if (other) {
        this.selected = null;
        this.cursor = null;
      }
    }
    if (this.section.open) {
      this.ready();
    }
    const key = stateKey(this.section, width, this.context.selection);
    if (this.shown?.report === report && this.shown.key === key) {
      return; // drawn already
    }
    this.shown = { report, key };
    this.width = width - 24;
    this.section.summary = this.summary(report);
    this.render();
  }

  private summary(report: Report): string {
    const lanes = report.lanes.filter(lane => countOf(lane) > 0);
    const heads = lanes.filter(({ name, group }) => name === group);
    const shown = (heads.length ? heads : lanes).slice(0, 2).map(lane => {
      const busy = this.waiting ? busyOf(lane) : null;
      const prepared = busy === null ? this.ready().find(({ name }) => name === lane.name) : undefined;
      return `${lane.name} ${duration((busy ?? prepared?.busy ?? 0) / 1e6)}`;
    });
    return shown.join(' · ') || 'nothing was timed';
  }

  /** The lanes are made when they are first looked at: closed, the section needs none of 100 000 spans. */
  private ready(): PreparedLane[] {
    if (this.waiting && this.report) {
      this.waiting = false;
      this.take(this.report.lanes);
      if (!this.touched) {
        this.fit();
      }
    }
    return this.lanes;
  }

  /** Draws again. `again`: only the window, the cursor or the selection has moved. */
  render(again = false): void {
    if (!this.report || !this.section.open) {
      return;
    }
    const { body } = this.section;
    if (this.lanes.length === 0) {
      body.replaceChildren(h('p', { class: 'jl-muted' }, 'No times were recorded.'));
      return;
    }
    if (this.section.asTable) {
      if (this.table.element.parentElement !== body) {
        body.replaceChildren(this.table.element);
        this.tabled = null;
      }
      if (this.tabled !== this.lanes) {
        this.tabled = this.lanes;
        this.table.show(this.lanes, this.selected);
      }
      return;
    }
    if (this.canvas.element.parentElement !== body) {
      body.replaceChildren(
        this.canvas.element,
        this.legend,
        this.notice,
        this.drawer.element,
        this.keys,
        this.exporting
      );
    }
    const measure = this.canvas.prepare(again);
    if (!measure) {
      return;
    }
    const { width, window, selected, cursor } = this;
    this.canvas.paint(layoutTimeline(this.lanes, { width, measure, window, selected, cursor, lit: this.lit() }));
    if (!again) {
      const said = this.lanes.map(
        lane => `${laneTitle(lane.name)}: ${some(lane.spans.length, 'span')}, ${duration(lane.busy / 1e6)}`
      );
      this.canvas.element.setAttribute('aria-label', `Timeline. ${said.join('; ')}. Press T for the table.`);
      this.legend.replaceChildren(...legendOf(this.lanes, this.report.clusters));
    }
    this.showDrawer();
  }

  /** For whoever measures, and for tests. */
  get state(): { window: TimeWindow; whole: TimeWindow; spans: number; selected: TimeWindow | null } {
    this.ready();
    const spans = this.lanes.reduce((sum, lane) => sum + lane.spans.length, 0);
    return { window: { ...this.window }, whole: wholeWindow(this.lanes), spans, selected: this.selected };
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.drawer.dispose();
  }

  private take(lanes: readonly Lane[]): void {
    this.lanes = prepareLanes(
      lanes.filter(lane => countOf(lane) > 0),
      this.report?.clusters ?? []
    );
    this.showMissing();
  }

  /** Of a report that was too big to be sent whole only the last spans are here. */
  private showMissing(): void {
    const lanes = this.report?.lanes ?? [];
    const [here, all] = [lanes.reduce((n, lane) => n + countOf(lane), 0), lanes.reduce((n, lane) => n + lane.total, 0)];
    if (this.whole || here >= all) {
      return;
    }
    if (this.context.kernel && all <= AT_ONCE) {
      void this.fetch();
      return;
    }
    const button = h('button', { type: 'button', class: 'jl-link' }, 'Show all');
    on(button, {
      click: () => {
        void this.fetch();
      }
    });
    const text = `${grouped(here)} of ${some(all, 'span')} are here. `;
    this.notice.replaceChildren(text, ...(this.context.kernel ? [button] : []));
    this.notice.hidden = false;
  }

  private async fetch(): Promise<void> {
    const { report, context } = this;
    if (!report || !context.kernel || this.whole) {
      return;
    }
    try {
      this.notice.textContent = 'Fetching…';
      this.notice.hidden = false;
      const lanes = await fetchSpans(context.kernel, report);
      if (report === this.report) {
        this.whole = lanes;
        this.notice.hidden = true;
        this.take(lanes);
        this.render();
      }
    } catch (error) {
      this.notice.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** The file holds every span; those that are not here are fetched first. */
  private async save(): Promise<void> {
    await this.fetch();
    const { report } = this;
    if (!report) {
      return;
    }
    const text = JSON.stringify(chromeTrace(report, this.whole ?? report.lanes));
    const link = h('a', {
      href: URL.createObjectURL(new Blob([text], { type: 'application/json' })),
      download: `${report.cell.title.replace(/[^\w]+/g, '-').replace(/^-|-$/g, '') || 'timeline'}.trace.json`
    });
    link.click();
    setTimeout(() => {
      URL.revokeObjectURL(link.href);
    }, 10_000);
  }

  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.render(true);
    });
  }

  /** Which spans are what is pointed at: an operation, a kernel, a cluster; kernels of a cluster only where it is meant itself. */
  private lit(): ((span: Span) => boolean) | null {
    const { lit, links } = this.context.selection;
    if (!lit || !links) {
      return null;
    }
    const known = new Map<string, boolean>();
    return span => {
      const key = `${span.plan}\n${span.name}`;
      let is = known.get(key);
      if (is === undefined) {
        const id = links.idOf(span.name, span.plan);
        is =
          lit.ops.has(id) ||
          (span.kind === 'kernel' ? lit.kernels.has(id) : lit.clusters.has(id)) ||
          (lit.kind === 'cluster' && span.cluster !== null && lit.clusters.has(links.idOf(span.cluster, span.plan)));
        known.set(key, is);
      }
      return is;
    };
  }

  private hover(span: Span | undefined): void {
    this.context.selection.hover(span ? this.idOf(span) : null);
  }

  private pin(span: Span | undefined): void {
    const id = span && this.idOf(span);
    if (id && this.context.selection.pin !== id) {
      this.context.selection.togglePin(id);
    }
  }

  /** The id by which all views know what a span is of; null for what is no part of the graph. */
  private idOf(span: Span): string | null {
    const { links } = this.context.selection;
    const id = links?.idOf(span.name, span.plan) ?? span.name;
    if (links && links.of(id).kind !== 'none') {
      return id;
    }
    return span.cluster === null ? null : (links?.idOf(span.cluster, span.plan) ?? span.cluster);
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
        this.centre();
        break;
      case '?':
        this.allKeys = !this.allKeys;
        this.showKeys();
        break;
      case 'e':
      case 'E':
        void this.save();
        break;
      case 'ArrowUp':
      case 'ArrowDown':
        this.changeLane(event.key === 'ArrowDown' ? 1 : -1);
        break;
      case 'Enter':
        this.pin(this.spanOf(this.cursor));
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
      this.schedule();
      return;
    }
    const span = this.spanOf(spanAt(this.lanes, this.window, this.width, event.offsetX, event.offsetY));
    const title = span ? `${nameOf(span)}  ${duration(span.duration / 1e6)}` : '';
    if (this.canvas.element.title !== title) {
      this.canvas.element.title = title;
    }
    this.hover(span);
  }

  private onUp(event: PointerEvent): void {
    const time = this.axis().time(event.offsetX);
    const dragged =
      this.dragFrom !== null && Math.abs(time - this.dragFrom) > (this.window.end - this.window.start) / 100;
    this.dragFrom = null;
    if (!dragged) {
      this.selected = null;
      this.cursor = spanAt(this.lanes, this.window, this.width, event.offsetX, event.offsetY);
      this.pin(this.spanOf(this.cursor));
      this.render(true);
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
    this.schedule();
  }

  /** First what is to be compared, then everything. */
  private fit(home = true): void {
    this.window = home ? homeWindow(this.lanes) : wholeWindow(this.lanes);
    this.touched = !home;
  }

  /** The span under the cursor, or the selection, with room beside it; again, and without either, what there is at first, then all. */
  private centre(): void {
    const span = this.spanOf(this.cursor);
    const aim = this.selected ?? (span ? { start: span.start, end: span.start + span.duration } : null);
    if (
      aim &&
      !(
        this.window.start < aim.start &&
        this.window.end > aim.end &&
        this.window.end - this.window.start < (aim.end - aim.start) * 3
      )
    ) {
      const size = Math.max(aim.end - aim.start, 1e-3) * 2;
      this.moveTo((aim.start + aim.end) / 2 - size / 2, size);
      return;
    }
    const home = homeWindow(this.lanes);
    this.fit(this.window.start !== home.start || this.window.end !== home.end);
    this.render(true);
  }

  private step(by: number): void {
    const lane = this.cursor?.lane ?? 0;
    const { spans } = this.lanes[lane] ?? { spans: [] };
    const first = this.cursor ? this.cursor.span + by : Math.max(0, this.firstShown(lane));
    if (first >= 0 && first < spans.length) {
      this.goTo({ lane, span: first });
    } else if (this.lanes[lane + by]) {
      this.goTo({ lane: lane + by, span: by > 0 ? 0 : (this.lanes[lane + by]?.spans.length ?? 1) - 1 });
    }
  }

  private changeLane(by: number): void {
    const lane = this.cursor ? this.cursor.lane + by : 0;
    const next = this.lanes[lane];
    if (next) {
      const time = this.spanOf(this.cursor)?.start ?? this.window.start;
      this.goTo({ lane, span: Math.max(0, lastStartingBefore(next, time)) });
    }
  }

  private firstShown(lane: number): number {
    const prepared = this.lanes[lane];
    return prepared ? lastStartingBefore(prepared, this.window.start) : 0;
  }

  private goTo(place: SpanPlace): void {
    this.cursor = place;
    const span = this.spanOf(place);
    const size = this.window.end - this.window.start;
    if (span && (span.start < this.window.start || span.start + span.duration > this.window.end)) {
      this.moveTo(span.start - size / 3, size);
    }
    this.hover(span);
    this.render(true);
  }

  private selectCursor(): void {
    const span = this.spanOf(this.cursor);
    if (span) {
      this.selected = { start: span.start, end: span.start + span.duration };
      this.render(true);
    }
  }

  private extend(by: number): void {
    const from = this.spanOf(this.cursor)?.start ?? this.window.start;
    const { start, end } = this.selected ?? { start: from, end: from };
    this.selected = { start, end: Math.max(start, Math.min(this.window.end, end + by)) };
    this.render(true);
  }

  private showDrawer(): void {
    this.drawer.show(this.dragFrom !== null, () => {
      const { lanes, traffic, selected } = this;
      const span = this.spanOf(this.cursor);
      return { lanes, traffic, selected, span, lines: span ? this.linesOf(span) : '' };
    });
  }

  private linesOf(span: Span): string {
    const id = this.idOf(span);
    const { links } = this.context.selection;
    const found =
      id === null
        ? undefined
        : (links?.op(id)?.lines.map(({ line }) => line) ?? links?.kernel(id)?.lines ?? links?.cluster(id)?.lines);
    return lines(found ?? span.lines);
  }

  private showKeys(): void {
    this.keys.replaceChildren(...keysOf(this.allKeys));
  }

  private spanOf(place: SpanPlace | null): Span | undefined {
    return place === null ? undefined : this.lanes[place.lane]?.spans[place.span];
  }

  private axis(): ReturnType<typeof axis> {
    return axis(this.window, this.width);
  }

  private readonly canvas = new CanvasView({ tabindex: '0', role: 'application', 'aria-roledescription': 'timeline' });
  private readonly legend = h('div', { class: 'jl-keys' });
  private readonly drawer = new Drawer();
  private readonly keys = h('div', { class: 'jl-keys' });
  private readonly table: TimelineTable;
  private readonly exporting: HTMLButtonElement;
  private readonly notice: HTMLElement;
  private report: Report | null = null;
  /** All lanes, when they have been fetched. */
  private whole: Lane[] | null = null;
  private lanes: PreparedLane[] = [];
  /** The lanes of this report are not made yet. */
  private waiting = false;
  private tabled: PreparedLane[] | null = null;
  private traffic: Traffic = new Map();
  private window: TimeWindow = { start: 0, end: 1 };
  /** Whether the person has moved the window; until then it follows what is recorded. */
  private touched = false;
  private selected: TimeWindow | null = null;
  private cursor: SpanPlace | null = null;
  private dragFrom: number | null = null;
  private width = 0;
  private frame = 0;
  private shown: { report: Report; key: string } | null = null;
  private allKeys = false;
}

/** So many spans are fetched when the section is opened; of more a button does it. */
const AT_ONCE = 5000;
