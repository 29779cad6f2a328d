import type { Request } from './kernel';

/** The messages of the wire in docs/reference/report-format.md; `kind` names a class of jitlab/events.py. */

/** File or cell, line, column, end line, end column. */
export type Span = [string, number, number, number, number];

/** Any event. The panel reads the first two below and counts the rest. */
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

/** Twin of Message: of the table that the kernel and the panel read. */
export interface Coded {
  code: string;
  args: Record<string, unknown>;
}

/** Twin of Traced. */
export interface Traced extends Event {
  kind: 'traced';
  function: string;
  trace: number;
  causes: string[];
  argument: string;
  before: string;
  after: string;
  lines: Span[];
  fix: Coded | null;
  operations: number;
  start_ns: number;
  duration_ns: number;
  proof: string;
  done: Coded | null;
  rule: string;
  changes: [string, string, string, string][];
  site: [string, number];
  definition: string;
  renews: boolean;
  same: [string, string][];
  same_count: number;
  fixed_at: [string, number];
}

/** Twin of TraceCharged. */
export interface TraceCharged extends Event {
  kind: 'trace-charged';
  function: string;
  trace: number;
  spent_ns: number;
}

/** Twin of VariantMade. */
export interface VariantMade extends Event {
  kind: 'variant-made';
  function: string;
  trace: number;
  cluster: string;
  cause: string;
  argument: string;
  before: string;
  after: string;
  lines: Span[];
  start_ns: number;
  duration_ns: number;
}

/** Twin of PassRan. */
export interface PassRan extends Event {
  kind: 'pass-ran';
  function: string;
  trace: number;
  name: string;
  nodes_before: number;
  nodes_after: number;
  start_ns: number;
  duration_ns: number;
}

/** Twin of PlanMade. */
export interface PlanMade extends Event {
  kind: 'plan-made';
  function: string;
  trace: number;
  target: string;
  plan: Record<string, unknown>;
  start_ns: number;
  duration_ns: number;
}

/** Twin of ProgramCompiled. */
export interface ProgramCompiled extends Event {
  kind: 'program-compiled';
  function: string;
  trace: number;
  cluster: string;
  target: string;
  program: string;
  tier: string;
  origin: string;
  start_ns: number;
  duration_ns: number;
}

/** Twin of FunctionCalled. */
export interface FunctionCalled extends Event {
  kind: 'function-called';
  function: string;
  trace: number;
  start_ns: number;
  duration_ns: number;
}

/** Twin of ClusterRan. */
export interface ClusterRan extends Event {
  kind: 'cluster-ran';
  function: string;
  trace: number;
  cluster: string;
  start_ns: number;
  duration_ns: number;
  kernels_ns: number[];
  scratch_bytes: number;
}

/** Twin of HostOperationRan. */
export interface HostOperationRan extends Event {
  kind: 'host-operation-ran';
  function: string;
  trace: number;
  operation: string;
  op: string;
  start_ns: number;
  duration_ns: number;
}

/** Twin of ArrayCopied. */
export interface ArrayCopied extends Event {
  kind: 'array-copied';
  function: string;
  trace: number;
  cluster: string;
  argument: string;
  bytes: number;
  start_ns: number;
  duration_ns: number;
}

/** Twin of OperationRan. */
export interface OperationRan extends Event {
  kind: 'operation-ran';
  function: string;
  trace: number;
  operation: string;
  op: string;
  start_ns: number;
  duration_ns: number;
}

/** Twin of Compared. */
export interface Compared extends Event {
  kind: 'compared';
  rounds: number;
  numpy_ns: number;
  compiled_ns: number;
  largest_error: number;
}

/** Twin of Repeated. */
export interface Repeated extends Event {
  kind: 'repeated';
  loops: number;
  loop_ns: number[];
  left_out: string[];
}

/** Twin of NumericsChecked; `numerics` as in the report. */
export interface NumericsChecked extends Event {
  kind: 'numerics-checked';
  numerics: Record<string, unknown>[];
}

/** Twin of StatementRan. */
export interface StatementRan extends Event {
  kind: 'statement-ran';
  reason: string;
  text: string;
  lines: Span[];
  start_ns: number;
  duration_ns: number;
  met: string[];
}

/** Twin of ValueFrozen. */
export interface ValueFrozen extends Event {
  kind: 'value-frozen';
  function: string;
  what: string;
  lines: Span[];
}

/** Twin of LoopKept. */
export interface LoopKept extends Event {
  kind: 'loop-kept';
  function: string;
  lines: Span[];
  code: string;
  text: string;
  iterations: number;
}

/** Twin of DumpWritten. */
export interface DumpWritten extends Event {
  kind: 'dump-written';
  path: string;
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
