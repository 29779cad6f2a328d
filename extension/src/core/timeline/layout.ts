import { duration } from '../format';
import type { Linked } from '../links';
import type { Cluster, Lane, Span } from '../report';
import { clusterMark, clip, type Mark, type Measure, type Picture, type Shape } from '../shapes';

/** A stretch of the axis, in microseconds. */
export interface TimeWindow {
  start: number;
  end: number;
}

export interface TimelineOptions {
  width: number;
  measure: Measure;
  window: TimeWindow;
  selected: TimeWindow | null;
  linked: Linked | null;
  /** Lane and span under the keyboard's cursor. */
  cursor: SpanPlace | null;
}

export interface SpanPlace {
  lane: number;
  span: number;
}

/** A lane whose spans are sorted, and stacked where one lies within another. */
export interface PreparedLane {
  name: string;
  dropped: number;
  spans: Span[];
  depths: number[];
  depth: number;
  /** Microseconds in which something ran; of a lane whose first spans were not kept, all that it took. */
  busy: number;
  end: number;
  marks: Mark[];
}

export const BAR = 14;
const TOP = 22;
const PAD = 6;
const NAMES = 13;
const TOTALS = 58;
const MOST_DEPTH = 4;
/** Three steps of a lesson's training loop. */
const MOST_AT_FIRST = 54;
/** Microseconds that a span may seem to begin before the end of the one before it. */
const ROUNDING = 0.05;

/** Done once a report; `layoutTimeline` is done at every move. */
export function prepareLanes(lanes: readonly Lane[], clusters: readonly Cluster[]): PreparedLane[] {
  const colors = new Map(clusters.map(cluster => [cluster.name, cluster.color]));
  return lanes.map(lane => {
    const spans = [...lane.spans].sort((a, b) => a.start - b.start || b.duration - a.duration);
    const open: number[] = [];
    let busy = 0;
    let reached = -Infinity;
    const depths = spans.map(span => {
      const end = span.start + span.duration;
      while (open.length && (open.at(-1) ?? 0) <= span.start + ROUNDING) {
        open.pop();
      }
      const depth = Math.min(open.length, MOST_DEPTH - 1);
      open.push(end);
      busy += Math.max(0, end - Math.max(span.start, reached));
      reached = Math.max(reached, end);
      return depth;
    });
    return {
      name: lane.name,
      dropped: lane.dropped,
      spans,
      depths,
      depth: Math.max(0, ...depths.slice(0, 100_000)) + 1,
      busy: lane.dropped > 0 ? reached : busy,
      end: reached,
      marks: spans.map(span => markOf(span, colors))
    };
  });
}

export function wholeWindow(lanes: readonly PreparedLane[]): TimeWindow {
  let start = Infinity;
  let end = -Infinity;
  for (const lane of lanes) {
    start = Math.min(start, lane.spans[0]?.start ?? Infinity);
    for (const span of lane.spans) {
      end = Math.max(end, span.start + span.duration);
    }
  }
  return end > start ? { start: Math.min(0, start), end } : { start: 0, end: 1 };
}

/**
 * What the axis shows at first: the lanes that are to be compared, also where a first call took a hundred times as long.
 * Of very many spans it is a stretch in which each can be seen.
 */
export function homeWindow(lanes: readonly PreparedLane[]): TimeWindow {
  const whole = wholeWindow(lanes);
  const compared = lanes.filter(lane => lane.name !== 'first call');
  const home = wholeWindow(compared);
  if (compared.length > 1 && compared.some(lane => lane.spans.length > MOST_AT_FIRST)) {
    const start = Math.max(0, ...compared.filter(lane => lane.dropped > 0).map(lane => lane.spans[0]?.start ?? 0));
    const ends = compared.map(({ spans }) => {
      const first = Math.max(0, lastStartingBefore(spans, start));
      const last = spans[Math.min(spans.length, first + MOST_AT_FIRST) - 1];
      return last ? last.start + last.duration : start;
    });
    const end = Math.min(...ends.filter(time => time > start));
    const shown = compared.every(({ spans }) =>
      spans.some(span => span.start < end && span.start + span.duration > start)
    );
    return shown ? { start, end } : home;
  }
  return compared.length && home.end < whole.end / 2 ? { start: home.start, end: home.end * 1.02 } : whole;
}

export function labelWidth(width: number): number {
  return width < 300 ? 0 : 72;
}

export function laneTop(lanes: readonly PreparedLane[], index: number, width: number): number {
  const names = labelWidth(width) ? 0 : 14;
  return lanes.slice(0, index).reduce((y, lane) => y + lane.depth * BAR + NAMES + PAD + names, TOP + names);
}

/** Where a time lies, and the time that lies there. */
export function axis(window: TimeWindow, width: number): { x: (time: number) => number; time: (x: number) => number } {
  const left = labelWidth(width);
  const scale = Math.max(1, width - left - TOTALS) / (window.end - window.start);
  return { x: time => left + (time - window.start) * scale, time: x => window.start + (x - left) / scale };
}

