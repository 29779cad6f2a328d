import { colorsOf, isByKernel, type ColorOf } from '../../report/colors';
import type { Cluster, Lane, Span } from '../../report/report';
import { clusterMark, type Mark } from '../../base/shapes';

/** A stretch of the axis, in microseconds. */
export interface TimeWindow {
  start: number;
  end: number;
}

/** A lane whose spans are sorted, and stacked where one lies within another. */
export interface PreparedLane {
  name: string;
  group: string;
  /** The first of its group: it bears the group's name. */
  head: boolean;
  dropped: number;
  spans: readonly Span[];
  starts: Float64Array;
  ends: Float64Array;
  depths: Uint8Array;
  /** For each depth the spans at it, in order; no two of them overlap. */
  rows: Int32Array[];
  depth: number;
  /** For each span the one that it lies in; -1: none. */
  parents: Int32Array;
  /** A thread that compiles: its bars are drawn as a flame, with their names on them. */
  nests: boolean;
  /** Microseconds in which something ran, also of what was not kept where the report says so. */
  busy: number;
  end: number;
  marks: Mark[];
}

const MOST_DEPTH = 8;
/** Three steps of a lesson's training loop. */
const MOST_AT_FIRST = 54;
/** Microseconds that a span may seem to begin before the end of the one before it. */
const ROUNDING = 0.05;
/** What was compiled; `first call` in reports of earlier versions. */
const COMPILING: ReadonlySet<string> = new Set(['compiling', 'first call']);

/** Done once a report; `layoutTimeline` is done at every move. Numbers are in flat arrays: a frame reads many of them. */
export function prepareLanes(lanes: readonly Lane[], clusters: readonly Cluster[]): PreparedLane[] {
  const colors = remembered(colorsOf({ clusters }));
  const several = isByKernel(clusters)
    ? new Set(clusters.flatMap(({ name, kernels }) => (kernels.length > 1 ? [name] : [])))
    : null;
  const groups = new Set<string>();
  return lanes.map(lane => {
    const head = !groups.has(lane.group);
    groups.add(lane.group);
    const inOrder = lane.spans.every((span, at) => at === 0 || compare(lane.spans[at - 1] ?? span, span) <= 0);
    const spans = inOrder ? lane.spans : [...lane.spans].sort(compare);
    const starts = new Float64Array(spans.length);
    const ends = new Float64Array(spans.length);
    const depths = new Uint8Array(spans.length);
    const counts = new Array<number>(MOST_DEPTH).fill(0);
    const parents = new Int32Array(spans.length);
    const open: { at: number; end: number }[] = [];
    let busy = 0;
    let reached = -Infinity;
    spans.forEach((span, at) => {
      const end = span.start + span.duration;
      while ((open.at(-1)?.end ?? Infinity) <= span.start + ROUNDING) {
        open.pop();
      }
      const depth = Math.min(open.length, MOST_DEPTH - 1);
      parents[at] = open.at(-1)?.at ?? -1;
      open.push({ at, end });
      starts[at] = span.start;
      ends[at] = end;
      depths[at] = depth;
      counts[depth] = (counts[depth] ?? 0) + 1;
      busy += Math.max(0, end - Math.max(span.start, reached));
      reached = Math.max(reached, end);
    });
    const rows = counts.filter(count => count > 0).map(count => new Int32Array(count));
    const filled = rows.map(() => 0);
    depths.forEach((depth, at) => {
      const row = rows[depth];
      if (row) {
        row[filled[depth] ?? 0] = at;
        filled[depth] = (filled[depth] ?? 0) + 1;
      }
    });
    return {
      name: lane.name,
      group: lane.group,
      head,
      dropped: lane.dropped,
      spans,
      starts,
      ends,
      depths,
      rows,
      depth: Math.max(1, rows.length),
      parents,
      nests: spans.some(({ kind }) => WHOLES.has(kind)),
      busy: lane.busy ?? (lane.dropped > 0 ? reached : busy),
      end: reached,
      marks: spans.map(span => markOf(span, colors, several))
    };
  });
}

