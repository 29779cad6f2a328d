/**
 * The parts of reports and answers that the panel reads, made of schema.py and answer_schema.py of jitlab/report by
 * scripts/report_schema.py.
 */
import { amount, choice, flag, list, maybe, number, numbers } from '../base/read';
import { positions, record, records, text, texts, words } from '../base/read';
import type { Json } from '../base/read';

export const readReport = (v: Json) => ({ cell: readCell(record(v.cell)), peaks: maybe(v.peaks, readPeaks),
  plans: records(v.plans).map(readPlan), kernels: records(v.kernels).map(readKernel),
  boundaries: records(v.boundaries).map(readBoundary), temporaries: records(v.temporaries).map(readTemporary),
  numerics: records(v.numerics).map(readChecked), fallbacks: records(v.fallbacks).map(readFallback),
  statements: records(v.statements).map(readStatement), asPython: records(v.as_python).map(readAsPython),
  loops: records(v.loops).map(readLoop), sources: records(v.sources).map(readSource),
  summary: maybe(v.summary, readSummary) });
export const readCell = (v: Json) => ({ id: text(v.id), title: text(v.title), source: texts(v.source),
  running: flag(v.running), error: text(v.error) || null });
export const readRun = (v: Json) => ({ at: text(v.at), text: text(v.text) });
export const readPeaks = (v: Json) => ({ bytesPerSecond: amount(v.bytes_per_second),
  flopsPerSecond: amount(v.flops_per_second) });
export const readVerdict = (v: Json) => ({ lead: text(v.lead), operations: amount(v.operations),
  compiled: amount(v.compiled), clusters: amount(v.clusters), kernels: amount(v.kernels), host: amount(v.host),
  retraces: amount(v.retraces), /** seconds */ seconds: number(v.seconds),
  /** seconds */ numpySeconds: number(v.numpy_seconds), next: maybe(v.next, readAdvice),
  then: maybe(v.then, readAdvice), traces: amount(v.traces), statements: amount(v.statements),
  /** seconds */ statementSeconds: number(v.statement_seconds), loops: amount(v.loops),
  /** bytes */ bytesMoved: number(v.bytes_moved), /** bytes */ bytesSaved: number(v.bytes_saved),
  stored: maybe(v.stored, readStored), speed: maybe(v.speed, readSpeed), waited: maybe(v.waited, readWaited),
  settled: maybe(v.settled, readSettled), firstRun: maybe(v.first_run, readFirstRun),
  repeated: maybe(v.repeated, readRepeated), slowest: maybe(v.slowest, readSlowest),
  bound: maybe(v.bound, readMessage) });
export const readAdvice = (v: Json) => ({ text: words(v.text), advice: text(v.advice), args: v.args,
  code: text(v.code) || null, why: words(v.why) || null, section: text(v.section) });
export const readStored = (v: Json) => ({ text: text(v.text), count: amount(v.count),
  /** bytes */ bytes: amount(v.bytes) });
export const readSpeed = (v: Json) => ({ text: text(v.text), note: text(v.note), /** share */ others: number(v.others)
  });
export const readWaited = (v: Json) => ({ text: text(v.text), /** seconds */ seconds: amount(v.seconds),
  /** seconds */ work: amount(v.work), /** seconds */ python: amount(v.python),
  /** seconds */ waiting: number(v.waiting), /** seconds */ next: number(v.next), pays: maybe(v.pays, readMessage) });
export const readMessage = (v: Json) => ({ code: text(v.code), text: words(v.text) });
export const readSettled = (v: Json) => ({ text: text(v.text), short: text(v.short) });
export const readFirstRun = (v: Json) => ({ /** seconds */ seconds: amount(v.seconds), text: text(v.text) });
export const readRepeated = (v: Json) => ({ text: text(v.text), /** seconds */ mean: number(v.mean),
  /** seconds */ deviation: number(v.deviation) });
export const readSlowest = (v: Json) => ({ text: text(v.text), file: text(v.file), lines: numbers(v.lines),
  /** seconds */ seconds: amount(v.seconds), /** share */ share: amount(v.share), kernels: texts(v.kernels) });
export const readPlan = (v: Json) => ({ name: text(v.name), function: text(v.function), trace: amount(v.trace),
  like: text(v.like), givenUp: flag(v.given_up) });
