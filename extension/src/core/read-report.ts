/** The one place that turns unknown JSON into a report: what is missing or of another type becomes empty, never an error. */
import { some } from './format';
import { readNumerics } from './numerics';
import { olderDone, olderFix } from './older';
import { isRecord, list, number, numbers, record, records, text, texts } from './read';
import type {
  Boundary,
  Cluster,
  Kernel,
  Lane,
  Next,
  Operation,
  Position,
  Reason,
  Report,
  Retrace,
  Span,
  Summary,
  Temporary,
  Traffic,
  Verdict
} from './report';
import { readHistory, readSources } from './sources';

const VERSION = 2;

/** A report, or the one sentence that says why it can't be shown. */
export function readReport(value: unknown): Report | string {
  if (!isRecord(value)) {
    return 'This output is not a jitlab report.';
  }
  if (number(value.version) === null || (number(value.version) ?? 0) > VERSION) {
    return `This report has version ${text(value.version) || 'unknown'}; this jitlab reads version ${VERSION}. Update jitlab to see it.`;
  }
  const cell = record(value.cell);
  return {
    cell: {
      id: text(cell.id),
      title: text(cell.title),
      source: list(cell.source).map(text),
      running: cell.running === true,
      error: readError(cell.error)
    },
    run: text(record(value.run).text),
    at: text(record(value.run).at),
    verdict: readVerdict(record(value.verdict)),
    plans: records(value.plans).map(plan => ({
      name: text(plan.name),
      function: text(plan.function),
      trace: number(plan.trace) ?? 0,
      like: text(plan.like)
    })),
    ops: readOperations(value.ops),
    clusters: records(value.clusters).map(readCluster),
    kernels: readKernels(value.kernels),
    boundaries: records(value.boundaries).map(readBoundary),
    retraces: records(value.retraces).map(readRetrace),
    fallbacks: records(value.fallbacks).map(fallback => ({
      plan: text(fallback.plan),
      op: text(fallback.op),
      name: text(fallback.name),
      lines: readPositions(fallback.lines),
      reason: readReason(fallback.reason),
      seconds: number(fallback.seconds),
      calls: number(fallback.calls) ?? 0
    })),
    statements: records(value.statements).map(statement => ({
      text: text(statement.text),
      reason: readReason(statement.reason),
      lines: readPositions(statement.lines),
      seconds: number(statement.seconds),
      calls: number(statement.calls) ?? 0
    })),
    frozen: records(value.frozen).map(frozen => ({
      function: text(frozen.function),
      what: text(frozen.what),
      lines: readPositions(frozen.lines)
    })),
    loops: records(value.loops).map(loop => ({
      text: text(loop.text),
      reason: readReason(loop.reason),
      lines: readPositions(loop.lines),
      iterations: number(loop.iterations) ?? 0
    })),
    lanes: records(record(value.timeline).lanes).map(readLane),
    summary: readSummary(value.summary),
    sources: readSources(value.sources),
    temporaries: readTemporaries(value.temporaries),
    numerics: readNumerics(value.numerics),
    history: readHistory(value.history)
  };
}

export function readKernels(value: unknown): Kernel[] {
  return records(value).map(readKernel);
}

export function readTemporaries(value: unknown): Temporary[] {
  return records(value).map(temporary => ({
    plan: text(temporary.plan),
    cluster: text(temporary.cluster),
    name: text(temporary.name),
    producer: text(temporary.producer),
    consumers: list(temporary.consumers).map(text),
    bytes: number(temporary.bytes),
    lines: readPositions(temporary.lines),
    leaves: temporary.place === 'result',
    reason: readReason(temporary.reason)
  }));
}

function readSummary(value: unknown): Summary | null {
  if (!isRecord(value)) {
    return null;
  }
  const clusters = Object.entries(record(value.clusters));
  return {
    ops: number(value.ops) ?? 0,
    boundaries: number(value.boundaries) ?? 0,
    spans: number(value.spans) ?? 0,
    kernelSeconds: number(value.kernel_seconds),
    clusters: new Map(clusters.map(([name, part]) => [name, number(record(part).ops) ?? 0])),
    temporaries: records(value.temporaries).map(row => ({
      plan: text(row.plan),
      cluster: text(row.cluster),
      count: number(row.count) ?? 0,
      bytes: number(row.bytes) ?? 0,
      inside: number(row.inside) ?? 0,
      insideBytes: number(row.inside_bytes) ?? 0
    })),
    edges: records(value.edges).map(edge => ({
      plan: text(edge.plan),
      producer: text(edge.producer),
      consumer: text(edge.consumer),
      count: number(edge.count) ?? 0,
      bytes: number(edge.bytes) ?? 0
    }))
  };
}

