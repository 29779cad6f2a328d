import type { Boundary, Cluster, Kernel, Operation, Position, Report } from './report';

export type LinkKind = 'cluster' | 'kernel' | 'op' | 'edge' | 'line' | 'code' | 'none';

/** All that belongs to one thing, by ids: many to many, because fusion joins lines and a line becomes many instructions. */
export interface Linked {
  id: string;
  /** What was pointed at; a view lights the rest by its own grain. */
  kind: LinkKind;
  ops: ReadonlySet<string>;
  kernels: ReadonlySet<string>;
  clusters: ReadonlySet<string>;
  /** `file:line`, the file as in the report's `lines`. */
  lines: ReadonlySet<string>;
  /** `edge:producer→consumer`. */
  edges: ReadonlySet<string>;
}

/** What a line of generated code says of itself. */
export interface CodeLink {
  at: readonly Position[];
  ops: readonly string[];
  kernel: string | null;
}

const NOTHING: Linked = {
  id: '',
  kind: 'none',
  ops: new Set(),
  kernels: new Set(),
  clusters: new Set(),
  lines: new Set(),
  edges: new Set()
};

export function lineId(file: string, line: number): string {
  return `line:${file}:${line}`;
}

export function lineKey({ file, line }: Position): string {
  return `${file}:${line}`;
}

/**
 * Which operations, kernels, clusters, lines and edges are one thing in this report.
 *
 * An id is the report's own name (`cluster_0`, `k0`, `exp`, `edge:exp→sum`, `line:In [8]:5`, `code:asm:17@cluster_0`). A name
 * that stands for different things in different plans has its plan behind it (`k0@step #1`); traces that came to the same plan are one.
 */
export class Links {
  constructor(readonly report: Report) {
    for (const { name, like } of report.plans) {
      this.plans.set(name, like || name);
    }
    this.alone = new Set(this.plans.values()).size <= 1;
  }

  /** Done when something is first pointed at: of 50 000 operations it takes longer than the rest of a first picture. */
  private ready(): void {
    if (this.built) {
      return;
    }
    this.built = true;
    const { report } = this;
    for (const { name, plan } of [...report.clusters, ...report.kernels, ...report.ops]) {
      const plans = this.plansOf.get(name) ?? new Set();
      this.plansOf.set(name, plans.add(this.planOf(plan)));
    }
    report.clusters.forEach(cluster => put(this.clusters, this.idOf(cluster.name, cluster.plan), cluster));
    report.kernels.forEach(kernel => {
      put(this.kernels, this.idOf(kernel.name, kernel.plan), kernel);
      for (const op of kernel.ops) {
        put(this.kernelsOfOp, this.idOf(op, kernel.plan), this.idOf(kernel.name, kernel.plan));
      }
    });
    for (const op of report.ops) {
      const id = this.idOf(op.name, op.plan);
      put(this.ops, id, op);
      op.lines.forEach(position => put(this.opsOfLine, lineKey(position), id));
      op.inputs.forEach(input => put(this.readers, this.idOf(input, op.plan), id));
    }
  }

  /** The id of a named thing of a plan: its name, unless another plan has another thing of that name. */
  idOf(name: string, plan: string): string {
    if (this.alone) {
      return name;
    }
    this.ready();
    return (this.plansOf.get(name)?.size ?? 0) > 1 && plan ? `${name}@${this.planOf(plan)}` : name;
  }

  edgeId({ producer, consumer, plan }: Pick<Boundary, 'producer' | 'consumer' | 'plan'>): string {
    return `edge:${this.idOf(producer, plan)}→${this.idOf(consumer, plan)}`;
  }

  /** The first operation, kernel or cluster of that id. */
  op(id: string): Operation | undefined {
    this.ready();
    return this.ops.get(id.replace(/^op:/, ''))?.[0];
  }

  kernel(id: string): Kernel | undefined {
    this.ready();
    return this.kernels.get(id)?.[0];
  }

  cluster(id: string): Cluster | undefined {
    this.ready();
    return this.clusters.get(id)?.[0];
  }

  /** Ids of the operations that read this one's value. */
  readersOf(id: string): readonly string[] {
    this.ready();
    return [...new Set(this.readers.get(id) ?? [])];
  }

  /** The lines of a piece of generated code, as they come from the kernel; they link from then on. */
  addCode(stage: string, cluster: string, lines: readonly CodeLink[]): void {
    this.code.set(`${stage}@${cluster}`, lines);
    for (const id of [...this.known.keys()].filter(known => known.startsWith('code:'))) {
      this.known.delete(id);
    }
  }

  of(id: string | null): Linked {
    if (id === null) {
      return NOTHING;
    }
    this.ready();
    let linked = this.known.get(id);
    if (!linked) {
      linked = this.find(id);
      this.known.set(id, linked);
    }
    return linked;
  }