export const readOp = (v: Json) => ({ lines: positions(v.lines), name: text(v.name), plan: text(v.plan),
  op: text(v.op), cluster: text(v.cluster) || null, kernel: text(v.kernel) || null,
  reason: maybe(v.reason, readReason), shape: numbers(v.shape), dtype: text(v.dtype), inputs: texts(v.inputs),
  scope: text(v.scope) || null, /** seconds */ seconds: number(v.seconds), parent: text(v.parent), side: text(v.side),
  written: text(v.written), word: text(v.word), called: text(v.called), loop: text(v.loop),
  iterations: number(v.iterations), endsEarly: flag(v.ends_early), device: text(v.device) });
export const readReason = (v: Json) => ({ code: text(v.code), text: words(v.text), clause: words(v.clause),
  rest: words(v.rest), sizeIn: text(v.size_in) });
export const readKernel = (v: Json) => ({ calls: amount(v.calls), /** seconds */ seconds: number(v.seconds),
  /** bytes */ bytesRead: amount(v.bytes_read), /** bytes */ bytesWritten: amount(v.bytes_written),
  /** flops */ flops: amount(v.flops), perTurn: flag(v.per_turn), name: text(v.name), plan: text(v.plan),
  cluster: text(v.cluster), ops: texts(v.ops), kind: text(v.kind), lines: numbers(v.lines),
  bound: text(v.bound) || null, /** share */ ofPeak: number(v.of_peak), nests: records(v.nests).map(readNest) });
export const readNest = (v: Json) => ({ kind: text(v.kind), ops: texts(v.ops), lines: numbers(v.lines) });
export const readGpuLaunch = (v: Json) => ({ grid: numbers(v.grid), threads: amount(v.threads),
  registers: number(v.registers), /** bytes */ sharedBytes: number(v.shared_bytes),
  /** bytes */ spilledBytes: number(v.spilled_bytes), /** share */ occupancy: number(v.occupancy),
  limitedBy: text(v.limited_by) || null, simulated: flag(v.simulated) });
export const readCluster = (v: Json) => ({ calls: amount(v.calls), /** seconds */ seconds: number(v.seconds),
  /** bytes */ bytesRead: amount(v.bytes_read), /** bytes */ bytesWritten: amount(v.bytes_written),
  perTurn: flag(v.per_turn), name: text(v.name), plan: text(v.plan), ops: texts(v.ops), kernels: texts(v.kernels),
  reason: readReason(record(v.reason)), lines: numbers(v.lines), color: amount(v.color), device: text(v.device),
  opCount: number(v.op_count), kernelCount: number(v.kernel_count) });
export const readBoundary = (v: Json) => ({ producer: text(v.producer), consumer: text(v.consumer),
  plan: text(v.plan), reason: readReason(record(v.reason)), /** bytes */ bytes: amount(v.bytes),
  flip: maybe(v.flip, readMessage), told: words(v.told), pair: words(v.pair), small: flag(v.small) });
export const readTemporary = (v: Json) => ({ lines: positions(v.lines), name: text(v.name), plan: text(v.plan),
  cluster: text(v.cluster) || null, producer: text(v.producer), consumers: texts(v.consumers),
  /** bytes */ bytes: amount(v.bytes), place: text(v.place), counted: flag(v.counted),
  reason: readReason(record(v.reason)) });
export const readChecked = (v: Json) => ({ cluster: text(v.cluster) || null, plan: text(v.plan),
  output: text(v.output), lines: numbers(v.lines), ok: flag(v.ok), op: text(v.op), word: text(v.word),
  called: text(v.called), maxAbs: number(v.max_abs), /** ulps */ maxUlp: number(v.max_ulp),
  /** ulps */ boundUlp: number(v.bound_ulp), note: text(v.note), differing: amount(v.differing),
  nearest: maybe(v.nearest, readNearest), guilty: maybe(v.guilty, readCulprit) });
export const readNearest = (v: Json) => ({ /** ulps */ ulp: number(v.ulp) });
export const readCulprit = (v: Json) => ({ text: text(v.text), edge: texts(v.edge) });
export const readFallback = (v: Json) => ({ lines: positions(v.lines), op: text(v.op), name: text(v.name),
  plan: text(v.plan), reason: maybe(v.reason, readReason), /** seconds */ seconds: number(v.seconds),
  calls: amount(v.calls), written: text(v.written) });