/** Pure: spans in, bars out; what would fall on a pixel that is already filled is left out, so 100 000 spans cost what 1 000 do. */
export function layoutTimeline(lanes: readonly PreparedLane[], options: TimelineOptions): Picture {
  const { width, window, measure, selected } = options;
  const left = labelWidth(width);
  const right = width - TOTALS;
  const { x } = axis(window, width);
  const height = laneTop(lanes, lanes.length, width) + 2;
  const shapes: Shape[] = ticks(window, width, height, measure);
  if (selected) {
    const [from, to] = [Math.max(left, x(selected.start)), Math.min(right, x(selected.end))];
    if (to > from) {
      shapes.push({
        shape: 'box',
        x: from,
        y: TOP - 5,
        width: to - from,
        height: height - TOP + 4,
        fill: 'link',
        opacity: 0.1
      });
      shapes.push({
        shape: 'stroke',
        path: `M${from} ${TOP - 6}V${height}M${to} ${TOP - 6}V${height}`,
        ink: 'link',
        thickness: 1.5
      });
    }
  }
  lanes.forEach((lane, index) => {
    const top = laneTop(lanes, index, width);
    const name = clip(lane.name, left ? left - 6 : width - TOTALS, 'name', measure);
    shapes.push({ shape: 'words', x: 0, y: left ? top + 11 : top - 4, text: name, type: 'name', ink: 'text' });
    shapes.push({
      shape: 'words',
      x: width,
      y: top + 11,
      text: (lane.end > window.end * 1.0001 ? '→ ' : '') + duration(lane.busy / 1e6),
      type: 'name',
      ink: 'text',
      align: 'right'
    });
    const [first] = lane.spans;
    if (first && lane.dropped > 0 && first.start > window.start) {
      const [from, to] = [Math.max(left, x(0)), Math.min(right, x(first.start))];
      shapes.push({ shape: 'stroke', path: `M${from} ${top + BAR / 2}H${to}`, ink: 'line2', dash: [3, 2.5] });
    }
    shapes.push(...laneBars(lane, index, top, left, right, x, options));
  });
  return { width, height, shapes, items: [] };
}

/** The span at a point of the picture; the innermost where they are stacked. */
export function spanAt(
  lanes: readonly PreparedLane[],
  window: TimeWindow,
  width: number,
  px: number,
  py: number
): SpanPlace | null {
  const { time, x } = axis(window, width);
  for (let lane = 0; lane < lanes.length; lane++) {
    const top = laneTop(lanes, lane, width);
    const { spans = [], depths = [], depth = 0 } = lanes[lane] ?? {};
    if (py < top || py > top + depth * BAR + NAMES || px < labelWidth(width)) {
      continue;
    }
    const level = Math.min(depth - 1, Math.floor((py - top) / BAR));
    const at = time(px);
    for (let index = lastStartingBefore(spans, time(px + 1)); index >= 0; index--) {
      const span = spans[index];
      if (
        span &&
        (depths[index] ?? 0) <= level &&
        Math.max(x(span.start + span.duration), x(span.start) + 1) >= px - 1
      ) {
        return { lane, span: index };
      }
      if (span && depths[index] === 0 && at - span.start > 0 && depth === 1) {
        break;
      }
    }
  }
  return null;
}

/** What ended within a stretch, one sentence a lane. */
export function totals(lanes: readonly PreparedLane[], window: TimeWindow): { lane: string; text: string }[] {
  return lanes.map(lane => {
    let count = 0;
    let busy = 0;
    let reached = -Infinity;
    for (const span of lane.spans) {
      const [from, to] = [Math.max(window.start, span.start), Math.min(window.end, span.start + span.duration)];
      if (to > from) {
        count += span.start + span.duration <= window.end ? 1 : 0;
        busy += Math.max(0, to - Math.max(from, reached));
        reached = Math.max(reached, to);
      }
    }
    return { lane: lane.name, text: `${count} of ${lane.spans.length} spans end here, ${duration(busy / 1e6)} busy` };
  });
}

