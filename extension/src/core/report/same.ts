import type { Report } from './report';

/** More than this is not looked through: drawing it again costs no more than the looking. */
const MOST = 20_000;

/** Whether two reports say the same, so that one can stand for the other and nothing is drawn again. */
export function sameReport(a: Report, b: Report): boolean {
  const size = ({ ops, boundaries, lanes }: Report): number =>
    lanes.reduce((sum, lane) => sum + (lane.times?.count ?? lane.spans.length), ops.length + boundaries.length);
  return size(a) === size(b) && size(a) <= MOST && same(a, b);
}

/** Of plain data: lists, objects, maps; what can only be called says nothing. */
function same(a: unknown, b: unknown): boolean {
  if (a === b || typeof a === 'function') {
    return true;
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return Number.isNaN(a) && Number.isNaN(b);
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((entry, index) => same(entry, b[index]));
  }
  if (a instanceof Map) {
    return b instanceof Map && a.size === b.size && [...a].every(([key, value]) => same(value, b.get(key)));
  }
  const [of, to] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(of);
  return keys.length === Object.keys(to).length && keys.every(key => key in to && same(of[key], to[key]));
}