export const readTrace = (v: Json) => ({ lines: positions(v.lines), function: text(v.function),
  trace: amount(v.trace), cause: text(v.cause), argument: text(v.argument), before: text(v.before),
  after: text(v.after), /** seconds */ seconds: amount(v.seconds), calls: amount(v.calls), text: text(v.text),
  fix: maybe(v.fix, readFix), first: flag(v.first), done: maybe(v.done, readMessage), proof: words(v.proof),
  changes: list(v.changes).map(list).map(of => [text(of[0]), text(of[1]), text(of[2]), text(of[3])] as const),
  place: words(v.place), spent: list(v.spent).map(list).map(of => [text(of[0]), amount(of[1])] as const),
  same: list(v.same).map(list).map(of => [text(of[0]), text(of[1])] as const), sameCount: amount(v.same_count),
  compiled: amount(v.compiled) });
export const readFix = (v: Json) => ({ code: text(v.code), args: readFixArgs(record(v.args)), text: words(v.text) });
export const readFixArgs = (v: Json) => ({ form: text(v.form) });
export const readStatement = (v: Json) => ({ lines: positions(v.lines), text: text(v.text),
  reason: readReason(record(v.reason)), /** seconds */ seconds: amount(v.seconds), calls: amount(v.calls) });
export const readAsPython = (v: Json) => ({ lines: positions(v.lines), function: text(v.function),
  text: words(v.text), /** seconds */ seconds: amount(v.seconds), calls: amount(v.calls) });
export const readLoop = (v: Json) => ({ lines: positions(v.lines), text: text(v.text),
  reason: readReason(record(v.reason)), iterations: amount(v.iterations) });
export const readSource = (v: Json) => ({ file: text(v.file), cell: text(v.cell), path: text(v.path),
  first: amount(v.first), lines: texts(v.lines) });
export const readLane = (v: Json) => ({ name: text(v.name), group: text(v.group), dropped: amount(v.dropped),
  /** µs */ busy: number(v.busy), total: number(v.total) });
export const readSpan = (v: Json) => ({ name: text(v.name), label: text(v.label), kind: text(v.kind),
  /** µs */ start: amount(v.start), /** µs */ duration: amount(v.duration), cluster: text(v.cluster) || null,
  plan: text(v.plan) || null, lines: numbers(v.lines), /** bytes */ bytes: number(v.bytes), tier: text(v.tier) });
export const readSummary = (v: Json) => ({ ops: amount(v.ops), boundaries: amount(v.boundaries),
  spans: amount(v.spans),
  clusters: maybe(v.clusters, all => new Map(Object.entries(all).map(([key, of]) => [key, readClusterCount(record(of))]))),
  temporaries: records(v.temporaries).map(readReaching), edges: records(v.edges).map(readPassing) });
export const readClusterCount = (v: Json) => ({ ops: amount(v.ops) });
export const readReaching = (v: Json) => ({ plan: text(v.plan), cluster: text(v.cluster), count: amount(v.count),
  /** bytes */ bytes: amount(v.bytes), inside: amount(v.inside), /** bytes */ insideBytes: amount(v.inside_bytes) });
export const readPassing = (v: Json) => ({ plan: text(v.plan), producer: text(v.producer), consumer: text(v.consumer),
  count: amount(v.count), /** bytes */ bytes: amount(v.bytes) });
export const readHistory = (v: Json) => ({ run: amount(v.run), runs: records(v.runs).map(readEarlierRun),
  baselines: texts(v.baselines) });
export const readEarlierRun = (v: Json) => ({ run: amount(v.run), /** seconds */ seconds: number(v.seconds),
  calls: amount(v.calls), retraces: amount(v.retraces), error: text(v.error) || null });
export const readClusterListing = (v: Json) => ({ stage: text(v.stage), lines: records(v.lines).map(readCodeLine),
  share: number(v.share), absorbed: records(v.absorbed).map(readAbsorbedOp), note: text(v.note) });
