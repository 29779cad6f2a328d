import { arrayBytes } from '../format';
import type { Boundary, Cluster, Kernel, Operation, Report } from '../report';

/** A report as a spine: boxes in program order, and the values that pass between them. */
export interface Flow {
  parts: FlowPart[];
  /** Seconds of all boxes together; null when none was measured. */
  seconds: number | null;
}

/** The boxes of one plan, or of several traces that came to the same plan. */
export interface FlowPart {
  title: string;
  nodes: FlowNode[];
  edges: FlowEdge[];
}

export interface FlowNode {
  id: string;
  /** Null for operations that NumPy runs. */
  cluster: Cluster | null;
  name: string;
  ops: Operation[];
  kernels: FlowKernel[];
  lines: number[];
  seconds: number | null;
  calls: number;
  /** Values that enter from an earlier box and were not joined to it. */
  boundaries: Boundary[];
}

export interface FlowKernel {
  kernel: Kernel;
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

export function flowOf(report: Report): Flow {
  const opsOfPlan = new Map<string, Operation[]>();
  for (const op of report.ops) {
    const ops = opsOfPlan.get(op.plan) ?? [];
    ops.push(op);
    opsOfPlan.set(op.plan, ops);
  }
  const boundariesOfPlan = shareOut(report.boundaries, opsOfPlan);
  const parts: { shape: string; plans: string[]; part: FlowPart }[] = [];
  for (const [plan, ops] of opsOfPlan) {
    const nodes = nodesOf(report, ops, boundariesOfPlan.get(plan) ?? []);
    const shape = nodes
      .map(node => [
        node.cluster?.color,
        ...node.kernels.map(kernel => kernel.ops.length),
        ...node.ops.map(op => op.op)
      ])
      .join(';');
    const same = parts.find(
      part => part.shape === shape && functionOf(report, part.plans[0]) === functionOf(report, plan)
    );
    if (same) {
      same.plans.push(plan);
      same.part.nodes.forEach((node, index) => {
        addTimes(node, nodes[index]);
      });
    } else {
      parts.push({ shape, plans: [plan], part: { title: plan, nodes, edges: edgesOf(nodes) } });
    }
  }
  for (const { plans, part } of parts) {
    part.title = titleOf(report, plans);
  }
  const nodes = parts.flatMap(({ part }) => part.nodes);
  return { parts: parts.map(({ part }) => part), seconds: total(nodes.map(node => node.seconds)) };
}

/** Only what takes most of the time: the slowest boxes that make 95 % of it, at least `least` of them. */
export function slowest(flow: Flow, least: number): { flow: Flow; shown: number; of: number; share: number } {
  const all = flow.parts.flatMap(part => part.nodes);
  const bySeconds = [...all].sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0));
  const whole = flow.seconds ?? 0;
  const kept = new Set<FlowNode>();
  let sum = 0;
  for (const node of bySeconds) {
    if (kept.size >= least && (sum >= 0.95 * whole || kept.size >= 4 * least)) {
      break;
    }
    kept.add(node);
    sum += node.seconds ?? 0;
  }
  const parts = flow.parts.map(part => {
    const nodes = part.nodes.filter(node => kept.has(node));
    return { ...part, nodes, edges: edgesOf(nodes) };
  });
  return {
    flow: { parts: parts.filter(part => part.nodes.length > 0), seconds: flow.seconds },
    shown: kept.size,
    of: all.length,
    share: whole > 0 ? sum / whole : 1
  };
}

function nodesOf(report: Report, ops: readonly Operation[], boundaries: readonly Boundary[]): FlowNode[] {
  const nodes: FlowNode[] = [];
  const byCluster = new Map<string, FlowNode>();
  for (const op of ops) {
    const cluster = op.cluster === null ? undefined : report.clusters.find(({ name }) => name === op.cluster);
    const open = op.cluster === null ? undefined : byCluster.get(op.cluster);
    if (open) {
      open.ops.push(op);
    } else if (op.cluster !== null) {
      const node = emptyNode(op.cluster, op.cluster, [op]);
      node.cluster = cluster ?? null;
      node.lines = cluster?.lines ?? [];
      node.seconds = cluster?.seconds ?? null;
      node.calls = cluster?.calls ?? 0;
      byCluster.set(op.cluster, node);
      nodes.push(node);
    } else {
      nodes.push(hostNode(report, op));
    }
  }
  for (const node of byCluster.values()) {
    node.kernels = kernelsOf(report, node);
    node.lines = node.lines.length ? node.lines : node.ops.flatMap(linesOf);
  }
  const joined = joinHostRows(nodes);
  placeBoundaries(joined, boundaries);
  return joined;
}

function hostNode(report: Report, op: Operation): FlowNode {
  const fallback = report.fallbacks.find(({ name }) => name === op.name);
  const node = emptyNode(`host:${op.plan}:${op.name}`, op.op, [op]);
  node.lines = linesOf(op);
  node.seconds = fallback?.seconds ?? op.seconds;
  node.calls = fallback?.calls ?? 0;
  return node;
}

