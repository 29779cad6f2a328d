import { duration } from '../../base/format';
import type { Lane, Report } from '../../report/report';

/** Pure: what the heading of the section says, also when it is closed. */
export function timelineSummary({ lanes }: Report): string {
  const timed = lanes.filter(lane => countOf(lane) > 0);
  const heads = timed.filter(({ name, group }) => name === group);
  const shown = (heads.length ? heads : timed).slice(0, 2);
  const host = timed.filter(({ name }) => name === 'host'); // what op by op has, too, of a run that was compiled
  const of = (lane: Lane): Lane[] => (lane.name === 'compiled' ? [lane, ...host] : [lane]);
  const said = (lane: Lane): string => `${lane.name} ${duration(busyOf(lane) / 1e6)}`;
  return shown.map(lane => of(lane).map(said).join(' + ')).join(' · ') || 'nothing was timed';
}

/** Spans of a lane that are here. */
export function countOf(lane: Lane): number {
  return lane.times?.count ?? lane.spans.length;
}

/** Microseconds in which something ran, as `PreparedLane.busy`; without making a single span where their times are in order. */
export function busyOf(lane: Lane): number {
  return lane.busy ?? unionOf(lane) ?? sortedUnionOf(lane);
}

/** Null where the spans are not in order. */
function unionOf({ times, dropped }: Lane): number | null {
  let [busy, reached, last] = [0, -Infinity, -Infinity];
  for (let at = 0; at < (times?.count ?? 0); at++) {
    const start = times?.start(at) ?? 0;
    const end = start + (times?.duration(at) ?? 0);
    if (start < last) {
      return null;
    }
    last = start;
    busy += Math.max(0, end - Math.max(start, reached));
    reached = Math.max(reached, end);
  }
  return times ? (dropped > 0 ? reached : busy) : null;
}

function sortedUnionOf({ spans, dropped }: Lane): number {
  let [busy, reached] = [0, -Infinity];
  for (const { start, duration } of [...spans].sort((a, b) => a.start - b.start)) {
    busy += Math.max(0, start + duration - Math.max(start, reached));
    reached = Math.max(reached, start + duration);
  }
  return dropped > 0 ? reached : busy;
}
