/** The report of docs/reference/report-format.md, as the views have it; `read-report.ts` makes it of JSON. */
import type { Fix, Message } from './messages';
import type { Checked } from './numerics';
import type { History, Source } from './sources';

export const REPORT_MIME = 'application/vnd.jitlab.report+json';

export interface Report {
  cell: Cell;
  /** When, with what and where it ran, in words; "" where the report does not say. */
  run: string;
  /** When that run began, with the offset of its clock; '' where it is not told. */
  at: string;
  verdict: Verdict;
  plans: Plan[];
  ops: Operation[];
  clusters: Cluster[];
  kernels: Kernel[];
  boundaries: Boundary[];
  retraces: Retrace[];
  fallbacks: Fallback[];
  statements: Statement[];
  frozen: Frozen[];
  loops: Loop[];
  lanes: Lane[];
  /** What was too big to be sent at once and comes when it is asked for; null where all is here. */
  summary: Summary | null;
  /** Every file that the positions speak of. */
  sources: Source[];
  temporaries: Temporary[];
  /** Of the last check beside NumPy; empty where none was made. */
  numerics: Checked[];
  history: History | null;
}

export interface Summary {
  ops: number;
  boundaries: number;
  spans: number;
  /** Of all kernels. */
  kernelSeconds: number | null;
  /** Operations of each cluster. */
  clusters: ReadonlyMap<string, number>;
  /** Values that reach memory, of each cluster. */
  temporaries: Reaching[];
  /** What passes from box to box: a cluster, or an operation of none. */
  edges: SummaryEdge[];
}

export interface Reaching {
  plan: string;
  cluster: string;
  count: number;
  bytes: number;
  /** Those that stay within the cluster. */
  inside: number;
  insideBytes: number;
}

export interface SummaryEdge {
  plan: string;
  producer: string;
  consumer: string;
  count: number;
  bytes: number;
}

export interface Cell {
  id: string;
  title: string;
  source: string[];
  running: boolean;
  error: string | null;
}

export interface Verdict {
  lead: string;
  operations: number;
  compiled: number;
  clusters: number;
  kernels: number;
  host: number;
  retraces: number;
  /** Run by Python; 0 where they took no share that is felt. */
  statements: number;
  statementSeconds: number | null;
  loops: number;
  /** Of one loop, the mean, where loops were asked for; else of the run. */
  seconds: number | null;
  /** Of the loops; null where the time is of the run alone. */
  deviation: number | null;
  /** Of the run of the cell itself. */
  runSeconds: number | null;
  numpySeconds: number | null;
  /** Both times are of one run each: long work is not repeated. */
  once: boolean;
  /** By the cost model, in one run; null where the report does not say. */
  bytesMoved: number | null;
  /** That fusion keeps from being moved. */
  bytesSaved: number | null;
  next: Next | null;
  /** What to do after that. */
  then: Next | null;
  /** Seconds that a first run waited for capture and compilation besides its own; null for any other. */
  firstRun: number | null;
  /** What `%%jit -n` measured, and what a first run waited for, as sentences; "" where there was none. */
  notes: string[];
  /** Which lines took longest, as it came: `more.ts` reads it. */
  slowest: unknown;
  /** Of the launches' time in code that better code has replaced since, 0 to 1. */
  quickShare: number;
}

export interface Next {
  text: string;
  code: string;
  why: string;
  section: string;
}

export interface Plan {
  name: string;
  function: string;
  trace: number;
  /** The plan that stands for this one: it differs in sizes and values only. */
  like: string;
}

export interface Reason {
  code: string;
  text: string;
}

/** File or cell, line, column, end line, end column. */
export interface Position {
  file: string;
  line: number;
  /** From and to, where it ends in the line in which it begins. */
  columns?: [number, number];
}

export interface Operation {
  name: string;
  /** What the program calls its value: `inv6`, else its expression; "" where nobody knows. */
  called: string;
  plan: string;
  op: string;
  cluster: string | null;
  kernel: string | null;
  reason: Reason | null;
  lines: Position[];
  shape: number[];
  dtype: string;
  inputs: string[];
  scope: string;
  seconds: number | null;
  /** The loop or branch whose body it is in; "" at the top. */
  parent: string;
  /** There: "then" or "else" of a branch, "test" or "body" of a loop. */
  side: string;
  /** Of a loop or branch its head as it is written, and how often a loop turns, in words; "" where that is not known. */
  loop: string;
  turns: string;
}

