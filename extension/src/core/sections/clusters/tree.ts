import { arrayBytes, lineRanges } from '../../base/format';
import { put } from '../../report/links';
import type { Boundary, Operation, Reason } from '../../report/report';
import { total, type FlowKernel, type FlowNode } from './map/boxes';
import type { Flow } from './flow';
import { SIDES, sidesOf, withoutBodies } from './operations';
import type { SceneSource } from './map/scene';
import { labelOf } from './words';

export type TreeKind = 'plan' | 'part' | 'cluster' | 'host' | 'kernel' | 'loop' | 'op';

/** A box of the graph that may hold others. */
export interface TreeNode {
  /** Unique within a tree. */
  key: string;
  kind: TreeKind;
  name: string;
  /** What the report calls it; "" for what only the picture has. */
  id: string;
  level: number;
  parent: TreeNode | null;
  ops: readonly Operation[];
  /** How many operations; more than `ops` where they have not come yet. */
  count: number;
  /** Null for the host. */
  color: number | null;
  seconds: number | null;
  bytes: number | null;
  lines: readonly number[];
  reason: Reason | null;
  scope: string;
  flow: FlowNode | null;
  kernel: FlowKernel | null;
  op: Operation | null;
  /** Whether it can be opened. */
  group: boolean;
}

/** A value that goes from one box of a group to another. */
export interface TreeEdge {
  from: number;
  to: number;
  bytes: number | null;
  more: number;
  boundary: Boundary | null;
}

/** One of the two sides of a branch. */
export function isSide(box: TreeNode): boolean {
  return box.kind === 'part' && box.parent?.kind === 'loop' && SIDES.includes(box.name);
}

/** No group has more boxes than this: others are put into parts, in program order. */
export const MOST_CHILDREN = 400;

/** A report as boxes in boxes: plans, clusters and host operations, kernels, loops, operations. Built as far as it is opened. */
export class GraphTree {
  readonly roots: TreeNode[];

  constructor(readonly flow: Flow) {
    const plans = flow.parts.map((part, index): TreeNode => {
      const plan = this.node('plan', `plan${index}`, part.title, null, {
        ops: part.nodes.flatMap(node => node.ops),
        count: part.nodes.reduce((sum, node) => sum + node.count, 0),
        group: true
      });
      plan.level = flow.parts.length > 1 ? 1 : 0;
      const boxes = part.nodes.map((node, place) => this.boxOf(node, `${index}.${place}`, plan));
      this.children.set(plan.key, this.inParts(boxes, plan));
      return plan;
    });
    const [only] = plans;
    this.roots = plans.length === 1 && only ? this.childrenOf(only) : plans;
  }

  childrenOf(node: TreeNode): TreeNode[] {
    let found = this.children.get(node.key);
    if (!found) {
      found = node.group ? this.build(node) : [];
      this.children.set(node.key, found);
    }
    return found;
  }

  /** Edges between the boxes of a group (of the whole graph: null), each drawn where both of its ends are inside. */
  edgesOf(group: TreeNode | null): TreeEdge[] {
    const key = group?.key ?? '';
    let found = this.edges.get(key);
    if (!found) {
      found = this.edgesBetween(group ? this.childrenOf(group) : this.roots);
      this.edges.set(key, found);
    }
    return found;
  }

  /** The innermost box that has an operation, and all boxes around it are built. */
  find(op: Operation): TreeNode | undefined {
    let boxes = this.roots;
    let found: TreeNode | undefined;
    for (;;) {
      const next = boxes.find(box => box.op === op || this.membersOf(box).has(op));
      if (!next) {
        return found;
      }
      found = next;
      boxes = this.childrenOf(next);
    }
  }

  /** A cluster, kernel or host box by the report's name. */
  named(id: string, boxes: readonly TreeNode[] = this.roots): TreeNode | undefined {
    for (const box of boxes) {
      if (box.id === id && box.kind !== 'op') {
        return box;
      }
      const inside =
        box.kind === 'plan' || box.kind === 'part' || (box.kind === 'cluster' && box.flow?.kernels.some(named(id)))
          ? this.named(id, this.childrenOf(box))
          : undefined;
      if (inside) {
        return inside;
      }
    }
    return undefined;
  }

  private membersOf(box: TreeNode): ReadonlySet<Operation> {
    let members = this.members.get(box.key);
    if (!members) {
      members = new Set(box.ops);
      this.members.set(box.key, members);
    }
    return members;
  }

  private build(node: TreeNode): TreeNode[] {
    if (node.kind === 'cluster' && node.flow) {
      const { kernels, ops } = node.flow;
      const inKernels = new Set(kernels.flatMap(part => part.ops));
      const boxes = kernels.map((part, index) => this.kernelOf(part, `${node.key}.k${index}`, node));
      const loose = this.opsOf(
        ops.filter(op => !inKernels.has(op)),
        node
      );
      return this.inParts([...boxes, ...loose], node);
    }
    if (node.kind === 'loop') {
      const sides = this.sidesOf(node);
      if (sides.length) {
        return sides;
      }
      return this.inParts(
        this.opsOf(node.ops.slice(1), node, node.op?.name ?? ''), // the first is the loop itself
        node
      );
    }
    return this.inParts(this.opsOf(node.ops, node), node);
  }