function readVerdict(verdict: Record<string, unknown>): Verdict {
  const first = verdict.first_run;
  const loop = record(verdict.repeated);
  return {
    lead: text(verdict.lead),
    operations: number(verdict.operations) ?? 0,
    compiled: number(verdict.compiled) ?? 0,
    clusters: number(verdict.clusters) ?? 0,
    kernels: number(verdict.kernels) ?? 0,
    host: number(verdict.host) ?? 0,
    retraces: number(verdict.retraces) ?? 0,
    statements: number(verdict.statements) ?? 0,
    statementSeconds: number(verdict.statement_seconds),
    loops: number(verdict.loops) ?? 0,
    seconds: number(loop.mean) ?? number(verdict.seconds),
    deviation: number(loop.deviation),
    runSeconds: number(verdict.seconds),
    numpySeconds: number(verdict.numpy_seconds),
    once: verdict.compared_once === true,
    bytesMoved: number(verdict.bytes_moved),
    bytesSaved: number(verdict.bytes_saved),
    next: readNext(verdict.next),
    then: readNext(verdict.then),
    firstRun: number(record(first).seconds),
    slowest: verdict.slowest,
    notes: [verdict.repeated, first].map(note => text(record(note).text)),
    quickShare: number(record(first).quick_share) ?? 0
  };
}

/** Items of a part of a report that was asked for: operations or boundaries. */
export function readOperations(items: unknown): Operation[] {
  const positions = new Positions();
  return records(items).map(op => readOperation(op, positions));
}

/** Spans of a part, each with the lane that it is of. */
export function readSpans(items: unknown): { lane: string; span: Span }[] {
  return records(items).map(item => ({ lane: text(item.lane), span: readSpan(item) }));
}

export function readBoundaries(items: unknown): Boundary[] {
  return records(items).map(readBoundary);
}

function readBoundary(boundary: Record<string, unknown>): Boundary {
  return {
    plan: text(boundary.plan),
    producer: text(boundary.producer),
    consumer: text(boundary.consumer),
    reason: readReason(boundary.reason),
    bytes: number(boundary.bytes),
    wouldFuseIf: unmarked(boundary.would_fuse_if) || null
  };
}

function readNext(value: unknown): Next | null {
  return isRecord(value)
    ? { text: text(value.text), code: text(value.code), why: text(value.why), section: text(value.section) }
    : null;
}

function readOperation(op: Record<string, unknown>, positions: Positions): Operation {
  return {
    name: text(op.name),
    called: text(op.called),
    plan: text(op.plan),
    op: text(op.op),
    cluster: text(op.cluster) || null,
    kernel: text(op.kernel) || null,
    reason: readReason(op.reason),
    lines: positions.read(op.lines),
    shape: readShape(op.shape),
    dtype: text(op.dtype),
    inputs: texts(op.inputs),
    scope: text(op.scope),
    seconds: number(op.seconds),
    parent: text(op.parent),
    side: text(op.side),
    loop: text(op.loop) || (op.op === 'If' ? text(op.called) : ''),
    turns: 'iterations' in op ? turnsOf(number(op.iterations), op.ends_early === true) : ''
  };
}

function turnsOf(iterations: number | null, endsEarly: boolean): string {
  if (iterations === null) {
    return endsEarly ? 'until its test says no' : '';
  }
  return (endsEarly ? 'at most ' : '') + some(iterations, 'iteration');
}

function readCluster(cluster: Record<string, unknown>): Cluster {
  return {
    ...readTraffic(cluster),
    name: text(cluster.name),
    plan: text(cluster.plan),
    color: Math.abs(Math.trunc(number(cluster.color) ?? 0)) % 6,
    ops: texts(cluster.ops),
    kernels: texts(cluster.kernels),
    opCount: number(cluster.op_count) ?? list(cluster.ops).length,
    kernelCount: number(cluster.kernel_count) ?? list(cluster.kernels).length,
    reason: readReason(cluster.reason),
    lines: numbers(cluster.lines),
    device: text(cluster.device)
  };
}

function readKernel(kernel: Record<string, unknown>): Kernel {
  return {
    ...readTraffic(kernel),
    name: text(kernel.name),
    plan: text(kernel.plan),
    cluster: text(kernel.cluster),
    ops: texts(kernel.ops),
    kind: text(kernel.kind),
    lines: numbers(kernel.lines),
    bound: text(kernel.bound),
    ofPeak: number(kernel.of_peak)
  };
}

function readTraffic(part: Record<string, unknown>): Traffic {
  return {
    perTurn: part.per_turn === true,
    calls: number(part.calls) ?? 0,
    seconds: number(part.seconds),
    bytesRead: number(part.bytes_read),
    bytesWritten: number(part.bytes_written),
    flops: number(part.flops)
  };
}

