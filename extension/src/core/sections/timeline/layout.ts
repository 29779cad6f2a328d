import { bytes, duration, grouped, joined, lines } from '../../base/format';
import type { Span } from '../../report/report';
import { box, clip, words, type Box, type Ink, type Mark, type Measure } from '../../base/shapes';
import type { Picture, Shape } from '../../base/shapes';
import { HELD_HEIGHT, layoutHeld, type Held } from './memory';
import { firstEndingAfter, type PreparedLane, type TimeWindow } from './prepare';

export interface TimelineOptions {
  width: number;
  measure: Measure;
  window: TimeWindow;
  selected: TimeWindow | null;
  /** Whether a span is what is pointed at or pinned; null: nothing is. */
  lit: ((span: Span) => boolean) | null;
  /** Lane and span under the keyboard's cursor. */
  cursor: SpanPlace | null;
  /** Drawn below the lanes. */
  held?: Held | null;
}

export interface SpanPlace {
  lane: number;
  span: number;
}

/** What stands below a lane's name: how operations beside compiled ones were timed (what is faster, the rounds say), and that no
 * GPU ran these kernels. */
const BELOW: Record<string, string> = { 'op by op': 'once, cold', 'simulated GPU': 'simulated' };
export const BAR = 14;
const TOP = 22;
const PAD = 6;
const NAMES = 13;
/** `→ 282 ms` in bold, and a gap. */
const TOTALS = 70;
const GAP = 8;
export function labelWidth(width: number): number {
  return width < 300 ? 0 : 76;
}

/** Lanes whose bars have names of their own beneath; of the others the lane's name says enough, or they stand on the bars. */
function namesHeight({ name, head, nests }: PreparedLane): number {
  return !nests && (head || NAMED.has(name)) ? NAMES : 0;
}

const SIMULATED = 'simulated GPU';
const NAMED: ReadonlySet<string> = new Set(['kernels', 'GPU', SIMULATED, 'host']);

/** `codegen quick` is what people know as the quick tier. */
export function laneTitle(name: string): string {
  return name.startsWith('codegen ') ? `${name.slice('codegen '.length)} tier` : name;
}

export function laneTop(lanes: readonly PreparedLane[], index: number, width: number): number {
  const names = labelWidth(width) ? 0 : 14;
  return lanes.slice(0, index).reduce((y, lane) => y + lane.depth * BAR + namesHeight(lane) + PAD + names, TOP + names);
}

const totalOf = ({ busy }: PreparedLane, goesOn: boolean): string => `${goesOn ? '→ ' : ''}${duration(busy / 1e6)}`;

/** Where bars end: the totals of all lanes have room beside them, at any zoom and in any font. */
export function rightEnd(lanes: readonly PreparedLane[], width: number, measure: Measure): number {
  const wide = lanes.map(lane => measure(totalOf(lane, true), lane.head ? 'name' : 'note') + GAP);
  return width - Math.ceil(Math.max(TOTALS, ...wide));
}

/** Where a time lies, and the time that lies there. */
export function axis(
  window: TimeWindow,
  width: number,
  right = width - TOTALS
): { x: (time: number) => number; time: (x: number) => number } {
  const left = labelWidth(width);
  const scale = Math.max(1, right - left) / (window.end - window.start);
  return { x: time => left + (time - window.start) * scale, time: x => window.start + (x - left) / scale };
}

