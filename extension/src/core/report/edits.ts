import { clean } from '../base/read';

/** How a cell's lines moved since it was compiled. */
export interface Edits {
  /** Where a compiled line stands now; lines that differ are not in it. Both count from 1. */
  now: ReadonlyMap<number, number>;
  /** Lines of the source now that are not what was compiled. */
  differ: readonly number[];
}

/** Beyond this many pairs of lines, those in the midst of an edit are paired only where they did not move. */
const MOST_PAIRS = 160_000;

/** Pure. The same lines in the same order, as many as there are; blanks at a line's end and at the end of the cell are no edit. */
export function editsOf(compiled: readonly string[], now: readonly string[]): Edits {
  const before = trimmed(compiled);
  const after = trimmed(now);
  const pairs = new Map<number, number>();
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) {
    pairs.set(start + 1, start + 1);
    start++;
  }
  let endBefore = before.length;
  let endAfter = after.length;
  while (endBefore > start && endAfter > start && before[endBefore - 1] === after[endAfter - 1]) {
    pairs.set(endBefore--, endAfter--);
  }
  for (const [from, to] of pairMiddle(before.slice(start, endBefore), after.slice(start, endAfter))) {
    pairs.set(start + from + 1, start + to + 1);
  }
  const kept = new Set(pairs.values());
  const differ = after.map((_, index) => index + 1).filter(line => !kept.has(line));
  if (differ.length === 0 && before.length > after.length) {
    differ.push(Math.min(start + 1, Math.max(1, after.length))); // lines were taken away here
  }
  return { now: pairs, differ };
}

/** The longest common subsequence of what lies between the equal head and tail. */
function pairMiddle(before: readonly string[], after: readonly string[]): [number, number][] {
  const rows = before.length;
  const columns = after.length;
  if (rows * columns > MOST_PAIRS) {
    return before.flatMap((line, index): [number, number][] => (line === after[index] ? [[index, index]] : []));
  }
  const longest = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1));
  const at = (row: number, column: number): number => longest[row]?.[column] ?? 0;
  for (let row = rows - 1; row >= 0; row--) {
    const line = longest[row];
    for (let column = columns - 1; line && column >= 0; column--) {
      line[column] =
        before[row] === after[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const pairs: [number, number][] = [];
  for (let row = 0, column = 0; row < rows && column < columns;) {
    if (before[row] === after[column]) {
      pairs.push([row++, column++]);
    } else if (at(row + 1, column) >= at(row, column + 1)) {
      row++;
    } else {
      column++;
    }
  }
  return pairs;
}

function trimmed(source: readonly string[]): string[] {
  const lines = source.map(line => clean(line).trimEnd());
  return lines.slice(0, lines.findLastIndex(line => line !== '') + 1);
}
