/** The messages of the wire in docs/report-format.md; `kind` names a class of jitlab/events.py. */

/** Any event. The panel reads the two below and counts the rest. */
export interface Event {
  kind: string;
  seq: number;
}

/** Twin of CellStarted. */
export interface CellStarted extends Event {
  kind: 'cell-started';
  execution_count: number;
}

/** Twin of CellFinished. */
export interface CellFinished extends Event {
  kind: 'cell-finished';
  execution_count: number;
  duration_ns: number;
  error: string;
}

export type FromKernel =
  | { op: 'hello'; epoch: string; last: number }
  | { op: 'batch'; cell: string | null; first: number; last: number; events: Event[] }
  | { op: 'report'; cell: string | null; report: unknown }
  | { op: 'reply'; id: number; body: unknown }
  | { op: 'paused' };

export type ToKernel =
  | { op: 'resume'; epoch: string; since: number }
  | { op: 'pause' }
  | { op: 'request'; id: number; body: Record<string, string> };

export function isFromKernel(value: unknown): value is FromKernel {
  const op = (value as { op?: unknown } | null | undefined)?.op;
  return op === 'hello' || op === 'batch' || op === 'report' || op === 'reply' || op === 'paused';
}

export function isCellStarted(event: Event): event is CellStarted {
  return event.kind === 'cell-started';
}

export function isCellFinished(event: Event): event is CellFinished {
  return event.kind === 'cell-finished';
}