  private find(id: string): Linked {
    const edge = /^edge:(.*)→(.*)$/.exec(id);
    if (edge) {
      const ends = [edge[1] ?? '', edge[2] ?? ''].filter(end => this.ops.has(end));
      return this.linkedOf(id, 'edge', ends, { edges: [id] });
    }
    const line = /^line:(.*)$/.exec(id)?.[1];
    if (line !== undefined) {
      return this.linkedOf(id, 'line', this.opsOfLine.get(line) ?? [], { lines: [line] });
    }
    const code = /^code:([^:]*):(\d+)@(.*)$/.exec(id);
    if (code) {
      const [, stage = '', number = '', cluster = ''] = code;
      const found = this.code.get(`${stage}@${cluster}`)?.[Number(number) - 1];
      const plan = this.cluster(cluster)?.plan ?? '';
      return this.linkedOf(
        id,
        'code',
        (found?.ops ?? []).map(op => this.idOf(op, plan)),
        {
          lines: (found?.at ?? []).map(lineKey),
          kernels: found?.kernel ? [this.idOf(found.kernel, plan)] : [],
          clusters: [cluster]
        }
      );
    }
    const [, plan, host] = /^host:(.*):([^:]*)$/.exec(id) ?? []; // a box of the graph that stands for an operation
    const name = host === undefined ? id.replace(/^op:/, '') : this.idOf(host, plan ?? '');
    if (name === id && this.clusters.has(id)) {
      const all = this.clusters.get(id) ?? [];
      const inside = all.flatMap(cluster => cluster.ops.map(op => this.idOf(op, cluster.plan)));
      return this.linkedOf(id, 'cluster', inside, {
        clusters: [id],
        kernels: all.flatMap(cluster => cluster.kernels.map(kernel => this.idOf(kernel, cluster.plan)))
      });
    }
    if (name === id && this.kernels.has(id)) {
      const all = this.kernels.get(id) ?? [];
      const inside = all.flatMap(kernel => kernel.ops.map(op => this.idOf(op, kernel.plan)));
      return this.linkedOf(id, 'kernel', inside, {
        kernels: [id],
        clusters: all.map(({ cluster, plan }) => this.idOf(cluster, plan)),
        only: true
      });
    }
    return this.ops.has(name) ? this.linkedOf(id, 'op', [name], {}) : { ...NOTHING, id };
  }

  private linkedOf(
    id: string,
    kind: LinkKind,
    names: readonly string[],
    also: {
      kernels?: readonly string[];
      clusters?: readonly string[];
      lines?: readonly string[];
      edges?: readonly string[];
      /** An operation may be computed in several kernels; only the given one is meant. */
      only?: boolean;
    }
  ): Linked {
    const ops = new Set(names);
    const kernels = new Set(also.kernels);
    const clusters = new Set(also.clusters);
    const lines = new Set(also.lines);
    const edges = new Set(also.edges);
    for (const name of ops) {
      const found = this.ops.get(name) ?? [];
      for (const op of found) {
        if (kind !== 'line') {
          op.lines.forEach(position => lines.add(lineKey(position)));
        }
        if (op.cluster !== null) {
          clusters.add(this.idOf(op.cluster, op.plan));
        }
        if (!also.only && op.kernel !== null) {
          kernels.add(this.idOf(op.kernel, op.plan));
        }
        for (const input of op.inputs.map(given => this.idOf(given, op.plan))) {
          if (kind !== 'edge' && this.ops.has(input) && (kind === 'op' || ops.has(input))) {
            edges.add(`edge:${input}→${name}`);
          }
        }
      }
      if (!also.only) {
        this.kernelsOfOp.get(name)?.forEach(kernel => kernels.add(kernel));
      }
      if (kind === 'op') {
        this.readers.get(name)?.forEach(reader => edges.add(`edge:${name}→${reader}`));
      }
    }
    return { id, kind, ops, kernels, clusters, lines, edges };
  }

  private planOf(plan: string): string {
    return this.plans.get(plan) ?? plan;
  }

  private readonly alone: boolean;
  private built = false;
  private readonly plans = new Map<string, string>();
  private readonly plansOf = new Map<string, Set<string>>();
  private readonly clusters = new Map<string, Cluster[]>();
  private readonly kernels = new Map<string, Kernel[]>();
  private readonly ops = new Map<string, Operation[]>();
  private readonly kernelsOfOp = new Map<string, string[]>();
  private readonly opsOfLine = new Map<string, string[]>();
  private readonly readers = new Map<string, string[]>();
  private readonly code = new Map<string, readonly CodeLink[]>();
  private readonly known = new Map<string, Linked>();
}

/** Pure: what a plan is called: `step`, `step, trace 2`, or which part of the cell; a cell's own are named by the number of its first run. */
export function planText({ plans, cell }: Report, plan: string): string {
  const own = plans.find(({ name }) => name === plan);
  const isCell = own?.function.startsWith('In [');
  const name = isCell ? cell.title : (own?.function ?? plan);
  const forms = new Set(plans.flatMap(one => (one.function === own?.function ? one.like || one.name : [])));
  return forms.size < 2
    ? name
    : `${name}, ${isCell ? `part ${[...forms].indexOf(own?.like || plan) + 1}` : `trace ${own?.trace}`}`;
}

/** An id in words: `k0`, `k0 of step, trace 2`. */
export function idText({ report }: Links, id: string): string {
  return id.replace(/@(.*)$/, (_, plan: string) => ` of ${planText(report, plan)}`);
}

/** Adds to the list that a map has for a key. */
export function put<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values) {
    values.push(value);
  } else {
    map.set(key, [value]);
  }
}
