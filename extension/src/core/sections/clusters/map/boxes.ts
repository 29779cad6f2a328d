/** The boxes of one plan: its clusters and what the host runs, in program order, and the values that pass between them. */
import { arrayBytes, some } from '../../../base/format';
import { clusterMark, type Mark } from '../../../base/shapes';
import { colorsOf, type ColorOf } from '../../../report/colors';
import { put } from '../../../report/links';
import type {
  Boundary,
  Checked,
  Cluster,
  Fallback,
  Kernel,
  Operation,
  Reaching,
  Report,
  Temporary
} from '../../../report/report';

export interface FlowNode {
  id: string;
  /** Null for operations that NumPy runs. */
  cluster: Cluster | null;
  name: string;
  ops: Operation[];
  /** How many operations it has; more than `ops` where they were too many to be sent at once. */
  count: number;
  kernels: FlowKernel[];
  /** How many kernels it has, sent or not. */
  kernelCount: number;
  lines: number[];
  seconds: number | null;
  calls: number;
  /** Values that enter from an earlier box and were not joined to it. */
  boundaries: Boundary[];
  /** Of its values those that still reach memory and do not leave it. */
  reaching: { count: number; bytes: number };
  /** How near its outputs are to NumPy's, after a check. */
  checked: Checked[];
}

export interface FlowKernel {
  kernel: Kernel;
  /** Its cluster's, or its own where there is one cluster alone. */
  color: number;
  ops: Operation[];
  /** What enters from another kernel of this cluster. */
  boundaries: Boundary[];
}

export interface FlowEdge {
  from: number;
  to: number;
  name: string;
  bytes: number | null;
  /** Further values that take the same way. */
  more: number;
}

/** More host operations in a row than this share a box. */
const HOST_ROW = 3;

/** The operations of a plan by number, so that each name is looked up once: of 50 000 that is most of what a first picture takes. */
interface Numbered {
  ops: readonly Operation[];
  at: ReadonlyMap<string, number>;
  /** For each operation where in `sources` its inputs begin; -1 there: not of this plan. */
  first: Int32Array;
  sources: readonly number[];
  /** The box of each, by its place among the boxes. */
  box: Int32Array;
}

/** Pure: operations of one plan in program order in, its boxes and what passes between them out. */
export function nodesOf(
  report: Report,
  ops: readonly Operation[],
  boundaries: readonly Boundary[]
): { nodes: FlowNode[]; edges: FlowEdge[] } {
  const clusters = byName(report.clusters);
  const fallbacks = byName(report.fallbacks);
  const nodes: FlowNode[] = [];
  const byCluster = new Map<string, FlowNode>();
  const box = new Int32Array(ops.length);
  const places = new Map<string, number>();
  ops.forEach((op, index) => {
    let place = op.cluster === null ? undefined : places.get(op.cluster);
    if (place !== undefined) {
      nodes[place]?.ops.push(op);
    } else if (op.cluster !== null) {
      const node = clusterNode(op.cluster, lookup(clusters, op.cluster, op.plan), [op]);
      byCluster.set(op.cluster, node);
      place = nodes.push(node) - 1;
      places.set(op.cluster, place);
    } else {
      place = nodes.push(hostNode(op, lookup(fallbacks, op.name, op.plan))) - 1;
    }
    box[index] = place;
  });
  const plan = ops[0]?.plan ?? '';
  for (const cluster of report.clusters) {
    if (report.summary && cluster.plan === plan && !byCluster.has(cluster.name)) {
      const node = clusterNode(cluster.name, cluster, []); // its operations come when it is opened
      byCluster.set(cluster.name, node);
      nodes.push(node);
    }
  }
  const kernels = byName(report.kernels);
  const graph = numbered(ops, box);
  for (const node of byCluster.values()) {
    node.kernels = kernelsOf(kernels, plan, node, graph, colorsOf(report));
    node.lines = node.lines.length ? node.lines : node.ops.flatMap(linesOf);
    node.count = Math.max(node.ops.length, node.cluster?.opCount ?? 0);
    node.kernelCount = Math.max(node.kernels.length, node.cluster?.kernelCount ?? 0);
  }
  for (const value of report.summary?.temporaries ?? reachingOf(report.temporaries)) {
    const node = byCluster.get(value.cluster);
    if (node && ofPlan(value.plan, plan)) {
      node.reaching.count += value.inside;
      node.reaching.bytes += value.insideBytes;
    }
  }
  for (const row of report.numerics) {
    if (ofPlan(row.plan, plan)) {
      byCluster.get(row.cluster ?? '')?.checked.push(row);
    }
  }
  const joined = joinHostRows(inOrder(nodes, graph));
  const moved = new Map<FlowNode, number>();
  joined.forEach(({ node, of }, place) => {
    for (const one of of.length ? of : [node]) {
      moved.set(one, place);
    }
  });
  const now = Int32Array.from(nodes, node => moved.get(node) ?? -1);
  const last = { ...graph, box: box.map(place => now[place] ?? -1) };
  const boxes = joined.map(({ node }) => node);
  placeBoundaries(boxes, boundaries, last);
  const edges = edgesOf(boxes, last);
  if (report.summary) {
    const at = (name: string): number => {
      const cluster = byCluster.get(name);
      return cluster ? boxes.indexOf(cluster) : (last.box[last.at.get(name) ?? -1] ?? -1);
    };
    for (const { plan: of, producer, consumer, count, bytes } of report.summary.edges) {
      const [from, to] = [at(producer), at(consumer)];
      if (of === plan && from >= 0 && to > from && !edges.some(edge => edge.from === from && edge.to === to)) {
        edges.push({ from, to, name: some(count, 'value'), bytes, more: 0 });
      }
    }
    edges.sort((a, b) => a.to - b.to);
  }
  return { nodes: boxes, edges };
}

