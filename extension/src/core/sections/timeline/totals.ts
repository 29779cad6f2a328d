import { bytes, duration, grouped, joined, some } from '../../base/format';
import type { Report, Span } from '../../report/report';
import { nameOf } from './layout';
import { firstEndingAfter, type PreparedLane, type TimeWindow } from './prepare';

/** Bytes that a run of a cluster or a kernel moves, by its name and plan. */
export type Traffic = ReadonlyMap<string, number>;

const MOST_NAMES = 3;

export function trafficOf({ clusters, kernels }: Pick<Report, 'clusters' | 'kernels'>): Traffic {
  return new Map(
    [...clusters, ...kernels].map(part => [`${part.plan}\n${part.name}`, part.bytesRead + part.bytesWritten])
  );
}

/** Bytes that a span moved; 0 where that is not known. */
export function moved(traffic: Traffic, { kind, plan, name, bytes }: Span): number {
  if (kind !== 'launch' && kind !== 'kernel') {
    return bytes ?? 0;
  }
  return traffic.get(`${plan}\n${name}`) ?? traffic.get(`\n${name}`) ?? bytes ?? 0;
}

/** What the totals add up, of each span by its place: a selection is dragged over all of them ten times a second. */
interface Columns {
  traffic: Traffic;
  moved: Float64Array;
  /** What it is called, as a place in `names`. */
  name: Int32Array;
  names: string[];
}

const COLUMNS = new WeakMap<PreparedLane, Columns>();

function columnsOf(lane: PreparedLane, traffic: Traffic): Columns {
  const known = COLUMNS.get(lane);
  if (known?.traffic === traffic) {
    return known;
  }
  const places = new Map<string, number>();
  const name = Int32Array.from(lane.spans, span => {
    const text = nameOf(span);
    const place = places.get(text) ?? places.size;
    places.set(text, place);
    return place;
  });
  const movedBytes = Float64Array.from(lane.spans, span => moved(traffic, span));
  const made: Columns = { traffic, moved: movedBytes, name, names: [...places.keys()] };
  COLUMNS.set(lane, made);
  return made;
}

/** What ended within a stretch and what ran in it, a sentence a lane; lanes where nothing ran are left out. */
export function totals(
  lanes: readonly PreparedLane[],
  window: TimeWindow,
  traffic: Traffic = NO_TRAFFIC
): { lane: string; text: string; names: string }[] {
  return lanes.flatMap(lane => {
    const { moved: bytesOf, name, names } = columnsOf(lane, traffic);
    const { starts, ends, parents } = lane;
    const times = new Float64Array(names.length);
    let ended = 0;
    let busy = 0;
    let sum = 0;
    let within = 0; // of what moved, by the share of each span that lies in the stretch: what the rate is of
    lane.rows.forEach((row, depth) => {
      let reached = -Infinity;
      for (let place = firstEndingAfter(lane, row, window.start); place < row.length; place++) {
        const at = row[place] ?? 0;
        const start = starts[at] ?? 0;
        const end = ends[at] ?? 0;
        if (start >= window.end) {
          break;
        }
        const from = Math.max(window.start, start);
        const to = Math.min(window.end, end);
        if (to <= from) {
          continue;
        }
        within += ((bytesOf[at] ?? 0) * (to - from)) / (end - start);
        if (end <= window.end) {
          ended++;
          sum += bytesOf[at] ?? 0;
        }
        if (depth === 0) {
          busy += Math.max(0, to - Math.max(from, reached));
          reached = Math.max(reached, to);
        }
        // What lies in a span is that one's no more.
        const [own, parent] = [name[at] ?? 0, parents[at] ?? -1];
        times[own] = (times[own] ?? 0) + to - from;
        if (parent >= 0) {
          const outer = name[parent] ?? 0;
          times[outer] = (times[outer] ?? 0) - Math.max(0, Math.min(to, ends[parent] ?? 0) - from);
        }
      }
    });
    if (busy === 0) {
      return [];
    }
    const facts = [
      `${grouped(ended)} of ${some(lane.spans.length, 'span')} ended`,
      `${duration(busy / 1e6)} busy`,
      sum ? bytes(sum) : '',
      within ? `${bytes((within / busy) * 1e6)}/s` : ''
    ];
    const longest = longestOf(times).map(place => names[place] ?? '');
    const rest = times.reduce((count, time) => count + (time > 0 ? 1 : 0), 0) - longest.length;
    return [
      {
        lane: lane.name,
        text: joined(' · ', ...facts),
        names: lane.name === longest[0] ? '' : longest.join(', ') + (rest > 0 ? ` and ${rest} more` : '')
      }
    ];
  });
}

const NO_TRAFFIC: Traffic = new Map();

/** Places of the greatest, the first of equals first. */
function longestOf(times: Float64Array): number[] {
  const longest: number[] = [];
  times.forEach((time, place) => {
    if (time > 0 && (longest.length < MOST_NAMES || time > (times[longest[MOST_NAMES - 1] ?? 0] ?? 0))) {
      const at = longest.findIndex(other => (times[other] ?? 0) < time);
      longest.splice(at < 0 ? longest.length : at, 0, place);
      longest.length = Math.min(longest.length, MOST_NAMES);
    }
  });
  return longest;
}
