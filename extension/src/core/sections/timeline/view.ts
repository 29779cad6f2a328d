import { refusal } from '../../base/read';
import { CanvasView } from '../../base/canvas';
import { download, h, icon, isChord, on, takeKey } from '../../base/dom';
import { duration, grouped, lines, some } from '../../base/format';
import type { Lane, Report, Span } from '../../report/report';
import { stateKey, type Section, type SectionContext } from '../../panel/section';
import { chromeTrace } from './chrome';
import { Drawer } from './drawer';
import { axis, laneTitle, layoutTimeline, rightEnd, spanAt, spanTitle, type SpanPlace } from './layout';
import { keysOf, legendOf } from './legend';
import { heldOf, heldText, type Held } from './memory';
import { addCompileLooks } from './looks';
import { Navigation } from './navigation';
import { prepareLanes, wholeWindow, type PreparedLane, type TimeWindow } from './prepare';
import { fetchSpans } from './spans';
import { countOf, timelineSummary } from './summary';
import { TimelineTable } from './table';
import { trafficOf, type Traffic } from './totals';

/** All lanes on one axis: op by op against compiled, and what the first call spent. */
export class TimelineView {
  constructor(
    private readonly section: Section,
    private readonly context: Pick<SectionContext, 'selection' | 'kernel'>
  ) {
    addCompileLooks();
    this.table = new TimelineTable({
      point: (lane, span) => this.hover(this.nav.spanOf({ lane, span })),
      pin: (lane, span) => {
        this.nav.cursor = { lane, span };
        this.pin(this.nav.span);
      }
    });
    this.exporting = h('button.jl-button', { onclick: () => void this.save() }, icon('save'), 'Export Chrome trace');
    this.notice = h('div.jl-note', { role: 'status', hidden: true });
    this.showKeys();
    on(this.canvas.element, {
      keydown: event => this.onKey(event),
      wheel: event => {
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          this.nav.zoom(Math.exp(event.deltaY * 0.01), this.axis().time(event.offsetX));
          this.schedule();
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          event.preventDefault();
          const size = this.nav.window.end - this.nav.window.start;
          this.nav.pan(((event.deltaX || event.deltaY) / Math.max(200, this.width)) * size);
          this.schedule();
        }
      },
      pointerdown: event => {
        this.dragFrom = this.axis().time(event.offsetX);
        this.canvas.element.setPointerCapture(event.pointerId);
      },
      pointermove: event => this.onMove(event),
      pointerup: event => this.onUp(event),
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
      this.nav.touched &&= !other;
      this.waiting = true;
      if (other) {
        this.nav.clear();
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
    this.section.summary = timelineSummary(report);
    this.render();
  }

  /** The lanes are made when they are first looked at: closed, the section needs none of 100 000 spans. */
  private ready(): readonly PreparedLane[] {
    if (this.waiting && this.report) {
      this.waiting = false;
      this.take(this.report.lanes);
      if (!this.nav.touched) {
        this.nav.fit();
      }
    }
    return this.nav.lanes;
  }

  /** Draws again. `again`: only the window, the cursor or the selection has moved. */
  render(again = false): void {
    if (!this.report || !this.section.open) {
      return;
    }
    const { body } = this.section;
    if (this.nav.lanes.length === 0) {
      body.replaceChildren(h('p.jl-muted', 'No times were recorded.'));
      return;
    }
    if (this.section.asTable) {
      if (this.table.element.parentElement !== body) {
        body.replaceChildren(this.table.element);
        this.tabled = null;
      }
      if (this.tabled !== this.nav.lanes) {
        this.tabled = this.nav.lanes;
        this.table.show(this.nav.lanes, this.nav.selected);
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
    const { width, nav } = this;
    const { lanes, window, selected, cursor } = nav;
    const { held } = this;
    this.right = rightEnd(lanes, width, measure);
    this.canvas.paint(layoutTimeline(lanes, { width, measure, window, selected, cursor, lit: this.lit(), held }));
    if (!again) {
      const said = this.nav.lanes.map(
        lane => `${laneTitle(lane.name)}: ${some(lane.spans.length, 'span')}, ${duration(lane.busy / 1e6)}`
      );
      this.canvas.element.setAttribute(
        'aria-label',
        `Timeline. ${said.join('; ')}${held ? `; memory: ${heldText(held)}` : ''}. Press T for the table.`
      );
      this.legend.replaceChildren(...legendOf(this.nav.lanes, this.report.clusters));
    }
    this.showDrawer();
  }

  /** For whoever measures, and for tests. */
  get state(): { window: TimeWindow; whole: TimeWindow; spans: number; selected: TimeWindow | null } {
    this.ready();
    const spans = this.nav.lanes.reduce((sum, lane) => sum + lane.spans.length, 0);
    return { window: { ...this.nav.window }, whole: wholeWindow(this.nav.lanes), spans, selected: this.nav.selected };
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.drawer.dispose();
  }

  private take(lanes: readonly Lane[]): void {
    this.nav.lanes = prepareLanes(
      lanes.filter(lane => countOf(lane) > 0),
      this.report?.clusters ?? []
    );
    this.held = this.report && heldOf(this.report, this.nav.lanes);
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
    const button = h('button.jl-link', { onclick: () => void this.fetch() }, 'Show all');
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
      this.notice.textContent = refusal(error);
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
    const name = report.cell.title.replace(/[^\w]+/g, '-').replace(/^-|-$/g, '') || 'timeline';
    download(text, `${name}.trace.json`, 'application/json');
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
    if (isChord(event)) {
      return;
    }
    const { nav } = this;
    const { start, end } = nav.window;
    const middle = (start + end) / 2;
    const tenth = (end - start) / 10;
    const zoom = (factor: number): void => {
      nav.zoom(factor, middle);
      this.schedule();
    };
    const pan = (by: number): void => {
      nav.pan(by);
      this.schedule();
    };
    const extend = (by: number): void => {
      nav.extend(by);
      this.render(true);
    };
    const centre = (): void => {
      nav.centre();
      this.render(true);
    };
    takeKey(event, {
      w: () => zoom(1 / 1.5),
      s: () => zoom(1.5),
      a: () => pan(-tenth),
      d: () => pan(tenth),
      ',': () => this.go(nav.step(-1)),
      '.': () => this.go(nav.step(1)),
      f: centre,
      ' ': centre,
      '?': () => {
        this.allKeys = !this.allKeys;
        this.showKeys();
      },
      e: () => this.save(),
      ArrowUp: () => this.go(nav.changeLane(-1)),
      ArrowDown: () => this.go(nav.changeLane(1)),
      Enter: () => this.pin(nav.span),
      r: () => {
        nav.select();
        this.render(true);
      },
      ArrowLeft: () => (event.shiftKey ? extend(-tenth / 2) : false),
      ArrowRight: () => (event.shiftKey ? extend(tenth / 2) : false),
      Escape: () => (nav.clear() ? this.render() : false)
    });
  }

  private onMove(event: PointerEvent): void {
    if (this.dragFrom !== null && event.buttons) {
      const time = this.axis().time(event.offsetX);
      this.nav.selected = { start: Math.min(this.dragFrom, time), end: Math.max(this.dragFrom, time) };
      this.schedule();
      return;
    }
    const span = this.nav.spanOf(this.placeOf(event));
    const title = span ? spanTitle(span) : '';
    if (this.canvas.element.title !== title) {
      this.canvas.element.title = title;
    }
    this.hover(span);
  }

  private onUp(event: PointerEvent): void {
    const time = this.axis().time(event.offsetX);
    const dragged =
      this.dragFrom !== null && Math.abs(time - this.dragFrom) > (this.nav.window.end - this.nav.window.start) / 100;
    this.dragFrom = null;
    if (!dragged) {
      this.nav.selected = null;
      this.nav.cursor = this.placeOf(event);
      this.pin(this.nav.span);
      this.render(true);
    }
  }

  /** Shows the span that the keyboard has gone to. */
  private go(moved: boolean): void {
    if (moved) {
      this.hover(this.nav.span);
      this.render(true);
    }
  }

  private showDrawer(): void {
    this.drawer.show(this.dragFrom !== null, () => {
      const { lanes, selected, span } = this.nav;
      return { lanes, traffic: this.traffic, selected, span, lines: span ? this.linesOf(span) : '' };
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

  private axis(): ReturnType<typeof axis> {
    return axis(this.nav.window, this.width, this.right);
  }

  private placeOf({ offsetX, offsetY }: MouseEvent): SpanPlace | null {
    return spanAt(this.nav.lanes, this.nav.window, this.width, offsetX, offsetY, this.right);
  }

  private readonly canvas = new CanvasView({ tabindex: '0', role: 'application', 'aria-roledescription': 'timeline' });
  private readonly nav = new Navigation();
  private readonly legend = h('div.jl-keys');
  private readonly drawer = new Drawer();
  private readonly keys = h('div.jl-keys');
  private readonly table: TimelineTable;
  private readonly exporting: HTMLButtonElement;
  private readonly notice: HTMLElement;
  private report: Report | null = null;
  /** All lanes, when they have been fetched. */
  private whole: Lane[] | null = null;
  /** The lanes of this report are not made yet. */
  private waiting = false;
  /** Where bars end, as they were drawn last. */
  private right: number | undefined;
  private tabled: readonly PreparedLane[] | null = null;
  private traffic: Traffic = new Map();
  private held: Held | null = null;
  private dragFrom: number | null = null;
  private width = 0;
  private frame = 0;
  private shown: { report: Report; key: string } | null = null;
  private allKeys = false;
}

/** So many spans are fetched when the section is opened; of more a button does it. */
const AT_ONCE = 5000;