/** Pure: spans in, bars out; what would fall on a pixel that is already filled is left out, so 100 000 spans cost what 1 000 do. */
export function layoutTimeline(lanes: readonly PreparedLane[], options: TimelineOptions): Picture {
  const { width, window, measure, selected } = options;
  const left = labelWidth(width);
  const right = rightEnd(lanes, width, measure);
  const scale = axis(window, width, right);
  const { x } = scale;
  const below = laneTop(lanes, lanes.length, width);
  const { held = null } = options;
  const height = below + (held ? HELD_HEIGHT : 2);
  const shapes: Shape[] = ticks(window, right - left, scale, height, measure);
  if (selected) {
    const [from, to] = [Math.max(left, x(selected.start)), Math.min(right, x(selected.end))];
    if (to > from) {
      shapes.push(box(from, TOP - 5, to - from, height - TOP + 4, { fill: 'link', opacity: 0.1 }));
      const path = `M${from} ${TOP - 6}V${height}M${to} ${TOP - 6}V${height}`;
      shapes.push({ shape: 'stroke', path, ink: 'link', thickness: 1.5 });
    }
  }
  lanes.forEach((lane, index) => {
    const top = laneTop(lanes, index, width);
    const type = lane.head ? 'name' : 'note';
    const ink = lane.head ? 'text' : 'muted';
    const room = left ? left - 6 : right;
    const title = left && lane.name === SIMULATED ? 'GPU' : laneTitle(lane.name);
    const head = clip(lane.head ? lane.group : title, room, type, measure);
    const x0 = lane.head || left === 0 ? 0 : 8;
    shapes.push(words(x0, left ? top + 11 : top - 4, head, type, ink));
    if (lane.head && lane.name !== lane.group && left) {
      shapes.push(words(8, top + 24, clip(title, room - 8, 'note', measure), 'note', 'muted'));
    }
    // eslint-disable-next-line no-unused-labels
    KERNEL: if (lane.name in BELOW && left) {
      shapes.push(words(8, top + 24, clip(BELOW[lane.name] ?? '', room - 8, 'note', measure), 'note', 'muted'));
    }
    shapes.push(words(width, top + 11, totalOf(lane, lane.end > window.end * 1.0001), type, ink, 'right'));
    const [first] = lane.spans;
    if (first && lane.dropped > 0 && first.start > window.start) {
      const [from, to] = [Math.max(left, x(0)), Math.min(right, x(first.start))];
      const text = `${grouped(lane.dropped)} earlier, not kept one by one`;
      const wide = measure(text, 'note');
      const fits = wide + 24 < to - from;
      const path = fits
        ? `M${from} ${top + BAR / 2}h8M${from + wide + 16} ${top + BAR / 2}H${to}`
        : `M${from} ${top + BAR / 2}H${to}`;
      shapes.push({ shape: 'stroke', path, ink: 'line2', dash: [3, 2.5] });
      if (fits) {
        shapes.push(words(from + 12, top + 11, text, 'note', 'muted'));
      }
    }
    shapes.push(...laneBars(lane, index, top, left, right, scale, options));
  });
  if (held) {
    shapes.push(...layoutHeld(held, below, left, right, scale, measure, width));
  }
  return { width, height, shapes };
}

/** The span at a point of the picture; the innermost where they are stacked. */
export function spanAt(
  lanes: readonly PreparedLane[],
  window: TimeWindow,
  width: number,
  px: number,
  py: number,
  right?: number
): SpanPlace | null {
  const { time, x } = axis(window, width, right);
  for (let index = 0; index < lanes.length; index++) {
    const lane = lanes[index];
    const top = laneTop(lanes, index, width);
    if (!lane || py < top || py > top + lane.depth * BAR + namesHeight(lane) || px < labelWidth(width)) {
      continue;
    }
    for (let depth = Math.min(lane.depth - 1, Math.floor((py - top) / BAR)); depth >= 0; depth--) {
      const row = lane.rows[depth] ?? new Int32Array();
      const at = row[firstEndingAfter(lane, row, time(px - 1))] ?? -1;
      if (at >= 0 && x(lane.starts[at] ?? 0) <= px + 1) {
        return { lane: index, span: at };
      }
    }
  }
  return null;
}