  private boxOf(flow: FlowNode, key: string, parent: TreeNode): TreeNode {
    const { cluster, ops } = flow;
    const moved = cluster ? cluster.bytesRead + cluster.bytesWritten : 0;
    const [op] = ops;
    return this.node(cluster ? 'cluster' : 'host', key, flow.name, parent, {
      id: cluster ? flow.name : (op?.name ?? ''),
      ops,
      count: flow.count,
      color: cluster ? cluster.color : null,
      seconds: flow.seconds,
      bytes: cluster ? moved || null : sizeOf(ops),
      lines: flow.lines,
      reason: cluster ? cluster.reason : (op?.reason ?? null),
      flow,
      op: cluster || ops.length > 1 ? null : (op ?? null),
      group: cluster !== null || ops.length > 1
    });
  }

  private kernelOf(part: FlowKernel, key: string, parent: TreeNode): TreeNode {
    const { kernel, ops } = part;
    return this.node('kernel', key, kernel.name, parent, {
      id: kernel.name,
      ops,
      color: part.color,
      count: Math.max(ops.length, kernel.ops.length),
      seconds: kernel.seconds,
      bytes: kernel.bytesRead + kernel.bytesWritten || null,
      lines: kernel.lines,
      scope: ops.find(op => op.scope)?.scope ?? '',
      kernel: part,
      group: ops.length > 0 || kernel.ops.length > 0
    });
  }

  /** Operations within a loop are inside of it; those of another group stay beside. */
  private opsOf(ops: readonly Operation[], parent: TreeNode, within = ''): TreeNode[] {
    const [top, inside] = withoutBodies(ops, within);
    return top.map(op => {
      const body = inside.get(op.name) ?? [];
      return this.node(body.length ? 'loop' : 'op', `${parent.key}/${op.name}`, op.loop || labelOf(op), parent, {
        id: op.name,
        ops: [op, ...body],
        seconds: op.seconds,
        bytes: arrayBytes(op.dtype, op.shape),
        lines: op.lines.map(({ line }) => line),
        reason: op.reason,
        scope: op.scope ?? '',
        op,
        group: body.length > 0
      });
    });
  }

  /** The two sides of a branch, which no value joins: they stand beside one another. */
  private sidesOf(node: TreeNode): TreeNode[] {
    const inside = node.ops.slice(1);
    return sidesOf(node.op?.name ?? '', inside).map(([side, ops]) =>
      this.node('part', `${node.key}/${side}`, side, node, {
        ops,
        lines: ops.flatMap(op => op.lines.map(({ line }) => line)),
        group: true
      })
    );
  }

  private inParts(boxes: TreeNode[], parent: TreeNode): TreeNode[] {
    if (boxes.length <= MOST_CHILDREN) {
      return boxes;
    }
    const parts = Math.ceil(boxes.length / MOST_CHILDREN);
    const size = Math.ceil(boxes.length / parts);
    const word = boxes.every(({ kind }) => kind === 'op' || kind === 'loop') ? 'operations' : 'boxes';
    const made = Array.from({ length: Math.ceil(boxes.length / size) }, (_, index) => {
      const inside = boxes.slice(index * size, (index + 1) * size);
      const name = `${word} ${index * size + 1}–${index * size + inside.length}`;
      const part = this.node('part', `${parent.key}#${index}.${boxes.length}`, name, parent, {
        ops: inside.flatMap(box => [...box.ops]),
        count: inside.reduce((sum, box) => sum + box.count, 0),
        seconds: total(inside.map(box => box.seconds)),
        bytes: total(inside.map(box => box.bytes)),
        lines: inside.flatMap(box => [...box.lines]),
        group: true
      });
      for (const box of inside) {
        box.parent = part;
        box.level = part.level + 1;
      }
      this.children.set(part.key, inside);
      return part;
    });
    return this.inParts(made, parent);
  }

  private edgesBetween(boxes: readonly TreeNode[]): TreeEdge[] {
    const { readers, apart } = this.graph();
    const place = new Map<Operation, number>();
    boxes.forEach((box, index) => {
      for (const op of box.ops) {
        place.set(op, index);
      }
    });
    const edges = new Map<number, TreeEdge>();
    boxes.forEach((box, from) => {
      for (const producer of box.ops) {
        const seen = new Set<number>();
        for (const consumer of readers.get(producer) ?? []) {
          const to = place.get(consumer);
          if (to === undefined || to === from) {
            continue;
          }
          const key = from * boxes.length + to;
          const edge = edges.get(key);
          const boundary = apart.get(producer)?.get(consumer) ?? null;
          const size = arrayBytes(producer.dtype, producer.shape);
          if (!edge) {
            edges.set(key, { from, to, bytes: size, more: 0, boundary });
          } else {
            edge.boundary ??= boundary;
            if (!seen.has(to)) {
              edge.more++;
              edge.bytes = Math.max(edge.bytes ?? 0, size ?? 0) || null;
            }
          }
          seen.add(to);
        }
      }
    });
    return [...edges.values()];
  }