function numbered(ops: readonly Operation[], box: Int32Array): Numbered {
  const at = new Map<string, number>();
  for (let index = 0; index < ops.length; index++) {
    at.set(ops[index]?.name ?? '', index);
  }
  const first = new Int32Array(ops.length + 1);
  const sources: number[] = [];
  for (let index = 0; index < ops.length; index++) {
    for (const input of ops[index]?.inputs ?? []) {
      sources.push(at.get(input) ?? -1);
    }
    first[index + 1] = sources.length;
  }
  return { ops, at, first, sources, box };
}

/** Of one value, as the summary has them of many. */
function reachingOf(values: readonly Temporary[]): Reaching[] {
  return values.map(({ plan, cluster, bytes, counted }) => ({
    ...{ plan, cluster: cluster ?? '', count: 1, bytes },
    ...(counted ? { inside: 1, insideBytes: bytes } : { inside: 0, insideBytes: 0 })
  }));
}

/** Each box after those it reads from, else by the first of its operations. */
function inOrder(nodes: readonly FlowNode[], { box, first, sources, ops }: Numbered): FlowNode[] {
  for (let index = 0; index < ops.length; index++) {
    const own = box[index] ?? 0;
    for (let at = first[index] ?? 0; at < (first[index + 1] ?? 0); at++) {
      const source = sources[at] ?? -1;
      if (source >= 0 && (box[source] ?? 0) > own) {
        return sorted(nodes);
      }
    }
  }
  return [...nodes];
}

function sorted(nodes: readonly FlowNode[]): FlowNode[] {
  const home = new Map(nodes.flatMap(node => node.ops.map(op => [op.name, node] as const)));
  const seen = new Set<FlowNode>();
  const ordered: FlowNode[] = [];
  for (const first of nodes) {
    // A box waits below those that it reads from; a stack of our own, because a chain may be long.
    const stack = [{ node: first, ready: false }];
    for (let top = stack.pop(); top; top = stack.pop()) {
      const { node, ready } = top;
      if (ready) {
        ordered.push(node);
        continue;
      }
      if (seen.has(node)) {
        continue;
      }
      seen.add(node);
      stack.push({ node, ready: true });
      const sources = new Set<FlowNode>();
      for (const op of node.ops) {
        for (const input of op.inputs) {
          const source = home.get(input);
          if (source && !seen.has(source)) {
            sources.add(source);
          }
        }
      }
      stack.push(...[...sources].reverse().map(source => ({ node: source, ready: false })));
    }
  }
  return ordered;
}