function laneBars(
  lane: PreparedLane,
  index: number,
  top: number,
  left: number,
  right: number,
  { x, time }: ReturnType<typeof axis>,
  { window, measure, lit, cursor }: TimelineOptions
): Shape[] {
  const bars: Shape[] = [];
  const above: Shape[] = [];
  const names: { x: number; room: number; text: string }[] = [];
  lane.rows.forEach((row, depth) => {
    const y = top + depth * BAR;
    let filled = -Infinity;
    let last: Box | null = null;
    for (let place = firstEndingAfter(lane, row, window.start); place < row.length; place++) {
      const at = row[place] ?? 0;
      const span = lane.spans[at];
      const began = lane.starts[at] ?? 0;
      if (!span || began > window.end) {
        break;
      }
      const from = Math.max(left, x(began));
      const to = Math.min(right, Math.max(x(lane.ends[at] ?? 0), x(began) + 1));
      if (to <= filled + 0.9) {
        // All that ends before the next pixel would be drawn over this one.
        place = Math.max(place, firstEndingAfter(lane, row, time(filled + 0.9), place) - 1);
        continue;
      }
      const mark = lane.marks[at] ?? 'op';
      const start = Math.max(from, filled);
      const wide = Math.max(0.75, to - start - (to - start > 3 ? 0.75 : 0));
      filled = to;
      if (last && last.mark === mark && wide < 2 && start - (last.x + last.width) < 0.8 && !last.radius) {
        last.width = start + wide - last.x; // bars too narrow to be told apart are one
      } else {
        last = box(start, y + 1, wide, BAR - 2, { mark });
        bars.push(last);
        if (wide >= 2) {
          last = null;
        }
      }
      if (lit?.(span)) {
        above.push(frame(start, y, wide, 'link'));
      }
      if (wide < 3) {
        continue;
      }
      const text = nameOf(span);
      if (lane.nests) {
        bars.push(...nameOn(mark, text, start, wide, y, measure));
      } else if (INSIDE.has(mark) && measure(text, 'note') + 6 < wide) {
        bars.push(words(start + 3, y + 11, text, 'note', 'text'));
      } else if (depth === 0 && text !== lane.name) {
        names.push({ x: start, room: wide, text });
      }
    }
  });
  if (cursor?.lane === index) {
    const [from, to] = [x(lane.starts[cursor.span] ?? 0), x(lane.ends[cursor.span] ?? 0)];
    if (to >= left && from <= right) {
      const start = Math.max(left, from);
      const wide = Math.max(1, Math.min(right, to) - start);
      const y = top + (lane.depths[cursor.span] ?? 0) * BAR;
      above.push(frame(start, y, wide, 'focus'));
    }
  }
  const below = namesHeight(lane) ? namesBelow(names, top + lane.depth * BAR + 10, right, measure) : [];
  return [...bars, ...above, ...below];
}

/** A bar's name, as much of it as has room, on a plain ground. */
function nameOn(mark: Mark, name: string, x: number, room: number, y: number, measure: Measure): Shape[] {
  const text = clip(name, room - 8, 'note', measure);
  if (text.length < Math.min(LEAST_LETTERS, name.length)) {
    return [];
  }
  const ground = INSIDE.has(mark) ? [] : [box(x + 2, y + 2, measure(text, 'note') + 4, BAR - 4, { fill: 'bg' })];
  return [...ground, words(x + 4, y + 11, text, 'note', 'text')];
}

/** Of a name that is cut, with the mark of the cut. */
const LEAST_LETTERS = 4;

/** Around a bar. */
function frame(x: number, y: number, width: number, stroke: Ink): Shape {
  return box(x - 1, y - 1, width + 2, BAR + 2, { stroke, thickness: 2 });
}

/** Of these the ground is plain, so that a name may stand on it. */
const INSIDE: ReadonlySet<Mark> = new Set<Mark>([
  ...(['op', 'launch', 'statement', 'copy'] as const),
  ...(['trace', 'retrace', 'capture', 'load'] as const)
]);

/** What a span is called: what ran by its own name, an operation by its type, what Python ran by its line. */
export function nameOf(span: Span): string {
  if (span.kind === 'statement') {
    return lines(span.lines) || span.name; // what it has besides is why, and by a word of jitlab's own
  }
  return span.kind === 'launch' || span.kind === 'codegen' || span.kind === 'load'
    ? span.name
    : span.label || span.name;
}

/** What a span is, how long it took, and of a copy its bytes, of a launch on a GPU what the host took to hand it over. */
export function spanTitle(span: Span): string {
  const { duration: took, bytes: size } = span;
  const speed = size && took ? (1e6 * size) / took : 0;
  return joined(
    ', ',
    `${nameOf(span)}  ${duration(took / 1e6)}`,
    size ? bytes(size) : '',
    speed > 0 && `${bytes(speed)}/s`,
    enqueuedText(span)
  );
}

/** What the host took to hand a launch to a GPU, apart from what ran; "" of others. */
export function enqueuedText({ enqueued }: Span): string {
  return enqueued ? `enqueued in ${duration(enqueued / 1e6)}` : '';
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
      shown.push(words(x, y, name.text, 'note', 'muted'));
    }
  }
  return shown;
}

function ticks(
  window: TimeWindow,
  room: number,
  { x }: ReturnType<typeof axis>,
  height: number,
  measure: Measure
): Shape[] {
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
      shapes.push(words(Math.max(half, at), 12, label, 'note', 'muted', 'center'));
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
