import type { Span } from '../../report/report';
import type { SpanPlace } from './layout';
import { homeWindow, lastStartingBefore, wholeWindow, type PreparedLane, type TimeWindow } from './prepare';

/** Pure: which part of the time is seen, at which span the keyboard is, and what is selected. */
export class Navigation {
  lanes: readonly PreparedLane[] = [];
  window: TimeWindow = { start: 0, end: 1 };
  selected: TimeWindow | null = null;
  cursor: SpanPlace | null = null;
  /** Whether the user has moved the window; until then it follows what is recorded. */
  touched = false;

  /** The span at the cursor. */
  get span(): Span | undefined {
    return this.spanOf(this.cursor);
  }

  spanOf(place: SpanPlace | null): Span | undefined {
    return place === null ? undefined : this.lanes[place.lane]?.spans[place.span];
  }

  /** Forgets what was selected; whether there was anything. */
  clear(): boolean {
    const had = this.selected !== null || this.cursor !== null;
    this.selected = this.cursor = null;
    return had;
  }

  zoom(factor: number, around: number): void {
    const whole = wholeWindow(this.lanes);
    const { start, end } = this.window;
    const size = Math.min((end - start) * factor, whole.end - whole.start);
    const least = (whole.end - whole.start) / 1e5;
    const next = Math.max(size, least);
    this.moveTo(around - ((around - start) / (end - start)) * next, next);
  }

  pan(by: number): void {
    this.moveTo(this.window.start + by, this.window.end - this.window.start);
  }

  /** First what is to be compared, then everything. */
  fit(home = true): void {
    this.window = home ? homeWindow(this.lanes) : wholeWindow(this.lanes);
    this.touched = !home;
  }

  /** The span at the cursor, or the selection, with room beside it; again, and without either, what there is at first, then all. */
  centre(): void {
    const { span, window } = this;
    const aim = this.selected ?? (span ? { start: span.start, end: span.start + span.duration } : null);
    const isSeen =
      aim !== null &&
      window.start < aim.start &&
      window.end > aim.end &&
      window.end - window.start < (aim.end - aim.start) * 3;
    if (aim && !isSeen) {
      const size = Math.max(aim.end - aim.start, 1e-3) * 2;
      this.moveTo((aim.start + aim.end) / 2 - size / 2, size);
      return;
    }
    const home = homeWindow(this.lanes);
    this.fit(window.start !== home.start || window.end !== home.end);
  }

  /** To the span before or after, and from lane to lane; whether there is one. */
  step(by: number): boolean {
    const lane = this.cursor?.lane ?? 0;
    const { spans } = this.lanes[lane] ?? { spans: [] };
    const next = this.cursor ? this.cursor.span + by : Math.max(0, this.firstSeen(lane));
    if (next >= 0 && next < spans.length) {
      return this.goTo({ lane, span: next });
    }
    const beside = this.lanes[lane + by];
    return beside !== undefined && this.goTo({ lane: lane + by, span: by > 0 ? 0 : beside.spans.length - 1 });
  }

  /** To what runs in another lane at the same time, in a lane that nests to what lies within a span or what that lies in; whether there is one. */
  changeLane(by: number): boolean {
    const within = this.cursor && nextWithin(this.lanes[this.cursor.lane], this.cursor.span, by);
    if (this.cursor && within !== null) {
      return this.goTo({ lane: this.cursor.lane, span: within });
    }
    const lane = this.cursor ? this.cursor.lane + by : 0;
    const next = this.lanes[lane];
    const time = this.span?.start ?? this.window.start;
    const there = next && Math.max(0, lastStartingBefore(next, time));
    return there !== undefined && this.goTo({ lane, span: by > 0 ? outermost(next, there) : there });
  }

  /** Selects the time of the span at the cursor; whether there is one. */
  select(): boolean {
    const { span } = this;
    if (span) {
      this.selected = { start: span.start, end: span.start + span.duration };
    }
    return span !== undefined;
  }

  /** Moves the end of the selection, which begins at the cursor where there is none yet. */
  extend(by: number): void {
    const from = this.span?.start ?? this.window.start;
    const { start, end } = this.selected ?? { start: from, end: from };
    this.selected = { start, end: Math.max(start, Math.min(this.window.end, end + by)) };
  }

  private moveTo(start: number, size: number): void {
    const whole = wholeWindow(this.lanes);
    const from = Math.max(whole.start, Math.min(start, whole.end - size));
    this.window = { start: from, end: from + size };
    this.touched = true;
  }

  private goTo(place: SpanPlace): boolean {
    this.cursor = place;
    const { span, window } = this;
    const size = window.end - window.start;
    if (span && (span.start < window.start || span.start + span.duration > window.end)) {
      this.moveTo(span.start - size / 3, size);
    }
    return true;
  }

  private firstSeen(lane: number): number {
    const prepared = this.lanes[lane];
    return prepared ? lastStartingBefore(prepared, this.window.start) : 0;
  }
}

/** The first span within one, or the one that it lies in; null: there is none. */
function nextWithin(lane: PreparedLane | undefined, at: number, by: number): number | null {
  const next = by > 0 ? at + 1 : (lane?.parents[at] ?? -1);
  return by > 0 ? (lane?.parents[next] === at ? next : null) : next < 0 ? null : next;
}

/** What a span lies in, at the top. */
function outermost(lane: PreparedLane | undefined, at: number): number {
  const parent = lane?.parents[at] ?? -1;
  return parent < 0 ? at : outermost(lane, parent);
}
