import { bytes, joined } from '../../base/format';
import { box, clip, words, type Measure, type Shape } from '../../base/shapes';
import type { Report, Span, Temporary } from '../../report/report';
import type { PreparedLane } from './prepare';

/** Intermediate arrays that are held between the kernels that make and read them, over the time of the kernels' spans. */
export interface Held {
  /** When it changes, in microseconds, in order. */
  times: Float64Array;
  /** Bytes from that time on. */
  bytes: Float64Array;
  /** What came after is not known. */
  end: number;
  peak: number;
  /** When the peak begins, and what it is made of, the largest first. */
  at: number;
  arrays: readonly { name: string; bytes: number }[];
}

/** Of more a picture has no room, and a report that comes four times a second no time. */
const MOST = 20_000;

interface Stretch {
  start: number;
  end: number;
  value: Temporary;
}

/** Pure: null where no kernel that makes an intermediate array was timed. */
export function heldOf(report: Report, lanes: readonly PreparedLane[]): Held | null {
  const spans = lanes.find(({ name }) => name === 'kernels')?.spans ?? [];
  const stretches = stretchesOf(report, spans);
  if (stretches.length === 0) {
    return null;
  }
  // What ends at a time makes room before something else begins.
  const changes = stretches
    .flatMap(({ start, end, value }) => [
      { time: start, by: value.bytes },
      { time: end, by: -value.bytes }
    ])
    .sort((a, b) => a.time - b.time || a.by - b.by);
  const times = Float64Array.from(changes, ({ time }) => time);
  const sums = new Float64Array(changes.length);
  let [now, peak, at] = [0, 0, 0];
  changes.forEach(({ time, by }, index) => {
    sums[index] = now += by;
    if (now > peak) {
      [peak, at] = [now, time];
    }
  });
  const names = new Map(report.ops.map(op => [`${op.plan}\n${op.name}`, op.called || op.written]));
  const arrays = stretches
    .filter(({ start, end }) => start <= at && at < end)
    .map(({ value }) => ({
      name: names.get(`${value.plan}\n${value.producer}`) ?? value.name,
      bytes: value.bytes
    }))
    .sort((a, b) => b.bytes - a.bytes);
  return { times, bytes: sums, end: times.at(-1) ?? 0, peak, at, arrays };
}

/** Of each run of a cluster's kernels: from the kernel that makes a value to the last one that reads it. */
function stretchesOf(report: Report, spans: readonly Span[]): Stretch[] {
  const kernels = new Map(report.ops.map(op => [`${op.plan}\n${op.name}`, op.kernel]));
  const values = new Map<string, Temporary[]>();
  for (const value of report.temporaries) {
    const key = `${value.plan}\n${value.cluster ?? ''}`;
    values.set(key, [...(values.get(key) ?? []), value]);
  }
  const found: Stretch[] = [];
  const runs = new Map<string, Map<string, Span>>();
  const close = (key: string): void => {
    const ran = runs.get(key);
    const spanOf = ({ plan }: Temporary, op: string): Span | undefined => ran?.get(kernels.get(`${plan}\n${op}`) ?? '');
    for (const value of (ran && values.get(key)) ?? []) {
      const made = spanOf(value, value.producer);
      if (made) {
        const readers = value.consumers.map(op => spanOf(value, op)).filter(span => span !== undefined);
        const end = Math.max(...[made, ...readers].map(({ start, duration }) => start + duration));
        found.push({ start: made.start, end, value });
      }
    }
    runs.delete(key);
  };
  for (const span of spans) {
    const key = `${span.plan}\n${span.cluster ?? ''}`;
    if (!values.has(key)) {
      continue;
    }
    if (found.length > MOST) {
      return found;
    }
    if (runs.get(key)?.has(span.name)) {
      close(key); // the cluster runs again
    }
    const ran = runs.get(key) ?? new Map<string, Span>();
    runs.set(key, ran.set(span.name, span));
  }
  [...runs.keys()].forEach(close);
  return found;
}

/** "3.2 MB at most: X @ W 1.6 MB, p 1.6 MB" */
export function heldText({ peak, arrays }: Held): string {
  const most = arrays.slice(0, 2).map(({ name, bytes: size }) => `${name} ${bytes(size)}`);
  const rest = arrays.length > 2 ? `${arrays.length - 2} more` : '';
  return `${bytes(peak)} at most: ${joined(', ', ...most, rest)}`;
}

const TALL = 24;
export const HELD_HEIGHT = TALL + 20;

/** Pure: how much is held at each pixel, with the peak's words below. */
export function layoutHeld(
  held: Held,
  top: number,
  left: number,
  right: number,
  { x, time }: { x: (time: number) => number; time: (x: number) => number },
  measure: Measure,
  width: number
): Shape[] {
  const shapes: Shape[] = [words(0, left ? top + 11 : top - 4, 'memory', 'name', 'text')];
  const floor = top + TALL;
  // As far as it is known.
  const known = Math.max(left, Math.min(right, x(held.end)));
  shapes.push({ shape: 'stroke', path: `M${left} ${floor + 0.5}H${known}`, ink: 'line2' });
  let place = 0;
  let now = 0;
  let bar: { from: number; to: number; tall: number } | null = null;
  const draw = (): void => {
    if (bar && bar.tall > 0) {
      shapes.push(box(bar.from, floor - bar.tall, bar.to - bar.from, bar.tall, { fill: 'muted', opacity: 0.55 }));
    }
  };
  for (let pixel = left; pixel < right; pixel++) {
    let most = now;
    const until = time(pixel + 1);
    for (; place < held.times.length && (held.times[place] ?? 0) <= until; place++) {
      now = held.bytes[place] ?? 0;
      most = Math.max(most, now);
    }
    const tall = most > 0 ? Math.max(1, Math.round((most / held.peak) * TALL)) : 0;
    if (bar && bar.tall === tall) {
      bar.to = pixel + 1;
    } else {
      draw();
      bar = { from: pixel, to: pixel + 1, tall };
    }
  }
  draw();
  shapes.push(words(width, top + 11, bytes(held.peak), 'name', 'text', 'right'));
  const text = clip(heldText(held), right - left, 'note', measure);
  const from = Math.max(left, Math.min(x(held.at), right - measure(text, 'note')));
  shapes.push(words(from, floor + 13, text, 'note', 'muted'));
  return shapes;
}
