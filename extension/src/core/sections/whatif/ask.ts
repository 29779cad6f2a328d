import { bytes, isOnGpu, joined, lines, whereOf } from '../../base/format';
import type { Request } from '../../report/kernel';
import type { Links } from '../../report/links';
import type { Boundary, Cluster, Operation, Report } from '../../report/report';

/** A what-if that can be asked of a thing; nothing runs before it is. */
export interface Ask {
  /** On the button: a verb. */
  label: string;
  /** As a sentence, for a screen reader and before it is run. */
  title: string;
  kind: 'cut' | 'fuse' | 'keep_out' | 'target';
  plan: string;
  edges: [string, string][];
  ops: string[];
  /** Where all of the plan is to run. */
  target?: 'cpu' | 'gpu';
}

/** What can be asked of what is pointed at, and its name. */
export interface Askable {
  title: string;
  facts: string;
  asks: Ask[];
  /** What to point at instead, where nothing can be asked; "" else. */
  hint: string;
}

/** Pure: an id of the report in, the questions that make sense of it out. */
export function askable(report: Report, links: Links, id: string | null): Askable | null {
  if (id === null) {
    return null;
  }
  const edge = /^edge:(.*)→(.*)$/.exec(id);
  if (edge) {
    const [producer, consumer] = [links.op(edge[1] ?? ''), links.op(edge[2] ?? '')];
    return producer && consumer ? ofEdge(report, producer, consumer) : null;
  }
  const linked = links.of(id);
  if (linked.kind === 'op') {
    const [name = ''] = linked.ops;
    const op = links.op(name);
    return op ? ofOperation(report, links, op, name) : null;
  }
  const ops = [...linked.ops].map(name => links.op(name)).filter(op => op !== undefined);
  const [only] = ops;
  if (only && ops.length === 1 && (linked.kind === 'line' || linked.kind === 'code')) {
    return ofOperation(report, links, only, links.idOf(only.name, only.plan));
  }
  const cluster = linked.kind === 'cluster' ? links.cluster(id) : undefined;
  if (cluster) {
    const hint = 'Pin an operation or a value between two of them to split or fuse.';
    return { title: titleOf(id), facts: lines(cluster.lines), asks: [elsewhere(cluster)], hint };
  }
  return linked.kind === 'none'
    ? null
    : { title: titleOf(id), facts: '', asks: [], hint: 'Pin an operation or a value between two of them.' };
}

/** The request that asks it of the kernel. */
export function requestOf({ plan, kind, edges, ops, target }: Ask, cell: string): Request {
  return { want: 'whatif', cell, plan, kind, edges, ops, ...(target && { target }) };
}

/** All of a plan on the GPU, or on the processor where it is there. */
function elsewhere({ plan, device }: Cluster): Ask {
  const target = isOnGpu(device) ? 'cpu' : 'gpu';
  const label = `Run on the ${target === 'cpu' ? 'processor' : 'GPU'}`;
  return { label, title: `${label}: all of ${plan}`, kind: 'target', plan, edges: [], ops: [], target };
}

function ofEdge(report: Report, producer: Operation, consumer: Operation): Askable {
  const fused = together(report, producer, consumer);
  const title = `${producer.written} → ${consumer.written}`;
  const boundary = report.boundaries.find(
    candidate =>
      candidate.plan === consumer.plan && candidate.producer === producer.name && candidate.consumer === consumer.name
  );
  const asks = fused ? [cut([producer], consumer, 'Split here')] : [fuse(producer, consumer)];
  return { title, facts: fused ? `fused, ${whereOf(producer, consumer)}` : apart(boundary), asks, hint: '' };
}

function ofOperation(report: Report, links: Links, op: Operation, id: string): Askable {
  const before = op.inputs
    .map(input => links.op(links.idOf(input, op.plan)))
    .filter(producer => producer !== undefined && together(report, producer, op)) as Operation[];
  const after = links
    .readersOf(id)
    .map(reader => links.op(reader))
    .filter(reader => reader !== undefined && together(report, op, reader)) as Operation[];
  const asks: Ask[] = [];
  if (before.length) {
    asks.push(cut(unique(before), op, 'Split before'));
  }
  if (after.length) {
    const edges = unique(after).map((reader): [string, string] => [op.name, reader.name]);
    const title = `Split ${apartFrom([op], unique(after))} (${whereOf(op)})`;
    asks.push({ label: 'Split after', title, kind: 'cut', plan: op.plan, edges, ops: [] });
  }
  if (op.cluster !== null) {
    const title = `Run ${word(op)} in NumPy (${whereOf(op)})`;
    asks.push({ label: 'Run in NumPy', title, kind: 'keep_out', plan: op.plan, edges: [], ops: [op.name] });
  }
  return {
    title: op.written,
    facts: joined(' · ', op.called, whereOf(op), op.kernel ?? '', op.cluster ?? 'run by NumPy'),
    asks,
    hint: asks.length ? '' : 'NumPy runs it, so there is nothing to split.'
  };
}

function cut(producers: readonly Operation[], consumer: Operation, label: string): Ask {
  const edges = producers.map((producer): [string, string] => [producer.name, consumer.name]);
  const title = `Split ${apartFrom(producers, [consumer])} (${whereOf(consumer)})`;
  return { label, title, kind: 'cut', plan: consumer.plan, edges, ops: [] };
}

function fuse(producer: Operation, consumer: Operation): Ask {
  const title = `Fuse ${word(producer)} (${whereOf(producer)}) with ${word(consumer)} (${whereOf(consumer)})`;
  return { label: 'Fuse', title, kind: 'fuse', plan: consumer.plan, edges: [[producer.name, consumer.name]], ops: [] };
}

/** In one kernel: an operation that is computed in several is in each of them. */
function together(report: Report, producer: Operation, consumer: Operation): boolean {
  if (producer.plan !== consumer.plan || consumer.kernel === null) {
    return false;
  }
  return (
    producer.kernel === consumer.kernel ||
    report.kernels.some(
      ({ name, plan, ops }) => name === consumer.kernel && plan === consumer.plan && ops.includes(producer.name)
    )
  );
}

function apart(boundary: Boundary | undefined): string {
  const size = boundary?.bytes ? `, ${bytes(boundary.bytes)}` : '';
  return boundary?.reason ? `not fused: ${boundary.reason.text}` : `not fused${size}`;
}

function unique(ops: readonly Operation[]): Operation[] {
  return [...new Set(ops)];
}

/** "z from np.exp(z)": by their expressions where both sides have the same name. */
function apartFrom(from: readonly Operation[], to: readonly Operation[]): string {
  const names = new Set(from.map(word));
  const say = to.some(op => names.has(word(op))) ? ({ written }: Operation): string => written : word;
  return `${named(from, say)} from ${named(to, say)}`;
}

function named(ops: readonly Operation[], say: (op: Operation) => string): string {
  const names = [...new Set(ops.map(say))];
  return names.length > 2 ? `${names.slice(0, 2).join(', ')} and ${names.length - 2} more` : names.join(' and ');
}

const word = ({ called, written }: Operation): string => called || written;

function titleOf(id: string): string {
  const line = /^line:.*:(\d+)$/.exec(id)?.[1];
  return line === undefined ? id : `line ${line}`;
}
