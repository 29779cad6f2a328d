import { bytes, duration, some } from '../format';
import type { Report, Span } from '../report';
import { nameOf } from './layout';
import { firstEndingAfter, type PreparedLane, type TimeWindow } from './prepare';

/** Bytes that a run of a cluster or a kernel moves, by its name and plan. */
export type Traffic = ReadonlyMap<string, number>;

const MOST_NAMES = 3;

export function trafficOf({ clusters, kernels }: Pick<Report, 'clusters' | 'kernels'>): Traffic {
  return new Map(
    [...clusters, ...kernels].map(part => [
      `${part.plan}\n${part.name}`,
      (part.bytesRead ?? 0) + (part.bytesWritten ?? 0)
    ])
  );
}

/** Bytes that a span moved; 0 where that is not known. */
export function moved(traffic: Traffic, { kind, plan, name, bytes }: Span): number {
  if (kind !== 'launch' && kind !== 'kernel') {
    return bytes;
  }
  return traffic.get(`${plan}\n${name}`) ?? traffic.get(`\n${name}`) ?? bytes;
}

/** What ended within a stretch and what ran in it, a sentence a lane; lanes where nothing ran are left out. */
export function totals(
  lanes: readonly PreparedLane[],
  window: TimeWindow,
  traffic: Traffic = new Map()
): { lane: string; text: string; names: string }[] {
  return lanes.flatMap(lane => {
    let ended = 0;
    let busy = 0;
    let sum = 0;
    const names = new Map<string, number>();
    lane.rows.forEach((row, depth) => {
      let reached = -Infinity;
      for (let place = firstEndingAfter(lane, row, window.start); place < row.length; place++) {
        const at = row[place] ?? 0;
        const [start, end] = [lane.starts[at] ?? 0, lane.ends[at] ?? 0];
        if (start >= window.end) {
          break;
        }
        const [from, to] = [Math.max(window.start, start), Math.min(window.end, end)];
        const span = lane.spans[at];
        if (to <= from || !span) {
          continue;
        }
        if (end <= window.end) {
          ended++;
          sum += moved(traffic, span);
        }
        if (depth === 0) {
          busy += Math.max(0, to - Math.max(from, reached));
          reached = Math.max(reached, to);
          const name = nameOf(span);
          names.set(name, (names.get(name) ?? 0) + to - from);
        }
      }
    });
    if (busy === 0) {
      return [];
    }
    const facts = [
      `${ended.toLocaleString('en-US')} of ${some(lane.spans.length, 'span')} ended`,
      `${duration(busy / 1e6)} busy`,
      sum ? bytes(sum) : '',
      sum ? `${bytes((sum / busy) * 1e6)}/s` : ''
    ];
    const longest = [...names].sort((a, b) => b[1] - a[1]).map(([name]) => name);
    const rest = longest.length - MOST_NAMES;
    return [
      {
        lane: lane.name,
        text: facts.filter(Boolean).join(' · '),
        names:
          lane.name === longest[0]
            ? ''
            : longest.slice(0, MOST_NAMES).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
      }
    ];
  });
}