function laneBars(
  lane: PreparedLane,
  index: number,
  top: number,
  left: number,
  right: number,
  x: (time: number) => number,
  { window, measure, linked, cursor }: TimelineOptions
): Shape[] {
  const bars: Shape[] = [];
  const lit: Shape[] = [];
  const names: { x: number; room: number; text: string }[] = [];
  const filled = new Array<number>(lane.depth).fill(-Infinity);
  for (let at = 0; at < lane.spans.length; at++) {
    const span = lane.spans[at];
    const depth = lane.depths[at] ?? 0;
    if (!span || span.start > window.end) {
      break;
    }
    if (span.start + span.duration < window.start) {
      continue;
    }
    const from = Math.max(left, x(span.start));
    const to = Math.min(right, Math.max(x(span.start + span.duration), x(span.start) + 1));
    const isCursor = cursor?.lane === index && cursor.span === at;
    const isLinked = linked !== null && isLit(linked, span);
    if (to <= (filled[depth] ?? 0) + 0.9 && !isCursor) {
      continue;
    }
    const start = Math.max(from, filled[depth] ?? 0);
    const wide = Math.max(0.75, to - start - (to - start > 3 ? 0.75 : 0));
    filled[depth] = to;
    const y = top + depth * BAR;
    bars.push({ shape: 'box', x: start, y: y + 1, width: wide, height: BAR - 2, mark: lane.marks[at] ?? 'op' });
    if (isLinked || isCursor) {
      lit.push({
        shape: 'box',
        x: start - 1,
        y: y - 1,
        width: wide + 2,
        height: BAR + 2,
        stroke: isCursor ? 'focus' : 'link',
        thickness: 2
      });
    }
    const text = span.label || span.name;
    const inside = lane.marks[at] === 'op' && measure(text, 'note') + 6 < wide;
    if (inside) {
      bars.push({ shape: 'words', x: start + 3, y: y + 11, text, type: 'note', ink: 'text' });
    } else if (depth === 0 && wide >= 3) {
      names.push({ x: start, room: wide, text });
    }
  }
  return [...bars, ...lit, ...namesBelow(names, top + lane.depth * BAR + 10, right, measure)];
}

/** Names that do not fit inside stand below, the widest bars first, and never on one another. */
function namesBelow(
  names: readonly { x: number; room: number; text: string }[],
  y: number,
  right: number,
  measure: Measure
): Shape[] {
  const taken: [number, number][] = [];
  const shown: Shape[] = [];
  for (const name of [...names].sort((a, b) => b.room - a.room).slice(0, 60)) {
    const wide = measure(name.text, 'note');
    const x = Math.min(name.x, right - wide);
    if (x >= name.x - 20 && taken.every(([from, to]) => x + wide + 6 < from || x > to + 6)) {
      taken.push([x, x + wide]);
      shown.push({ shape: 'words', x, y, text: name.text, type: 'note', ink: 'muted' });
    }
  }
  return shown;
}

function ticks(window: TimeWindow, width: number, height: number, measure: Measure): Shape[] {
  const { x } = axis(window, width);
  const room = width - labelWidth(width) - TOTALS;
  const step = niceStep((window.end - window.start) / Math.max(2, Math.floor(room / 56)));
  const [unit, size] = step >= 1e6 ? ['s', 1e6] : step >= 100 ? ['ms', 1e3] : ['µs', 1];
  const shapes: Shape[] = [];
  let free = -Infinity;
  for (let time = Math.ceil(window.start / step - 1e-9) * step; time <= window.end + step * 1e-9; time += step) {
    const at = x(time);
    const label = `${Number((time / size).toFixed(3))}${shapes.length === 0 ? ` ${unit}` : ''}`;
    const half = measure(label, 'note') / 2;
    shapes.push({ shape: 'stroke', path: `M${Math.round(at) + 0.5} 16V${height}`, ink: 'line' });
    if (at - half > free) {
      shapes.push({
        shape: 'words',
        x: Math.max(half, at),
        y: 12,
        text: label,
        type: 'note',
        ink: 'muted',
        align: 'center'
      });
      free = at + half + 6;
    }
  }
  return shapes;
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-3)));
  const factor = [1, 2, 5, 10].find(candidate => candidate * power >= rough) ?? 10;
  return factor * power;
}

function lastStartingBefore(spans: readonly Span[], time: number): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle]?.start ?? Infinity) <= time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}

const KINDS: Record<string, Mark> = {
  op: 'op',
  host: 'host',
  statement: 'statement',
  capture: 'capture',
  passes: 'passes',
  codegen: 'codegen',
  load: 'load'
};

/** What ran has its cluster's mark; what made it run has the grey of compile time. */
function markOf(span: Span, colors: ReadonlyMap<string, number>): Mark {
  const color = span.cluster === null ? undefined : colors.get(span.cluster);
  const ran = span.kind === 'launch' || span.kind === 'kernel';
  if (ran && color !== undefined) {
    return clusterMark(color);
  }
  return span.kind === 'codegen' && span.label.includes('quick') ? 'quick' : (KINDS[span.kind] ?? 'op');
}

/** Its operation, its kernel, its cluster; all kernels of a cluster only when the cluster itself is meant. */
function isLit({ kind, ops, kernels, clusters }: Linked, span: Span): boolean {
  return (
    ops.has(span.name) ||
    kernels.has(span.name) ||
    clusters.has(span.name) ||
    (kind === 'cluster' && span.cluster !== null && clusters.has(span.cluster))
  );
}