function joinHostRows(nodes: readonly FlowNode[]): FlowNode[] {
  const joined: FlowNode[] = [];
  for (let at = 0; at < nodes.length;) {
    let end = at;
    while (end < nodes.length && nodes[end]?.cluster === null) {
      end++;
    }
    const row = nodes.slice(at, end);
    if (row.length > HOST_ROW) {
      const ops = row.flatMap(node => node.ops);
      const node = emptyNode(row[0]?.id ?? '', `${row.length} on the host`, ops);
      node.lines = ops.flatMap(linesOf);
      node.seconds = total(row.map(part => part.seconds));
      joined.push(node);
    } else {
      joined.push(...row);
    }
    const next = nodes[end];
    if (next) {
      joined.push(next);
    }
    at = end + 1;
  }
  return joined;
}

function kernelsOf(report: Report, node: FlowNode): FlowKernel[] {
  const names = new Set(node.cluster?.kernels ?? []);
  const kernels = report.kernels.filter(kernel => names.has(kernel.name));
  return kernels.map(kernel => {
    const members = new Set(kernel.ops);
    return { kernel, ops: node.ops.filter(op => members.has(op.name) || op.kernel === kernel.name), boundaries: [] };
  });
}

function placeBoundaries(nodes: readonly FlowNode[], boundaries: readonly Boundary[]): void {
  for (const boundary of boundaries) {
    const node = nodes.find(({ ops }) => ops.some(op => op.name === boundary.consumer));
    const kernel = node?.kernels.find(({ ops }) => ops.some(op => op.name === boundary.consumer));
    const inside = node?.ops.some(op => op.name === boundary.producer);
    (inside && kernel ? kernel : node)?.boundaries.push(boundary);
  }
}

function edgesOf(nodes: readonly FlowNode[]): FlowEdge[] {
  const madeBy = new Map<string, [number, Operation]>();
  const edges = new Map<string, FlowEdge & { seen: Set<string> }>();
  nodes.forEach((node, index) => {
    for (const op of node.ops) {
      madeBy.set(op.name, [index, op]);
    }
  });
  nodes.forEach((node, to) => {
    for (const input of node.ops.flatMap(op => op.inputs)) {
      const [from, producer] = madeBy.get(input) ?? [to, undefined];
      if (from >= to || !producer) {
        continue;
      }
      const size = arrayBytes(producer.dtype, producer.shape);
      const edge = edges.get(`${from} ${to}`);
      if (!edge) {
        edges.set(`${from} ${to}`, { from, to, name: input, bytes: size, more: 0, seen: new Set([input]) });
      } else if (!edge.seen.has(input)) {
        edge.seen.add(input);
        edge.more++;
        if ((size ?? 0) > (edge.bytes ?? 0)) {
          edge.name = input;
          edge.bytes = size;
        }
      }
    }
  });
  return [...edges.values()];
}

/** A boundary names its two operations but not their plan: each goes to a plan that has both, one plan after the other. */
function shareOut(
  boundaries: readonly Boundary[],
  opsOfPlan: ReadonlyMap<string, readonly Operation[]>
): Map<string, Boundary[]> {
  const shared = new Map<string, Boundary[]>();
  const names = new Map([...opsOfPlan].map(([plan, ops]) => [plan, new Set(ops.map(op => op.name))]));
  for (const boundary of boundaries) {
    const fitting = [...names].filter(([, has]) => has.has(boundary.producer) && has.has(boundary.consumer));
    const plans = fitting.map(([plan]) => plan);
    const isNew = (plan: string): boolean =>
      !shared.get(plan)?.some(b => b.producer === boundary.producer && b.consumer === boundary.consumer);
    const plan = plans.find(isNew) ?? plans[0];
    if (plan !== undefined) {
      shared.set(plan, [...(shared.get(plan) ?? []), boundary]);
    }
  }
  return shared;
}

function addTimes(node: FlowNode, other: FlowNode | undefined): void {
  node.seconds = total([node.seconds, other?.seconds ?? null]);
  node.calls += other?.calls ?? 0;
  node.kernels.forEach((part, index) => {
    const more = other?.kernels[index]?.kernel;
    part.kernel = {
      ...part.kernel,
      seconds: total([part.kernel.seconds, more?.seconds ?? null]),
      calls: part.kernel.calls + (more?.calls ?? 0)
    };
  });
}

function functionOf(report: Report, plan: string | undefined): string {
  return report.plans.find(({ name }) => name === plan)?.function ?? plan ?? '';
}

function titleOf(report: Report, plans: readonly string[]): string {
  const traces = plans.map(plan => report.plans.find(({ name }) => name === plan)?.trace ?? 0);
  return plans.length === 1
    ? (plans[0] ?? '')
    : `${functionOf(report, plans[0])}, traces ${Math.min(...traces)}–${Math.max(...traces)}: the same plan`;
}

function linesOf(op: Operation): number[] {
  return op.lines.map(position => position.line);
}

function emptyNode(id: string, name: string, ops: Operation[]): FlowNode {
  return { id, cluster: null, name, ops, kernels: [], lines: [], seconds: null, calls: 0, boundaries: [] };
}

function total(seconds: readonly (number | null)[]): number | null {
  const known = seconds.filter(value => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}
