import { directionOf } from '../../base/change';
import { duration, grouped, inCalls, joined, lineRanges, some } from '../../base/format';
import { clean } from '../../base/read';
import type { History } from '../../report/report';
import { box, clip, words, type Ink, type Measure, type Picture, type Shape } from '../../base/shapes';
import { whisker } from '../whatif/layout';
import type { Change, Comparison, ComparisonRow } from '../../report/answers';

export type Against = { baseline: string } | { run: number };

const ROW = 30;
const HEAD = 32;
/** From this width on a row's words stand on one line. */
const WIDE = 460;
/** Beyond this a change is drawn at the edge: its word has the number. */
const MOST = 1.5;
const LEAST = 0.04;

/** Pure: a mark a row around *same*; the interval is its whisker, the band is what noise can hide. */
export function layoutComparison({ rows }: Comparison, width: number, measure: Measure): Picture {
  const label = Math.min(92, Math.max(...rows.map(({ name }) => measure(name, 'name'))) + 8);
  const value = Math.min(
    width * (width >= WIDE ? 0.5 : 0.44),
    Math.max(
      ...rows.map(row => (width >= WIDE ? measure(oneLine(row), 'name') : measure(wordOf(row), 'name'))),
      measure('0.00 → 0.00 ms', 'note')
    ) + 10
  );
  const [low, high] = extent(rows);
  const room = width - label - value - 12;
  const x = (part: number): number =>
    label + 6 + (room * (Math.min(high, Math.max(low, part)) - low)) / Math.max(high - low, 1e-9);
  const bottom = HEAD + rows.length * ROW - 14;
  const noise = noiseOf(rows);
  const shapes: Shape[] = [
    box(x(-noise), 16, Math.max(1, x(noise) - x(-noise)), bottom - 16, { fill: 'sunk' }),
    { shape: 'stroke', path: `M${x(0) + 0.5} 16V${bottom}`, ink: 'line2' },
    ...axisWords(x, low, high, measure)
  ];
  rows.forEach((row, index) => {
    const y = HEAD + index * ROW;
    const type = row.kind === 'cell' ? 'name' : 'body';
    shapes.push(words(0, y + 4, clip(row.name, label - 4, type, measure), type, 'text'));
    if (row.change) {
      shapes.push(...markOf(row.change, x, y));
    }
    shapes.push(...rowWords(row, width, y, value, measure));
  });
  return { width, height: bottom + 4, shapes };
}

/** "faster by 17.6 % ± 1.1", or what became of a part that only one of the runs has. */
export function wordOf({ state, change }: ComparisonRow): string {
  return change?.word ?? (state === 'added' ? 'new' : state === 'removed' ? 'gone' : 'too few calls to tell');
}

/** "11.9 ms → 9.8 ms" */
export function timesOf({ before, after }: ComparisonRow): string {
  return [before, after]
    .filter(seconds => seconds !== null)
    .map(duration)
    .join(' → ');
}

export function titleOf({ run, against }: Comparison): string {
  const other = against?.baseline ? `baseline “${against.baseline}”` : `run ${against?.run ?? 0}`;
  return `run ${run ?? 0}${against ? ` against ${other}` : ''}`;
}

/** "run 4", "runs 3–5" */
export function runsText(runs: readonly number[]): string {
  return `run${runs.length > 1 ? 's' : ''} ${lineRanges(runs)}`;
}

export function samplesNote({ samples, needs, rows }: Comparison): string {
  const [before = 0, now = 0] = samples;
  if (samples.length < 2 || needs !== null || rows.every(({ change }) => change === null)) {
    return '';
  }
  const counts =
    before === now ? `${some(now, 'timed call')} each` : `${some(before, 'timed call')} before, ${now} now`;
  return `${counts}; lines are 95 % intervals. A filled mark is a change, a ring may be chance.`;
}

/** Pure: what the figures are of, because the verdict's are of the whole run: "Times of one call, …; run 6 made 20 in 42.8 ms." */
export function timesNote(history: History | null, comparison: Comparison): string {
  const runs = [comparison.run, comparison.against?.run ?? null]
    .map(number => history?.runs.find(({ run }) => run === number))
    .filter(run => run !== undefined);
  const totals = runs
    .filter(({ calls, seconds }) => calls > 1 && seconds !== null)
    .map(({ run, calls, seconds }) => `run ${run} made ${grouped(calls)} in ${duration(seconds ?? 0)}`);
  return totals.length ? `Times of one call, slow outliers left out; ${totals.join(', ')}.` : 'Times of one call.';
}