function clusterNode(name: string, cluster: Cluster | undefined, ops: Operation[]): FlowNode {
  const { lines = [], seconds = null, calls = 0 } = cluster ?? {};
  return { ...emptyNode(name, name, ops), cluster: cluster ?? null, lines, seconds, calls };
}

function hostNode(op: Operation, fallback: Fallback | undefined): FlowNode {
  const { seconds, calls = 0 } = fallback ?? {};
  const node = emptyNode(`host:${op.plan}:${op.name}`, op.written, [op]);
  return { ...node, lines: linesOf(op), seconds: seconds ?? op.seconds, calls };
}

/** The boxes, and of one that several share, which they were. */
function joinHostRows(nodes: readonly FlowNode[]): { node: FlowNode; of: FlowNode[] }[] {
  const joined: { node: FlowNode; of: FlowNode[] }[] = [];
  for (let at = 0; at < nodes.length;) {
    let end = at;
    while (end < nodes.length && nodes[end]?.cluster === null) {
      end++;
    }
    const row = nodes.slice(at, end);
    if (row.length > HOST_ROW) {
      const ops = row.flatMap(node => node.ops);
      const seconds = total(row.map(part => part.seconds));
      const node = emptyNode(row[0]?.id ?? '', `${row.length} run by NumPy`, ops);
      joined.push({ node: { ...node, lines: ops.flatMap(linesOf), seconds }, of: row });
    } else {
      joined.push(...row.map(one => ({ node: one, of: [] })));
    }
    const next = nodes[end];
    if (next) {
      joined.push({ node: next, of: [] });
    }
    at = end + 1;
  }
  return joined;
}

function kernelsOf(
  kernels: ReadonlyMap<string, Kernel[]>,
  plan: string,
  node: FlowNode,
  { ops, at }: Pick<Numbered, 'ops' | 'at'>,
  colorOf: ColorOf
): FlowKernel[] {
  const parts: FlowKernel[] = [];
  for (const name of new Set(node.cluster?.kernels)) {
    for (const kernel of kernels.get(name) ?? []) {
      if (ofPlan(kernel.plan, plan)) {
        parts.push({ kernel, color: colorOf(node.name, name) ?? 0, ops: [], boundaries: [] });
      }
    }
  }
  const byKernel = new Map(parts.map(part => [part.kernel.name, part]));
  // Of nearly every operation its own kernel is the only one that has it; here are the others.
  const others = new Map<string, Set<FlowKernel>>();
  for (const part of parts) {
    const { kernel } = part;
    const only = byKernel.get(kernel.name) === part;
    for (const name of kernel.ops) {
      if (!only || ops[at.get(name) ?? -1]?.kernel !== kernel.name) {
        others.set(name, (others.get(name) ?? new Set()).add(part));
      }
    }
  }
  for (const op of node.ops) {
    const own = op.kernel === null ? undefined : byKernel.get(op.kernel);
    if (op.parent !== '') {
      const outer = ops[at.get(op.parent) ?? -1];
      const around = byKernel.get(outer?.kernel ?? '');
      const all = new Set([...(others.get(op.name) ?? []), ...(others.get(op.parent) ?? [])]);
      others.set(op.name, around ? all.add(around) : all); // the body of a loop is in the loop's kernel
    }
    own?.ops.push(op);
    for (const part of (others.size && others.get(op.name)) || []) {
      if (part !== own) {
        part.ops.push(op);
      }
    }
  }
  return parts;
}