  /** Who reads an operation, and which of these edges did not fuse; once for the whole graph, when it is first drawn. */
  graph(): Adjacency {
    return (this.adjacency ??= adjacencyOf(this.flow));
  }

  private node(kind: TreeKind, key: string, name: string, parent: TreeNode | null, more: Partial<TreeNode>): TreeNode {
    const level = (parent?.level ?? 0) + 1;
    return {
      ...EMPTY,
      kind,
      key,
      name,
      level,
      parent,
      count: more.ops?.length ?? 0,
      color: parent?.color ?? null,
      ...more
    };
  }

  private readonly children = new Map<string, TreeNode[]>();
  private readonly edges = new Map<string, TreeEdge[]>();
  private readonly members = new Map<string, ReadonlySet<Operation>>();
  private adjacency: Adjacency | null = null;
}

export interface Adjacency {
  readers: ReadonlyMap<Operation, readonly Operation[]>;
  sources: ReadonlyMap<Operation, readonly Operation[]>;
  apart: ReadonlyMap<Operation, ReadonlyMap<Operation, Boundary>>;
}

function adjacencyOf(flow: Flow): Adjacency {
  const readers = new Map<Operation, Operation[]>();
  const sources = new Map<Operation, Operation[]>();
  const apart = new Map<Operation, Map<Operation, Boundary>>();
  for (const part of flow.parts) {
    const byName = new Map<string, Operation>();
    for (const node of part.nodes) {
      for (const op of node.ops) {
        byName.set(op.name, op);
      }
    }
    for (const op of byName.values()) {
      for (const input of op.inputs) {
        const producer = byName.get(input);
        if (producer) {
          put(readers, producer, op);
          put(sources, op, producer);
        }
      }
    }
    const boundaries = part.nodes.flatMap(node => [...node.boundaries, ...node.kernels.flatMap(k => k.boundaries)]);
    for (const boundary of boundaries) {
      const [producer, consumer] = [byName.get(boundary.producer), byName.get(boundary.consumer)];
      if (producer && consumer) {
        const to = apart.get(producer) ?? new Map<Operation, Boundary>();
        apart.set(producer, to.set(consumer, boundary));
      }
    }
  }
  return { readers, sources, apart };
}

/** The operations of a neighbourhood as a graph of their own, each with its cluster's mark. */
export function neighbourSource(tree: GraphTree, ops: readonly Operation[]): SceneSource {
  const order = new Map<Operation, number>();
  const roots = tree.flow.parts
    .flatMap(part => part.nodes)
    .flatMap(node => node.ops.filter(op => ops.includes(op)))
    .map((op, index): TreeNode => {
      order.set(op, index);
      const home = tree.find(op);
      return {
        ...(home ?? EMPTY),
        key: `near/${index}`,
        kind: 'op',
        name: labelOf(op),
        id: op.name,
        level: 1,
        parent: null,
        ops: [op],
        op,
        group: false,
        color: op.cluster === null ? null : (home?.color ?? null)
      };
    });
  const { readers, apart } = tree.graph();
  const edges = roots.flatMap(({ op }, from) =>
    op === null
      ? []
      : (readers.get(op) ?? []).flatMap((reader): TreeEdge[] => {
          const to = order.get(reader);
          const boundary = apart.get(op)?.get(reader) ?? null;
          return to === undefined ? [] : [{ from, to, bytes: arrayBytes(op.dtype, op.shape), more: 0, boundary }];
        })
  );
  return { roots, childrenOf: () => [], edgesOf: group => (group === null ? edges : []) };
}

const EMPTY: TreeNode = {
  ...{ key: '', kind: 'op', name: '', id: '', level: 1, parent: null, ops: [], count: 1, color: null },
  ...{
    seconds: null,
    bytes: null,
    lines: [],
    reason: null,
    scope: '',
    flow: null,
    kernel: null,
    op: null,
    group: false
  }
};

/** All operations within `radius` edges of one, either way. */
export function neighbourhood(tree: GraphTree, op: Operation, radius: number): Operation[] {
  const { readers, sources } = tree.graph();
  const found = new Set([op]);
  let edge = [op];
  for (let step = 0; step < radius && found.size < MOST_CHILDREN; step++) {
    const next: Operation[] = [];
    for (const other of edge.flatMap(at => [...(sources.get(at) ?? []), ...(readers.get(at) ?? [])])) {
      if (!found.has(other) && found.size < MOST_CHILDREN) {
        found.add(other);
        next.push(other);
      }
    }
    edge = next;
  }
  return [...found];
}

/** `lines 3–6`, short. */
export function placeOf(node: TreeNode): string {
  const ranges = lineRanges(node.lines);
  return ranges.length > 24 ? `${ranges.slice(0, 22)}…` : ranges;
}

function named(id: string): (part: FlowKernel) => boolean {
  return part => part.kernel.name === id;
}

function sizeOf(ops: readonly Operation[]): number | null {
  return total(ops.map(op => arrayBytes(op.dtype, op.shape)));
}
