import { readChange, type Change } from '../../base/change';
import { isRecord, list, number, numbers, record, records, text } from '../../base/read';

export type Against = { baseline: string } | { run: number };

export interface ComparisonRow {
  name: string;
  /** Of a cluster. */
  color: number | null;
  kind: 'cell' | 'cluster' | 'host';
  state: 'same' | 'changed' | 'added' | 'removed';
  before: number | null;
  after: number | null;
  change: Change | null;
}

export interface Comparison {
  run: number;
  against: Against | null;
  rows: ComparisonRow[];
  planChanges: { cluster: string; text: string; lines: number[] }[];
  retraces: { before: number; after: number } | null;
  /** Timed calls of each side: of the earlier, then of the newer. */
  samples: number[];
  /** Those that each side is made of. */
  runs: number[][];
  /** What is missing until it can be told whether they differ; "" where nothing is. */
  needs: string;
  note: string;
}

/** The comparison in a reply; null where there is none to read. */
export function readComparison(reply: unknown): Comparison | null {
  const value = record(reply).comparison;
  if (!isRecord(value)) {
    return null;
  }
  const retraces = record(value.retraces);
  const [before, after] = [number(retraces.before), number(retraces.after)];
  return {
    run: number(value.run) ?? 0,
    against: readAgainst(value.against),
    rows: records(value.rows).map(readRow),
    planChanges: records(value.plan_changes).map(change => ({
      cluster: text(change.cluster),
      text: text(change.text),
      lines: numbers(change.lines)
    })),
    retraces: before === null || after === null ? null : { before, after },
    samples: numbers(list(value.samples)),
    runs: list(value.runs).map(numbers),
    needs: text(record(value.needs).text),
    note: text(value.note)
  };
}

function readRow(row: Record<string, unknown>): ComparisonRow {
  const [kind, state] = [text(row.kind), text(row.state)];
  return {
    name: text(row.name),
    color: number(row.color),
    kind: kind === 'cluster' || kind === 'host' ? kind : 'cell',
    state: state === 'changed' || state === 'added' || state === 'removed' ? state : 'same',
    before: number(row.before),
    after: number(row.after),
    change: readChange(row.change)
  };
}

function readAgainst(value: unknown): Against | null {
  const { baseline, run } = record(value);
  return typeof baseline === 'string' ? { baseline } : typeof run === 'number' ? { run } : null;
}
