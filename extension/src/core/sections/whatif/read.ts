import { readChange, type Change } from '../../base/change';
import { isRecord, list, number, numbers, record, records, text } from '../../base/read';

export type QuestionKind = 'cut' | 'fuse' | 'keep_out' | 'target';

/** One plan, as it was measured. */
export interface Side {
  seconds: number;
  low: number;
  high: number;
  kernels: number | null;
  clusters: number | null;
  bytes: number | null;
  temporaries: number | null;
  temporaryBytes: number | null;
  largestErrorUlp: number | null;
}

export interface PathStep {
  name: string;
  op: string;
  /** What the program calls it; '' where that is not known. */
  called: string;
  lines: number[];
  cluster: string | null;
  kernel: string | null;
}

/** What a what-if found: both plans, or what forbids the other one. */
export interface Answer {
  kind: QuestionKind;
  title: string;
  lines: number[];
  refusal: { code: string; text: string; path: PathStep[] } | null;
  change: Change | null;
  before: Side | null;
  after: Side | null;
  moved: string[];
  advice: string;
  /** Lines that stand for those from `first` to `last` of a file. */
  keep: { file: string; first: number; last: number; lines: string[] } | null;
  rounds: number | null;
  /** How long the calls took in the cell itself; null where nobody timed them. */
  inCell: { calls: number; seconds: number } | null;
  /** Why no lines keep it, where none do. */
  keepText: string;
  /** What makes the figures less sure: inputs that changed meanwhile. */
  note: string;
}

/** Each fused edge cut once, by seconds lost. */
export interface Sweep {
  edges: {
    producer: string;
    consumer: string;
    title: string;
    lines: number[];
    change: Change | null;
    beforeSeconds: number | null;
    afterSeconds: number | null;
    bytesMore: number | null;
  }[];
  tried: number;
  /** Edges there are; 0 where the answer does not say. */
  total: number;
  measurable: number;
  seconds: number | null;
  stopped: string | null;
  note: string;
}

const KINDS: readonly string[] = ['cut', 'fuse', 'keep_out', 'target'];

export function readAnswer(value: unknown): Answer | null {
  if (!isRecord(value)) {
    return null;
  }
  const kind = text(record(value.question).kind);
  const refusal = isRecord(value.refusal) ? value.refusal : null;
  const keep = isRecord(value.keep) ? value.keep : null;
  return {
    kind: KINDS.includes(kind) ? (kind as QuestionKind) : 'cut',
    title: text(value.title).replaceAll('`', ''),
    lines: numbers(value.lines),
    refusal: refusal && {
      code: text(refusal.code),
      text: text(refusal.text),
      path: records(refusal.path).map(step => ({
        name: text(step.name),
        op: text(step.op),
        called: text(step.called),
        lines: numbers(step.lines),
        cluster: text(step.cluster) || null,
        kernel: text(step.kernel) || null
      }))
    },
    change: readChange(value.change),
    before: readSide(value.before),
    after: readSide(value.after),
    moved: list(value.moved).map(text).filter(Boolean),
    advice: text(value.advice),
    keep: keep && {
      file: text(keep.file),
      first: number(keep.first) ?? 1,
      last: number(keep.last) ?? number(keep.first) ?? 1,
      lines: list(keep.lines).map(text)
    },
    rounds: number(value.rounds),
    inCell: readCalls(value.in_cell),
    keepText: text(value.keep_text),
    note: text(value.note)
  };
}

function readCalls(value: unknown): Answer['inCell'] {
  const { calls, seconds } = record(value);
  const [count, time] = [number(calls), number(seconds)];
  return count && time !== null ? { calls: count, seconds: time } : null;
}

export function readSweep(value: unknown): Sweep | null {
  return isRecord(value)
    ? {
        edges: records(value.edges).map(edge => ({
          producer: text(edge.producer),
          consumer: text(edge.consumer),
          title: text(edge.title),
          lines: numbers(edge.lines),
          change: readChange(edge.change),
          beforeSeconds: number(edge.before_seconds),
          afterSeconds: number(edge.after_seconds),
          bytesMore: number(edge.bytes_more)
        })),
        tried: number(value.tried) ?? 0,
        total: number(value.total) ?? 0,
        measurable: number(value.measurable) ?? 0,
        seconds: number(value.seconds),
        stopped: text(value.stopped) || null,
        note: text(value.note)
      }
    : null;
}

function readSide(value: unknown): Side | null {
  const side = record(value);
  const seconds = number(side.seconds);
  return seconds === null
    ? null
    : {
        seconds,
        low: number(side.low) ?? seconds,
        high: number(side.high) ?? seconds,
        kernels: number(side.kernels),
        clusters: number(side.clusters),
        bytes: number(side.bytes),
        temporaries: number(side.temporaries),
        temporaryBytes: number(side.temporary_bytes),
        largestErrorUlp: number(side.largest_error_ulp)
      };
}