export interface Traffic {
  /** Of a loop whose turns nobody counted, one turn is. */
  perTurn: boolean;
  calls: number;
  seconds: number | null;
  bytesRead: number | null;
  bytesWritten: number | null;
  flops: number | null;
}

export interface Cluster extends Traffic {
  name: string;
  plan: string;
  color: number;
  ops: string[];
  kernels: string[];
  /** How many there are: more than are named where they were too many to be sent at once. */
  opCount: number;
  kernelCount: number;
  reason: Reason | null;
  lines: number[];
  /** "" where none was asked for. */
  device: string;
}

export interface Kernel extends Traffic {
  name: string;
  plan: string;
  cluster: string;
  ops: string[];
  kind: string;
  lines: number[];
  bound: string;
  ofPeak: number | null;
}

export interface Boundary {
  plan: string;
  producer: string;
  consumer: string;
  reason: Reason | null;
  bytes: number | null;
  wouldFuseIf: string | null;
}

/** A value inside a cluster that still reaches memory, and why. */
export interface Temporary {
  plan: string;
  cluster: string;
  name: string;
  producer: string;
  consumers: string[];
  /** A call. */
  bytes: number | null;
  /** Of the producer. */
  lines: Position[];
  /** Whether it leaves its cluster. */
  leaves: boolean;
  reason: Reason | null;
}

export interface Retrace {
  function: string;
  trace: number;
  cause: string;
  argument: string;
  before: string;
  after: string;
  lines: Position[];
  seconds: number | null;
  text: string;
  fix: Fix | null;
  /** Why there is none, where the report says that it is done. */
  done: Message | null;
  /** The fix in words, and what its replay on the recorded calls left: "…: 9 traces become 2, saves 1.8 s". */
  proof: string;
  /** Where the fix is written; "" where it says so itself. */
  place: string;
  first: boolean;
  /** Calls of this trace. */
  calls: number;
  /** Clusters that needed new machine code. */
  compiled: number;
  /** Where its seconds went: `capture`, `passes`, `planning`, `codegen`. */
  spent: { step: string; seconds: number }[];
  /** Every cause, the first one first. */
  changes: { cause: string; argument: string; before: string; after: string }[];
  /** Arguments that did not change: some of them, and how many there are. */
  same: { argument: string; text: string }[];
  sameCount: number;
  /** Where the call stands. */
  site: Position | null;
}

export interface Fallback {
  plan: string;
  op: string;
  name: string;
  lines: Position[];
  reason: Reason | null;
  seconds: number | null;
  calls: number;
}

/** A statement of a cell that Python ran. */
export interface Statement {
  text: string;
  reason: Reason | null;
  lines: Position[];
  seconds: number | null;
  calls: number;
}

/** A loop that was not rolled: its iterations were recorded one by one, or Python ran them. */
export interface Loop {
  text: string;
  reason: Reason | null;
  lines: Position[];
  iterations: number;
}

/** NumPy work on no tensor: it ran once, while the function was captured. */
export interface Frozen {
  function: string;
  what: string;
  lines: Position[];
}

export interface Lane {
  name: string;
  /** Lanes of a group were measured together: they begin at the same moment. */
  group: string;
  /** Spans that were not kept. */
  dropped: number;
  /** Spans that there are; more than `spans` where they were too many to be sent at once. */
  total: number;
  /** Microseconds in which something ran, kept and sent or not; null where the report does not say. */
  busy?: number | null;
  /** How many `spans` there are, and when they ran, without making them; absent where they are made already. */
  times?: SpanTimes;
  spans: Span[];
}

export interface SpanTimes {
  count: number;
  start: (at: number) => number;
  duration: (at: number) => number;
}

/** Start and duration in microseconds. */
export interface Span {
  name: string;
  label: string;
  kind: string;
  start: number;
  duration: number;
  cluster: string | null;
  plan: string;
  /** Of a copy; 0 where it is none. */
  bytes: number;
  /** Of a statement; of all else, its operation or kernel has them. */
  lines: number[];
}
