/** The one place that turns unknown JSON into a report. */
import { olderDone, olderFix, olderFlip, olderReason, olderTier } from './older';
import { isRecord, list, number, positionOf, record, records, text, type Json } from '../base/read';
import { HOLLOW } from '../base/shapes';
import * as parts from './records';
import type { Cluster, History, Lane, Operation, Report, Retrace, Span, Verdict } from './report';

const VERSION = 4;

/** A report, or the one sentence that says why it can't be shown. */
export function readReport(value: unknown): Report | string {
  if (!isRecord(value)) {
    return 'This output is not a jitlab report.';
  }
  if (number(value.version) === null || (number(value.version) ?? 0) > VERSION) {
    return `This report has version ${text(value.version) || 'unknown'}; this jitlab reads version ${VERSION}. Update jitlab to see it.`;
  }
  const { text: run, at } = parts.readRun(record(value.run));
  const { version } = value as { version: number };
  let { boundaries } = value;
  /* eslint-disable no-unused-labels -- a widget has the report of the jitlab that made it: its script drops what is labelled so */
  OLDER: if (version < 4) {
    boundaries = records(boundaries).map(olderFlip);
  }
  const report = parts.readReport({ ...value, boundaries });
  OLDER: if (version < 3) {
    [...report.boundaries, ...report.temporaries].forEach(olderReason);
  }
  const gone = new Set(report.plans.filter(({ givenUp }) => givenUp).map(({ name }) => name));
  const read: Report = {
    ...report,
    cell: { ...report.cell, error: readError(record(value.cell).error) },
    ...{ run, at },
    verdict: readVerdict(value.verdict),
    ops: readOperations(value.ops),
    clusters: records(value.clusters).map(value => readCluster(value, gone)),
    retraces: records(value.retraces).map(readRetrace),
    lanes: records(record(value.timeline).lanes).map(readLane),
    history: null
  };
  KERNEL: {
    read.history = readHistory(value.history); // a widget asks no kernel to compare, and says less of kernels on a GPU
    records(value.kernels).forEach(({ launches }, at) => {
      Object.assign(read.kernels[at] ?? {}, { launches: records(launches).map(parts.readGpuLaunch) });
    });
  }
  /* eslint-enable no-unused-labels */
  return read;
}

function readVerdict(value: unknown): Verdict {
  const verdict = parts.readVerdict(record(value));
  return { ...verdict, seconds: verdict.repeated?.mean ?? verdict.seconds, runSeconds: verdict.seconds };
}

/** Items of a part of a report that was asked for. */
export function readOperations(items: unknown): Operation[] {
  return records(items).map(readOperation);
}

/** Spans of a part, each with the lane that it is of. */
export function readSpans(items: unknown): { lane: string; span: Span }[] {
  return records(items).map(item => ({ lane: text(item.lane), span: readSpan(item) }));
}

/** Null where the report keeps none: a saved one, or of a kernel that was just started. */
export function readHistory(value: unknown): History | null {
  const baselines = list(record(value).baselines).filter(name => typeof name === 'string' && name !== ''); // sent back so
  return isRecord(value) ? { ...parts.readHistory(value), baselines: baselines as string[] } : null;
}

function readOperation(value: Json): Operation {
  const op = parts.readOp(value);
  op.loop ||= op.op === 'If' ? op.called : '';
  // eslint-disable-next-line no-unused-labels -- of a report of an earlier jitlab
  OLDER: {
    op.word ||= op.op;
    op.written ||= op.word;
  }
  return op;
}

/** `gone`: the plans that were given up. */
function readCluster(value: Json, gone: ReadonlySet<string>): Cluster {
  const cluster = parts.readCluster(value);
  return Object.assign(cluster, {
    color: gone.has(cluster.plan) ? HOLLOW : Math.abs(Math.trunc(cluster.color)) % 6,
    opCount: cluster.opCount ?? cluster.ops.length,
    kernelCount: cluster.kernelCount ?? cluster.kernels.length
  });
}

/** Version 1 had a fix as text, and without one the proof said that it is done. */
function readRetrace(value: Json): Retrace {
  const { fix: given, done, ...retrace } = parts.readTrace(value);
  const fix = given ? { ...given, form: given.args.form || 'words' } : olderFix(text(value.fix));
  const site = positionOf(value.site);
  return {
    ...retrace,
    fix,
    done: fix ? null : (done ?? olderDone(retrace.proof)),
    proof: fix ? retrace.proof : '',
    site: site.file ? site : null
  };
}

/** Spans are made when somebody first asks for them: of 100 000 that takes as long as the rest of a first picture. */
function readLane(value: Json): Lane {
  const given = records(value.spans);
  const lane = parts.readLane(value);
  let made: Span[] | null = null;
  return {
    ...lane,
    group: lane.group || lane.name,
    total: Math.max(lane.total ?? 0, given.length),
    times: {
      count: given.length,
      start: at => number(given[at]?.start) ?? 0,
      duration: at => Math.max(0, number(given[at]?.duration) ?? 0)
    },
    get spans() {
      return (made ??= given.map(readSpan));
    }
  };
}

function readSpan(value: Json): Span {
  const span = parts.readSpan(value);
  const read: Span = {
    ...span,
    tier: span.tier || olderTier(span.label),
    plan: span.plan ?? '',
    duration: Math.max(0, span.duration)
  };
  // eslint-disable-next-line no-unused-labels -- a widget has no timeline
  KERNEL: read.enqueued = number(value.enqueued);
  return read;
}

function readError(value: unknown): string | null {
  return value === null || value === undefined || value === '' ? null : text(value) || JSON.stringify(value);
}
