import { arrayType, joined, lines, sentence } from '../../base/format';
import type { Boundary, Cluster, Kernel, Operation } from '../../report/report';
import type { Flow } from './flow';
import { boundaryTexts, said } from './words';

/** Something that a search finds. */
export interface Found {
  kind: 'cluster' | 'kernel' | 'op' | 'boundary';
  /** By the report's name. */
  name: string;
  plan: string;
  title: string;
  about: string;
  op: Operation | null;
  boundary: Boundary | null;
}

interface Entry {
  found: () => Found;
  text: string;
  lines: ReadonlySet<number>;
}

/** All that has a name in a graph, by name, type, shape, dtype, line and reason. Made when the first search asks. */
export class SearchIndex {
  constructor(private readonly flow: Flow) {}

  /** Every word has to be found; `line 5` or `line:5` is that line alone, and so is a bare number that no text has. */
  find(query: string, most: number): { found: Found[]; total: number } {
    const wanted = query
      .toLowerCase()
      .replace(/\blines?[ :]+(\d+)/g, 'line:$1')
      .split(/\s+/)
      .filter(Boolean);
    const found: Found[] = [];
    let total = 0;
    if (wanted.length) {
      for (const entry of this.entries()) {
        if (wanted.every(word => matches(entry, word))) {
          total++;
          if (found.length < most) {
            found.push(entry.found());
          }
        }
      }
    }
    return { found, total };
  }

  private entries(): readonly Entry[] {
    return (this.made ??= entriesOf(this.flow));
  }

  private made: Entry[] | null = null;
}

function matches({ text, lines }: Entry, word: string): boolean {
  const line = /^line:(\d+)$/.exec(word)?.[1] ?? (/^\d+$/.test(word) ? word : undefined);
  return (line !== undefined && lines.has(Number(line))) || (!word.startsWith('line:') && text.includes(word));
}

function entriesOf(flow: Flow): Entry[] {
  return flow.parts.flatMap(part =>
    part.nodes.flatMap(node => [
      ...(node.cluster ? [entryOfCluster(node.cluster, node.lines)] : []),
      ...node.kernels.flatMap(({ kernel, boundaries }) => [entryOfKernel(kernel), ...boundaries.map(entryOfBoundary)]),
      ...node.boundaries.map(entryOfBoundary),
      ...node.ops.map(entryOfOperation)
    ])
  );
}

/** What is found is made when it is: of 50 000 operations most never are. */
function entry(
  kind: Found['kind'],
  { name, plan }: { name: string; plan: string },
  words: readonly (string | null | undefined)[],
  at: Iterable<number>,
  more: () => Pick<Found, 'about'> & Partial<Found>
): Entry {
  return {
    found: () => ({ kind, name, plan, title: name, op: null, boundary: null, ...more() }),
    text: words.join(' ').toLowerCase(),
    lines: new Set(at)
  };
}

function entryOfCluster(cluster: Cluster, at: readonly number[]): Entry {
  const words = [cluster.name, 'cluster', cluster.reason.text];
  return entry('cluster', cluster, words, at, () => ({ about: `cluster, ${lines(at)}` }));
}

function entryOfKernel(kernel: Kernel): Entry {
  const words = [kernel.name, 'kernel', kernel.kind, `${kernel.bound ?? ''}-bound`];
  const about = (): string => `kernel of ${kernel.cluster}, ${lines(kernel.lines)}`;
  return entry('kernel', kernel, words, kernel.lines, () => ({ about: about() }));
}

function entryOfOperation(op: Operation): Entry {
  const where = op.cluster ?? 'run by NumPy';
  const type = arrayType(op.dtype, op.shape);
  const at = op.lines.map(({ line }) => line);
  const words = [
    op.name,
    op.written,
    op.called,
    op.word,
    op.op,
    op.dtype,
    type,
    op.shape.join(' '),
    where,
    op.kernel,
    op.scope
  ];
  return entry('op', op, [...words, op.reason?.code, op.reason?.text], at, () => ({
    title: said(op),
    about: joined(', ', lines(at), type, op.kernel, where),
    op
  }));
}

function entryOfBoundary(boundary: Boundary): Entry {
  const { producer, consumer, plan, reason } = boundary;
  const { head, why, flip } = boundaryTexts(boundary);
  const words = [producer, consumer, 'not fused', reason.code, head, why, flip];
  return entry('boundary', { name: `${producer}→${consumer}`, plan }, words, [], () => ({
    title: boundary.pair || `${producer} → ${consumer}`,
    about: sentence(head),
    boundary
  }));
}