/**
 * Pure: what this run can be compared with, the likeliest first: the newest baseline, then the runs before it, of which the
 * kernel takes as many to either side as it needs, then each of them.
 */
export function choicesOf(history: History): { value: string; text: string; against: Against | null }[] {
  const baselines = history.baselines.map(name => ({
    value: `baseline ${name}`,
    text: `baseline “${clean(name)}”`,
    against: { baseline: name }
  }));
  const runs = history.runs
    .filter(({ run, error }) => run !== history.run && error === null)
    .map(({ run, seconds, calls }) => ({
      value: `run ${run}`,
      text: `run ${run}${seconds === null ? '' : `, ${duration(seconds)}${inCalls(calls)}`}`,
      against: { run }
    }));
  if (runs[0] && runs.length === 1) {
    return [...baselines.reverse(), { ...runs[0], value: 'before', against: null }]; // later runs join the older side
  }
  const before = runs.length > 0 ? [{ value: 'before', text: 'the runs before', against: null }] : [];
  return [...baselines.reverse(), ...before, ...runs.reverse()];
}

function markOf(change: Change, x: (part: number) => number, y: number): Shape[] {
  const ink: Ink = { slower: 'slower', faster: 'faster', same: 'text' }[directionOf(change)] as Ink;
  const at = x(change.ratio - 1);
  return [
    ...whisker(x(change.low - 1), x(change.high - 1), y, ink),
    change.significant
      ? { shape: 'diamond', x: at, y, radius: 5, ink }
      : box(at - 3.5, y - 3.5, 7, 7, { radius: 3.5, fill: 'bg', stroke: ink, thickness: 1.5 })
  ];
}

function rowWords(row: ComparisonRow, width: number, y: number, room: number, measure: Measure): Shape[] {
  const strong = row.change?.significant === true || row.state === 'added' || row.state === 'removed';
  const type = strong ? 'name' : width >= WIDE ? 'body' : 'note';
  if (width >= WIDE) {
    return [words(width, y + 4, clip(oneLine(row), room, type, measure), type, 'text', 'right')];
  }
  return [
    words(width, y - 1, clip(wordOf(row), room, type, measure), type, 'text', 'right'),
    words(width, y + 12, clip(timesOf(row), room, 'note', measure), 'note', 'muted', 'right')
  ];
}

function oneLine(row: ComparisonRow): string {
  return joined(', ', timesOf(row), wordOf(row));
}

/** Which way is which, where there is room for it beside *same*. */
function axisWords(x: (part: number) => number, low: number, high: number, measure: Measure): Shape[] {
  const same = measure('same', 'note') / 2;
  const shapes: Shape[] = [words(x(0), 11, 'same', 'note', 'muted', 'center')];
  if (x(0) - x(low) > same + measure('← faster', 'note') + 6) {
    shapes.push(words(x(low), 11, '← faster', 'note', 'muted'));
  }
  if (x(high) - x(0) > same + measure('slower →', 'note') + 6) {
    shapes.push(words(x(high), 11, 'slower →', 'note', 'muted', 'right'));
  }
  return shapes;
}

/** The stretch of changes that is drawn: all intervals, and *same* with a little around it. */
function extent(rows: readonly ComparisonRow[]): [number, number] {
  const changes = rows.map(({ change }) => change).filter(change => change !== null);
  const low = Math.min(-LEAST, ...changes.map(change => change.low - 1));
  const high = Math.max(LEAST, ...changes.map(change => change.high - 1));
  const pad = 0.08 * (high - low);
  return [Math.max(-1, low - pad), Math.min(MOST, high + pad)];
}

/** As far as the intervals of what did not change reach; where all changed, the narrowest of them. */
function noiseOf(rows: readonly ComparisonRow[]): number {
  const wide = (change: Change): number => (change.high - change.low) / 2;
  const changes = rows.map(({ change }) => change).filter(change => change !== null);
  const still = changes.filter(({ significant }) => !significant).map(wide);
  return still.length ? Math.max(...still) : changes.length ? Math.min(...changes.map(wide)) : 0;
}