/** Between kernels of a cluster, before the reading one; of clusters kept apart, at the first, since the reason names the other. */
function placeBoundaries(nodes: readonly FlowNode[], boundaries: readonly Boundary[], { at, box }: Numbered): void {
  const home = (name: string): FlowNode | undefined => nodes[box[at.get(name) ?? -1] ?? -1];
  const wanted = new Set(boundaries.map(({ consumer }) => consumer));
  const kernelOf = new Map<string, FlowKernel>();
  for (const part of wanted.size ? nodes.flatMap(node => node.kernels) : []) {
    for (const op of part.ops) {
      if (wanted.delete(op.name)) {
        kernelOf.set(op.name, part); // the first that has it
      }
    }
  }
  for (const boundary of boundaries) {
    const from = home(boundary.producer);
    const to = home(boundary.consumer);
    if (!from || !to || boundary.reason.code === 'not_compiled') {
      continue; // the host's own box says why
    }
    const kernel = kernelOf.get(boundary.consumer);
    if (from === to) {
      (kernel ?? to).boundaries.push(boundary);
    } else {
      from.boundaries.push(boundary); // "Separate from" the other
    }
  }
}

/** By the reading box; within it in the order in which its operations read. */
function edgesOf(nodes: readonly FlowNode[], { ops, box, first, sources }: Numbered): FlowEdge[] {
  const edges = new Map<number, FlowEdge & { seen: Set<number> }>();
  for (let index = 0; index < ops.length; index++) {
    const to = box[index] ?? -1;
    for (let at = first[index] ?? 0; at < (first[index + 1] ?? 0); at++) {
      const source = sources[at] ?? -1;
      const from = box[source] ?? to;
      const producer = ops[source];
      if (from >= to || from < 0 || !producer) {
        continue;
      }
      const key = from * nodes.length + to;
      const edge = edges.get(key);
      if (edge?.seen.has(source)) {
        continue;
      }
      const size = arrayBytes(producer.dtype, producer.shape);
      if (!edge) {
        edges.set(key, { from, to, name: valueName(producer), bytes: size, more: 0, seen: new Set([source]) });
      } else {
        edge.seen.add(source);
        edge.more++;
        if ((size ?? 0) > (edge.bytes ?? 0)) {
          edge.name = valueName(producer);
          edge.bytes = size;
        }
      }
    }
  }
  return [...edges.values()].sort((a, b) => a.to - b.to);
}

/** A value by the program's name for it; an expression would be too long beside an arrow. */
function valueName({ called, written, word }: Operation): string {
  return [called, written].find(text => text && text.length < 16) ?? word;
}

/** The marks of a box from its first kernel to its last, each with its part of the operations. */
export function bandsOf({ cluster, kernels }: FlowNode): [Mark, number][] {
  const all = kernels.reduce((sum, { ops }) => sum + ops.length, 0);
  return all && isMixed({ kernels })
    ? kernels.map(({ color, ops }) => [clusterMark(color), ops.length / all])
    : [[cluster ? clusterMark(cluster.color) : 'host', 1]];
}

/** Whether the kernels of a box have colours of their own, so that none is the box's. */
export function isMixed({ kernels }: Pick<FlowNode, 'kernels'>): boolean {
  return kernels.some(({ color }) => color !== kernels[0]?.color);
}

type Named = { name: string; plan: string };

function byName<T extends Named>(things: readonly T[]): Map<string, T[]> {
  const named = new Map<string, T[]>();
  for (const thing of things) {
    put(named, thing.name, thing);
  }
  return named;
}

function lookup<T extends Named>(named: ReadonlyMap<string, T[]>, name: string, plan: string): T | undefined {
  return named.get(name)?.find(thing => ofPlan(thing.plan, plan));
}

/** Names are only unique within a plan; what says no plan belongs to any. */
function ofPlan(said: string, plan: string): boolean {
  return said === '' || said === plan;
}

function linesOf(op: Operation): number[] {
  return op.lines.map(position => position.line);
}

function emptyNode(id: string, name: string, ops: Operation[]): FlowNode {
  return {
    ...{ id, cluster: null, name, ops, count: ops.length, kernels: [], kernelCount: 0 },
    ...{ lines: [], seconds: null, calls: 0, boundaries: [], reaching: { count: 0, bytes: 0 }, checked: [] }
  };
}

/** Null where nothing is known. */
export function total(seconds: readonly (number | null)[]): number | null {
  const known = seconds.filter(value => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}
