import { nodesOf, total, type FlowEdge, type FlowNode } from './map/boxes';
import { fileName, lineRanges, some } from '../../base/format';
import { planText, put } from '../../report/links';
import type { Boundary, Operation, Report, Statement } from '../../report/report';

/** A report as a spine: boxes in program order, and the values that pass between them. */
export interface Flow {
  parts: FlowPart[];
  /** What Python ran of the cell, after the plans: it has no place among their operations. */
  statements: Statement[];
  /** Seconds of all boxes together; null when none was measured. */
  seconds: number | null;
}

/** The boxes of one plan, or of several traces that came to the same plan. */
export interface FlowPart {
  title: string;
  /** Where its lines stand, if not in the cell itself. */
  place: string;
  nodes: FlowNode[];
  edges: FlowEdge[];
}

/** What stands above the boxes of a part; one plan of the cell itself needs no title. */
export function headOf({ title, place }: FlowPart, { parts }: Flow): string {
  return place ? `${title} · lines of ${place}` : parts.length > 1 ? title : '';
}

/** "1 cluster, 8 traces": traces that came to the same plan have the same clusters. */
export function clusterCount({ plans, verdict }: Report): string {
  const again = plans.filter(({ like, name }) => like !== '' && like !== name).length;
  return `${some(verdict.clusters, 'cluster')}${again ? `, ${some(plans.length, 'trace')}` : ''}`;
}

/** Made once a report: several views show it. */
export function flowOf(report: Report): Flow {
  const known = FLOWS.get(report) ?? makeFlow(report);
  FLOWS.set(report, known);
  return known;
}

const FLOWS = new WeakMap<Report, Flow>();

function makeFlow(report: Report): Flow {
  const opsOfPlan = new Map<string, Operation[]>();
  let plan: string | null = null;
  let own: Operation[] = [];
  for (const op of report.ops) {
    if (op.plan !== plan) {
      plan = op.plan;
      own = opsOfPlan.get(plan) ?? [];
      opsOfPlan.set(plan, own);
    }
    own.push(op);
  }
  const boundariesOfPlan = shareOut(report.boundaries, opsOfPlan);
  const parts = new Map<string, FlowPart>();
  for (const [plan, ops] of opsOfPlan) {
    const { nodes, edges } = nodesOf(report, ops, boundariesOfPlan.get(plan) ?? []);
    const like = report.plans.find(({ name }) => name === plan)?.like ?? '';
    const same = like === plan ? undefined : parts.get(like);
    if (same) {
      same.nodes.forEach((node, index) => addTimes(node, nodes[index]));
    } else {
      parts.set(plan, { title: titleOf(report, plan), place: placeOf(report, ops), nodes, edges });
    }
  }
  const nodes = [...parts.values()].flatMap(part => part.nodes);
  return {
    parts: [...parts.values()],
    statements: report.statements,
    seconds: total(nodes.map(node => node.seconds))
  };
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
    const place = new Map(nodes.map((node, index) => [node, index]));
    const at = (index: number): number | undefined => {
      const node = part.nodes[index];
      return node && place.get(node);
    };
    const edges = part.edges.flatMap(edge => {
      const [from, to] = [at(edge.from), at(edge.to)];
      return from === undefined || to === undefined ? [] : [{ ...edge, from, to }];
    });
    return { ...part, nodes, edges };
  });
  return {
    flow: { ...flow, parts: parts.filter(part => part.nodes.length > 0) },
    shown: kept.size,
    of: all.length,
    share: whole > 0 ? sum / whole : 1
  };
}

/** Each boundary to its plan; one that names none goes to a plan that has both of its operations. */
function shareOut(
  boundaries: readonly Boundary[],
  opsOfPlan: ReadonlyMap<string, readonly Operation[]>
): Map<string, Boundary[]> {
  const shared = new Map<string, Boundary[]>();
  if (boundaries.length === 0) {
    return shared;
  }
  let names: Map<string, Set<string>> | null = null;
  for (const boundary of boundaries) {
    let plan: string | undefined = boundary.plan;
    if (plan === '') {
      names ??= new Map([...opsOfPlan].map(([name, ops]) => [name, new Set(ops.map(op => op.name))]));
      plan = [...names].find(([, has]) => has.has(boundary.producer) && has.has(boundary.consumer))?.[0];
    }
    if (plan !== undefined && opsOfPlan.has(plan)) {
      put(shared, plan, boundary);
    }
  }
  return shared;
}

function addTimes(node: FlowNode, other: FlowNode | undefined): void {
  node.seconds = total([node.seconds, other?.seconds ?? null]);
  node.calls += other?.calls ?? 0;
  node.checked.push(...(other?.checked ?? []));
  const whole = node.kernelCount === node.kernels.length;
  node.kernels.forEach((part, index) => {
    const more = whole ? other?.kernels[index]?.kernel : undefined; // of alike plans other kernels may have been sent
    part.kernel = {
      ...part.kernel,
      seconds: total([part.kernel.seconds, more?.seconds ?? null]),
      calls: part.kernel.calls + (more?.calls ?? 0)
    };
  });
}

/** A saved report may have nothing of the plans that are like this one but their names. */
function titleOf(report: Report, plan: string): string {
  const { plans } = report;
  const alike = plans.filter(({ name, like }) => name === plan || like === plan);
  return alike.length > 1
    ? `${alike[0]?.function}, traces ${lineRanges(alike.map(({ trace }) => trace))}: the same plan`
    : planText(report, plan);
}

function placeOf(report: Report, ops: readonly Operation[]): string {
  let whole: string | null = null;
  let file = '';
  for (const op of ops) {
    for (const position of op.lines) {
      if (position.file !== whole) {
        const name = fileName(position.file);
        if (whole !== null && name !== file) {
          return ''; // of several
        }
        whole = position.file;
        file = name;
      }
    }
  }
  return file === report.cell.title ? '' : file;
}
