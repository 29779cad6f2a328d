import { arrayType, lines, sentence } from '../../base/format';
import type { Boundary, Operation } from '../../report/report';
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
  const entries: Entry[] = [];
  for (const part of flow.parts) {
    for (const node of part.nodes) {
      if (node.cluster) {
        const { cluster } = node;
        entries.push({
          found: () => ({
            kind: 'cluster',
            name: node.name,
            plan: cluster.plan,
            title: node.name,
            about: `cluster, ${lines(node.lines)}`,
            op: null,
            boundary: null
          }),
          text: `${node.name} cluster ${cluster.reason.text}`.toLowerCase(),
          lines: new Set(node.lines)
        });
      }
      for (const { kernel, boundaries } of node.kernels) {
        entries.push({
          found: () => ({
            kind: 'kernel',
            name: kernel.name,
            plan: kernel.plan,
            title: kernel.name,
            about: `kernel of ${kernel.cluster}, ${lines(kernel.lines)}`,
            op: null,
            boundary: null
          }),
          text: `${kernel.name} kernel ${kernel.kind} ${kernel.bound ?? ''}-bound`.toLowerCase(),
          lines: new Set(kernel.lines)
        });
        entries.push(...boundaries.map(entryOfBoundary));
      }
      entries.push(...node.boundaries.map(entryOfBoundary));
      entries.push(...node.ops.map(entryOfOperation));
    }
  }
  return entries;
}

function entryOfOperation(op: Operation): Entry {
  const where = op.cluster ?? 'host';
  return {
    found: () => ({
      kind: 'op',
      name: op.name,
      plan: op.plan,
      title: said(op),
      about: [lines(op.lines.map(({ line }) => line)), arrayType(op.dtype, op.shape), op.kernel, where]
        .filter(Boolean)
        .join(', '),
      op,
      boundary: null
    }),
    text: textOf([
      op.name,
      op.called,
      op.op,
      op.dtype,
      arrayType(op.dtype, op.shape),
      op.shape.join(' '),
      where,
      op.kernel ?? '',
      op.scope ?? '',
      op.reason?.code ?? '',
      op.reason?.text ?? ''
    ]),
    lines: new Set(op.lines.map(({ line }) => line))
  };
}

function textOf(parts: readonly string[]): string {
  return parts.join(' ').toLowerCase();
}

function entryOfBoundary(boundary: Boundary): Entry {
  const texts = boundaryTexts(boundary);
  return {
    found: () => ({
      kind: 'boundary',
      name: `${boundary.producer}→${boundary.consumer}`,
      plan: boundary.plan,
      title: `${boundary.producer} → ${boundary.consumer}`,
      about: sentence(texts.head),
      op: null,
      boundary
    }),
    text: [boundary.producer, boundary.consumer, 'not fused', boundary.reason.code, texts.head, texts.why, texts.flip]
      .join(' ')
      .toLowerCase(),
    lines: new Set()
  };
}
