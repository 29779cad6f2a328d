/** The report of docs/reference/report-format.md, as the views have it; `read-report.ts` makes it of JSON. */
import type { Fix, Message } from '../base/messages';
import type { Position } from '../base/read';
import type * as records from './records';

export type { Position } from '../base/read';

export const REPORT_MIME = 'application/vnd.jitlab.report+json';

type Of<Name extends keyof typeof records> = ReturnType<(typeof records)[Name]>;

export interface Report extends Of<'readReport'> {
  kernels: Kernel[];
  /** When, with what and where it ran, in words; "" where the report does not say. */
  run: string;
  /** When that run began, with the offset of its clock; '' where it is not told. */
  at: string;
  verdict: Verdict;
  ops: Operation[];
  clusters: Cluster[];
  retraces: Retrace[];
  lanes: Lane[];
  history: History | null;
}

export type Boundary = Of<'readBoundary'>;
export type Checked = Of<'readChecked'>;
export type Fallback = Of<'readFallback'>;
export type History = Of<'readHistory'>;
export type Launch = Of<'readGpuLaunch'>;
export type Next = Of<'readAdvice'>;
export type Operation = Of<'readOp'>;
export type Peaks = Of<'readPeaks'>;
export type Reaching = Of<'readReaching'>;
export type Reason = Of<'readReason'>;
export type Source = Of<'readSource'>;
export type Statement = Of<'readStatement'>;
export type Temporary = Of<'readTemporary'>;
export type Traffic = Pick<Kernel, 'perTurn' | 'calls' | 'seconds' | 'bytesRead' | 'bytesWritten'>;

export interface Verdict extends Of<'readVerdict'> {
  /** Of one loop, the mean, where loops were asked for; else of the run. */
  seconds: number | null;
  /** Of the run of the cell itself. */
  runSeconds: number | null;
}

export interface Kernel extends Of<'readKernel'> {
  /** Of one on a GPU, its parts in order. */
  launches?: Launch[];
}

export interface Cluster extends Of<'readCluster'> {
  /** How many there are: more than are named where they were too many to be sent at once. */
  opCount: number;
  kernelCount: number;
}

export interface Retrace extends Omit<Of<'readTrace'>, 'fix' | 'done'> {
  fix: Fix | null;
  /** Why there is none, where the report says that it is done. */
  done: Message | null;
  /** Where the call stands. */
  site: Position | null;
}

export interface Lane extends Omit<Of<'readLane'>, 'total' | 'busy'> {
  /** Spans that there are; more than `spans` where they were too many to be sent at once. */
  total: number;
  busy?: number | null;
  /** How many `spans` there are, and when they ran, without making them; absent where they are made already. */
  times?: SpanTimes;
  spans: Span[];
}

export interface Span extends Of<'readSpan'> {
  plan: string;
  /** Microseconds in which the host handed a launch to a GPU, before it waited. */
  enqueued?: number | null;
}

/** In microseconds. */
export interface SpanTimes {
  count: number;
  start: (at: number) => number;
  duration: (at: number) => number;
}