export function wholeWindow(lanes: readonly PreparedLane[]): TimeWindow {
  let start = Infinity;
  let end = -Infinity;
  for (const lane of lanes) {
    start = Math.min(start, lane.starts[0] ?? Infinity);
    end = Math.max(end, lane.end);
  }
  return end > start ? { start: Math.min(0, start), end } : { start: 0, end: 1 };
}

/**
 * What the axis shows at first: the lanes that are to be compared, also where a first call took a hundred times as long.
 * Of very many spans it is a stretch in which each can be seen, where that cuts off all lanes or none.
 */
export function homeWindow(lanes: readonly PreparedLane[]): TimeWindow {
  const whole = wholeWindow(lanes);
  const compared = lanes.filter(lane => !COMPILING.has(lane.group));
  const home = wholeWindow(compared);
  const heads = compared.filter(lane => lane.name === lane.group);
  if (heads.length > 1 && heads.some(lane => lane.spans.length > MOST_AT_FIRST)) {
    const start = Math.max(0, ...heads.filter(lane => lane.dropped > 0).map(lane => lane.starts[0] ?? 0));
    const ends = heads.map(lane => {
      const first = Math.max(0, lastStartingBefore(lane, start));
      return lane.ends[Math.min(lane.spans.length, first + MOST_AT_FIRST) - 1] ?? start;
    });
    const end = Math.min(...ends.filter(time => time > start));
    const shown = heads.every(({ spans }) =>
      spans.some(span => span.start < end && span.start + span.duration > start)
    );
    // A lane that ends within it beside one that goes on would look as long as that one.
    const isWhole = ({ ends: all }: PreparedLane): boolean => (all.at(-1) ?? 0) <= end;
    return shown && (heads.every(isWhole) || !heads.some(isWhole)) ? { start, end } : home;
  }
  return compared.length && home.end < whole.end / 2 ? { start: home.start, end: home.end * 1.02 } : whole;
}

/** The last span that starts at or before a time; -1 where none does. */
export function lastStartingBefore({ starts }: PreparedLane, time: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((starts[middle] ?? Infinity) <= time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - 1;
}

/** The place in a row of the first span, from a place on, that ends after a time. */
export function firstEndingAfter({ ends }: PreparedLane, row: Int32Array, time: number, from = 0): number {
  let low = from;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[row[middle] ?? 0] ?? Infinity) <= time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function compare(a: Span, b: Span): number {
  return a.start - b.start || b.duration - a.duration;
}

/** Asked for each of 100 000 spans. */
function remembered(colorOf: ColorOf): ColorOf {
  const known = new Map<string, number | null>();
  return (cluster, kernel) => {
    const key = `${cluster ?? ''}\n${kernel ?? ''}`;
    let color = known.get(key);
    if (color === undefined) {
      color = colorOf(cluster, kernel);
      known.set(key, color);
    }
    return color;
  };
}

/** Kinds of spans that have a mark of their own name. */
const KINDS: ReadonlySet<string> = new Set([
  ...['host', 'statement', 'copy'],
  ...['trace', 'retrace', 'capture', 'passes', 'planning', 'codegen', 'load']
]);
const WHOLES: ReadonlySet<string> = new Set(['trace', 'retrace']);

/** What ran has its cluster's mark, or its kernel's, and then a launch of several kernels has none of theirs; what made it run has the grey of compile time. */
function markOf(span: Span, colors: ColorOf, several: ReadonlySet<string> | null): Mark {
  const color = colors(span.cluster, span.kind === 'kernel' ? span.name : null);
  const ran = span.kind === 'launch' || span.kind === 'kernel';
  if (ran && color !== null) {
    return span.kind === 'launch' && several?.has(span.cluster ?? '') ? 'launch' : clusterMark(color);
  }
  if (span.kind === 'to_gpu' || span.kind === 'to_host') {
    return 'copy';
  }
  return span.kind === 'codegen' && span.tier === 'quick' ? 'quick' : KINDS.has(span.kind) ? (span.kind as Mark) : 'op';
}
