import { bytes, duration, fileName, joined, lines, sentence, some } from '../../base/format';
import { box, words, type Ink, type Measure, type Paint, type Picture, type Shape } from '../../base/shapes';
import type { Answer, PathStep, Side, Sweep } from '../../report/answers';

const LABEL = 64;
const ROW = 21;

/** Pure: as built (full) over changed (dashed) on one scale, with their 95 % intervals. */
export function layoutAnswer(before: Side, after: Side, width: number, measure: Measure): Picture {
  const texts = apart(before.seconds, after.seconds);
  const value = Math.max(...texts.map(text => measure(text, 'name'))) + 10;
  const scale = (width - LABEL - value) / Math.max(before.high, after.high, before.seconds, after.seconds, 1e-12);
  const shapes: Shape[] = [];
  [before, after].forEach((side, index) => {
    const y = 4 + index * ROW;
    const paint: Paint = index ? { fill: 'bg', stroke: 'text', dash: [3, 2] } : { fill: 'line2' };
    shapes.push(
      words(0, y + 10, index ? 'changed' : 'as built', 'note', 'muted'),
      box(LABEL + 0.5, y + 0.5, Math.max(1, side.seconds * scale - 1), 11, paint),
      ...whisker(LABEL + side.low * scale, LABEL + side.high * scale, y + 6, 'text'),
      words(width, y + 11, texts[index] ?? '', index ? 'name' : 'body', 'text', 'right')
    );
  });
  return { width, height: 4 + 2 * ROW, shapes };
}

/** Two times with as many digits as tell them apart, three at most. */
export function apart(before: number, after: number): [string, string] {
  const [old, now] = [duration(before), duration(after)];
  return old === now && before !== after ? [fine(before), fine(after)] : [old, now];
}

function fine(seconds: number): string {
  const [factor, unit] = seconds >= 1 ? [1, 's'] : seconds >= 1e-4 ? [1e3, 'ms'] : [1e6, 'µs'];
  return `${(seconds * factor).toPrecision(3)} ${unit}`;
}

/** "about 2 s": an estimate has one digit. */
export function about(seconds: number): string {
  const [factor, unit] = seconds >= 0.95 ? [1, 's'] : [1e3, 'ms'];
  const value = seconds * factor;
  return `about ${value >= 10 ? Math.round(value) : Number(value.toPrecision(1))} ${unit}`;
}

/** An interval: a line with two ends. */
export function whisker(low: number, high: number, y: number, ink: Ink): Shape[] {
  const path = `M${low} ${y}H${high}M${low} ${y - 4}v8M${high} ${y - 4}v8`;
  return [{ shape: 'stroke', path, ink, thickness: 1.5 }];
}

/** Pure: what moved, as [what, as built, changed]; unknown figures are left out. */
export function movedRows({ before, after }: Answer): [string, string, string][] {
  if (!before || !after) {
    return [];
  }
  const [old, now] = [before, after].map(({ largestErrorUlp: error, ...side }) => [
    bytes(side.bytes),
    `${side.temporaries}${side.temporaryBytes ? ` (${bytes(side.temporaryBytes)})` : ''}`,
    String(side.kernels),
    String(side.clusters),
    error === null ? '' : `${error >= 100 ? error.toFixed(0) : Number(error.toPrecision(2))} ULP`
  ]);
  return ['memory traffic', 'intermediate arrays', 'kernels', 'clusters', 'largest error']
    .map((what, at): [string, string, string] => [what, old?.[at] ?? '', now?.[at] ?? ''])
    .filter(([what, was, is]) => was && is && (what !== 'clusters' || was !== is));
}

/** Pure: the measurable edges, most time lost first, and how many make no difference. */
export function sweepRows(sweep: Sweep): { rows: Sweep['edges']; others: number } {
  const rows = sweep.edges.filter(({ change }) => change.significant);
  return { rows, others: Math.max(0, sweep.tried - rows.length) };
}

/** Pure: what to do, in one sentence: the split that saves most, else that the fusions are worth it. */
export function sweepAdvice(sweep: Sweep): string {
  const { rows } = sweepRows(sweep);
  const best = rows.filter(({ change }) => change.ratio < 1).sort((a, b) => a.change.ratio - b.change.ratio)[0];
  if (best) {
    const saved = duration(best.beforeSeconds - best.afterSeconds);
    return sentence(`${best.title || `Split ${best.producer} from ${best.consumer}`}: it saves ${saved} in every run`);
  }
  const tried = sweep.tried < sweep.total ? 'split that was tried' : 'split';
  const worst = rows[0];
  return worst
    ? `Keep the fusions: no ${tried} saves time, and the worst one loses ${duration(worst.afterSeconds - worst.beforeSeconds)}.`
    : `Leave it: no ${tried} makes a measurable difference.`;
}

/** "+5.3 ms" */
export function lost(before: number, after: number): string {
  return `${after < before ? '−' : '+'}${duration(Math.abs(after - before))}`;
}

/** "+54 %" */
export function byPercent(ratio: number): string {
  const part = Math.round((ratio - 1) * 100);
  return part === 0 ? '< 1 %' : `${part < 0 ? '−' : '+'}${Math.abs(part)} %`;
}

/** What the times are of, and how long the same took in the cell, where the verdict counts it. */
export function roundsNote({ rounds, inCell }: Answer): string {
  if (!rounds) {
    return '';
  }
  const each = `Per call, compiled part only, warm: ${some(rounds, 'run')} of each, alternating; 95 % intervals`;
  return inCell
    ? `${each}. In the cell ${some(inCell.calls, 'call')} took ${duration(inCell.seconds)}, all included.`
    : `${each}.`;
}

/** Above the lines that keep a change: what they keep, and which lines they stand for. */
export function keepTitle({ keep }: Answer): string {
  if (!keep) {
    return '';
  }
  const where = keep.first === keep.last ? `line ${keep.first}` : `lines ${keep.first}–${keep.last}`;
  return `Code to make this permanent (${where} of ${fileName(keep.file)})`;
}

/** `scores · Exp · line 6`; of an operation that NumPy runs `t · Sin · line 7, run by NumPy`. */
export function stepText(step: PathStep): string {
  const where = joined(', ', lines(step.lines), step.cluster === null ? 'run by NumPy' : '');
  return joined(' · ', step.written || step.called || step.op || step.name, where);
}
