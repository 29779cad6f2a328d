import type { Request } from './kernel';

/** The messages of the wire in docs/reference/report-format.md; `kind` names a class of jitlab/events.py. */

/** Any event. The panel reads the two below and counts the rest. */
export interface Event {
  kind: string;
  seq: number;
  /** Of the event, where it is not that of its batch. */
  cell?: string;
}

/** Twin of CellStarted. */
export interface CellStarted extends Event {
  kind: 'cell-started';
  execution_count: number;
  source: string;
  start_ns: number;
}

/** Twin of CellFinished. */
export interface CellFinished extends Event {
  kind: 'cell-finished';
  execution_count: number;
  duration_ns: number;
  error: string;
}

/** Events `first` to `last`. Of very many only some are told; `counts` has the numbers of the others, by cell and kind. */
export interface Batch {
  op: 'batch';
  cell: string | null;
  first: number;
  last: number;
  events: Event[];
  counts?: Record<string, Record<string, number>>;
  /** Events that no picture shows yet. */
  behind?: number;
}

export type FromKernel =
  | { op: 'hello'; epoch: string; last: number; behind?: number }
  | Batch
  /** `mark`: how many of the cell's events it holds; `order`: later runs have a higher one. */
  | {
      op: 'report';
      cell: string | null;
      report: unknown;
      mark?: number;
      order?: number;
      behind?: number;
    }
  | { op: 'reply'; id: number; body: unknown }
  | { op: 'paused' }
  | { op: 'job'; [field: string]: unknown };

export type ToKernel =
  | { op: 'resume'; epoch: string; since: number; have: Record<string, number> }
  | { op: 'pause' }
  /** Turns `%jit` on or off; without `on` it asks. The answer comes as a message of the same name. */
  | { op: 'switch'; on?: boolean }
  | { op: 'request'; id: number; body: Request };

const OPS: readonly string[] = ['hello', 'batch', 'report', 'reply', 'paused', 'job'];

export function isFromKernel(value: unknown): value is FromKernel {
  const op = (value as { op?: unknown } | null | undefined)?.op;
  return typeof op === 'string' && OPS.includes(op);
}

export function isCellStarted(event: Event): event is CellStarted {
  return event.kind === 'cell-started';
}

export function isCellFinished(event: Event): event is CellFinished {
  return event.kind === 'cell-finished';
}