function readRetrace(retrace: Record<string, unknown>): Retrace {
  return {
    function: text(retrace.function),
    trace: number(retrace.trace) ?? 0,
    cause: text(retrace.cause),
    argument: text(retrace.argument),
    before: text(retrace.before),
    after: text(retrace.after),
    lines: readPositions(retrace.lines),
    seconds: number(retrace.seconds),
    text: text(retrace.text),
    ...readFix(retrace),
    place: unmarked(retrace.place),
    first: retrace.first === true,
    calls: number(retrace.calls) ?? 0,
    compiled: number(retrace.compiled) ?? 0,
    spent: list(retrace.spent).map(entry => {
      const [step, seconds] = list(entry);
      return { step: text(step), seconds: number(seconds) ?? 0 };
    }),
    changes: list(retrace.changes).map(entry => {
      const [cause, argument, before, after] = list(entry).map(text);
      return { cause: cause ?? '', argument: argument ?? '', before: before ?? '', after: after ?? '' };
    }),
    same: list(retrace.same).map(entry => {
      const [argument, what] = list(entry).map(text);
      return { argument: argument ?? '', text: what ?? '' };
    }),
    sameCount: number(retrace.same_count) ?? 0,
    site: readPositions([retrace.site]).find(({ file }) => file !== '') ?? null
  };
}

/** Version 1 had a fix as text, and without one the proof said that it is done. */
function readFix(retrace: Record<string, unknown>): Pick<Retrace, 'fix' | 'done' | 'proof'> {
  const proof = unmarked(retrace.proof);
  const fix = isRecord(retrace.fix)
    ? {
        code: text(retrace.fix.code),
        text: unmarked(retrace.fix.text),
        form: text(record(retrace.fix.args).form) || 'words'
      }
    : olderFix(text(retrace.fix));
  const done = fix ? null : (readReason(retrace.done) ?? olderDone(proof));
  return { fix, done, proof: fix ? proof : '' };
}

/** Spans are made when somebody first asks for them: of 100 000 that takes as long as the rest of a first picture. */
function readLane(lane: Record<string, unknown>): Lane {
  const given = records(lane.spans);
  let made: Span[] | null = null;
  return {
    name: text(lane.name),
    group: text(lane.group) || text(lane.name),
    dropped: number(lane.dropped) ?? 0,
    total: Math.max(number(lane.total) ?? 0, given.length),
    busy: number(lane.busy),
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

function readShape(value: unknown): number[] {
  const all = list(value);
  return all.every(extent => typeof extent === 'number') ? all : all.map(extent => number(extent) ?? 0);
}

/** Operations of a line have one place: each is made once and shared. */
class Positions {
  read(value: unknown): Position[] {
    const entries = list(value);
    const [only] = entries;
    if (entries.length !== 1 || !Array.isArray(only) || typeof only[0] !== 'string') {
      return readPositions(value);
    }
    const [file, line, start, endLine, end] = only as unknown[];
    const small = isSmall(line) && isSmall(end) && (start === -1 || isSmall(start)) && endLine === line;
    if (!small) {
      return readPositions(value);
    }
    let known = this.known.get(file as string);
    if (!known) {
      known = new Map();
      this.known.set(file as string, known);
    }
    const key = ((line as number) * SMALL + (start as number) + 1) * SMALL + (end as number);
    let found = known.get(key);
    if (!found) {
      found = readPositions(value);
      known.set(key, found);
    }
    return found;
  }

  private readonly known = new Map<string, Map<number, Position[]>>();
}

/** Three of them are one whole number that is exact. */
const SMALL = 65_536;

function isSmall(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < SMALL - 1;
}

function readSpan(span: Record<string, unknown>): Span {
  return {
    name: text(span.name),
    label: text(span.label),
    kind: text(span.kind),
    start: number(span.start) ?? 0,
    duration: Math.max(0, number(span.duration) ?? 0),
    cluster: text(span.cluster) || null,
    plan: text(span.plan),
    bytes: number(span.bytes) ?? 0,
    lines: numbers(span.lines)
  };
}

export function readReason(value: unknown): Reason | null {
  return isRecord(value) ? { code: text(value.code), text: unmarked(value.text) } : null;
}

/** Beside figures, and in a map, the program's words stand as they are: without the marks around them that a text has. */
function unmarked(value: unknown): string {
  return text(value).replaceAll('`', '');
}

export function readPositions(value: unknown): Position[] {
  return list(value).map(entry => {
    const [file, line, start, endLine, end] = list(entry);
    const position: Position = { file: text(file), line: number(line) ?? 0 };
    return typeof start === 'number' && typeof end === 'number' && start >= 0 && endLine === line
      ? { ...position, columns: [start, end] }
      : position;
  });
}

function readError(value: unknown): string | null {
  return value === null || value === undefined || value === '' ? null : text(value) || JSON.stringify(value);
}