export const readCodeLine = (v: Json) => ({ text: text(v.text), /** places */ at: positions(v.at), ops: texts(v.ops),
  kernel: text(v.kernel) || null, noise: flag(v.noise) });
export const readAbsorbedOp = (v: Json) => ({ op: text(v.op), into: texts(v.into), text: text(v.text) });
export const readRunsCompared = (v: Json) => ({ run: number(v.run), against: maybe(v.against, readComparedWith),
  rows: records(v.rows).map(readComparedPart), planChanges: records(v.plan_changes).map(readPlanChange),
  retraces: readCounts(record(v.retraces)), samples: numbers(v.samples),
  runs: list(v.runs).map(list).map(of => numbers(of)), needs: maybe(v.needs, readMissing), note: text(v.note) });
export const readComparedWith = (v: Json) => ({ baseline: text(v.baseline), run: number(v.run) });
export const readComparedPart = (v: Json) => ({ name: text(v.name), color: number(v.color),
  kind: choice(v.kind, ['cell', 'cluster', 'host'] as const),
  state: choice(v.state, ['same', 'changed', 'added', 'removed'] as const), /** seconds */ before: number(v.before),
  /** seconds */ after: number(v.after), change: maybe(v.change, readTimeChange) });
export const readTimeChange = (v: Json) => ({ ratio: amount(v.ratio), low: amount(v.low), high: amount(v.high),
  significant: flag(v.significant), word: text(v.word) });
export const readPlanChange = (v: Json) => ({ cluster: text(v.cluster), text: words(v.text), lines: numbers(v.lines)
  });
export const readCounts = (v: Json) => ({ before: amount(v.before), after: amount(v.after) });
export const readMissing = (v: Json) => ({ runs: number(v.runs), text: text(v.text) });
export const readWhatIfAnswer = (v: Json) => ({ question: readAskedChange(record(v.question)), title: words(v.title),
  lines: numbers(v.lines), refusal: maybe(v.refusal, readRefusedChange), change: maybe(v.change, readTimeChange),
  before: maybe(v.before, readMeasuredPlan), after: maybe(v.after, readMeasuredPlan), moved: texts(v.moved),
  advice: text(v.advice), keep: maybe(v.keep, readKeptLines), keepText: text(v.keep_text), rounds: amount(v.rounds),
  /** share */ others: number(v.others), note: text(v.note), inCell: maybe(v.in_cell, readCellCalls) });
export const readAskedChange = (v: Json) => ({
  kind: choice(v.kind, ['cut', 'fuse', 'keep_out', 'target', 'several'] as const) });
export const readRefusedChange = (v: Json) => ({ code: text(v.code), text: text(v.text),
  path: records(v.path).map(readPathStep) });
export const readPathStep = (v: Json) => ({ name: text(v.name), op: text(v.op), written: text(v.written),
  called: text(v.called), lines: numbers(v.lines), cluster: text(v.cluster) || null });
export const readMeasuredPlan = (v: Json) => ({ /** seconds */ seconds: amount(v.seconds),
  /** seconds */ low: amount(v.low), /** seconds */ high: amount(v.high), kernels: amount(v.kernels),
  clusters: amount(v.clusters), /** bytes */ bytes: amount(v.bytes), temporaries: amount(v.temporaries),
  /** bytes */ temporaryBytes: amount(v.temporary_bytes), /** ulps */ largestErrorUlp: number(v.largest_error_ulp) });
export const readKeptLines = (v: Json) => ({ file: text(v.file), first: amount(v.first), last: amount(v.last),
  lines: texts(v.lines) });
export const readCellCalls = (v: Json) => ({ calls: amount(v.calls), /** seconds */ seconds: amount(v.seconds) });
export const readSweepAnswer = (v: Json) => ({ edges: records(v.edges).map(readCutEdge), tried: amount(v.tried),
  total: amount(v.total), /** seconds */ seconds: amount(v.seconds), stopped: text(v.stopped) || null,
  note: text(v.note) });
export const readCutEdge = (v: Json) => ({ producer: text(v.producer), consumer: text(v.consumer),
  title: text(v.title), lines: numbers(v.lines), change: readTimeChange(record(v.change)),
  /** seconds */ beforeSeconds: amount(v.before_seconds), /** seconds */ afterSeconds: amount(v.after_seconds) });
