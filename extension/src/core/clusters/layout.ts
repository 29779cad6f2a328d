import { duration, lineRanges, lines, sentence, some } from '../format';
import type { Linked } from '../links';
import type { Boundary, Operation, Statement } from '../report';
import {
  clip,
  clusterMark,
  wrap,
  type Ink,
  type Item,
  type Mark,
  type Measure,
  type Picture,
  type Shape,
  type Type,
  type Words
} from '../shapes';
import { headOf, type Flow, type FlowEdge, type FlowKernel, type FlowNode } from './flow';
import type { Heat } from './heat';
import { layoutOperations } from './operations';
import {
  clusterFacts,
  distinctTexts,
  edgeLabel,
  firstLine,
  hostFacts,
  kernelFacts,
  kernelLabel,
  nodeLabel,
  scopeOf,
  wrongText
} from './words';

export interface ClustersOptions {
  width: number;
  measure: Measure;
  open: ReadonlySet<string>;
  /** The thing that is pointed at or pinned in any view. */
  linked: Linked | null;
  /** What the bars of the boxes say; null: nothing. */
  heat?: Heat | null;
  /** The id of a named thing of a plan; its name, where that is enough. */
  idOf?: (name: string, plan: string) => string;
}

const MOST_STATEMENTS = 24;

/** Pure: a flow in, the spine of boxes out. Neighbours are joined by short edges; longer ones take the gutter at the right. */
export function layoutClusters(flow: Flow, options: ClustersOptions): Picture {
  const spine = new Spine(options);
  for (const part of flow.parts) {
    spine.addPart(part.nodes, part.edges, headOf(part, flow), flow.seconds);
  }
  spine.addStatements(flow.statements);
  return { width: options.width, height: spine.y + 4, shapes: spine.shapes, items: spine.items };
}

class Spine {
  readonly shapes: Shape[] = [];
  readonly items: Item[] = [];
  y = 2;

  constructor(private readonly options: ClustersOptions) {}

  addPart(nodes: readonly FlowNode[], edges: readonly FlowEdge[], title: string, wholeSeconds: number | null): void {
    if (title) {
      this.y += this.y > 2 ? 12 : 0;
      this.words(
        this.left,
        this.y + 12,
        clip(title, this.options.width - 4, 'note', this.options.measure),
        'note',
        'muted'
      );
      this.y += 20;
    }
    const long = edges.filter(edge => edge.to - edge.from > 1);
    this.gutter = long.length ? 20 + 12 * Math.min(3, long.length) : 2;
    const places: { top: number; bottom: number }[] = [];
    nodes.forEach((node, index) => {
      if (index > 0) {
        this.addShortEdge(edges.find(edge => edge.to === index && edge.from === index - 1));
      }
      const top = this.y;
      this.addNode(node, wholeSeconds);
      places.push({ top, bottom: this.y });
    });
    long.forEach((edge, lane) => {
      this.addLongEdge(edge, Math.min(lane, 2), places);
    });
  }

  /** Statements that Python ran: dashed, because nothing of them is in a plan. */
  addStatements(statements: readonly Statement[]): void {
    const { measure } = this.options;
    this.gutter = 2;
    statements.slice(0, MOST_STATEMENTS).forEach((statement, index) => {
      this.y += 10;
      const top = this.y;
      const where = lines(statement.lines.map(position => position.line));
      const time = statement.seconds === null ? '' : duration(statement.seconds);
      const frame: Shape = {
        shape: 'box',
        x: this.left + 0.5,
        y: top + 0.5,
        width: this.boxWidth,
        height: 0,
        stroke: 'line2',
        dash: [3, 2]
      };
      this.shapes.push(frame);
      const room = this.boxWidth - 24 - (time ? measure(time, 'name') : 0);
      this.words(this.left + 10, top + 17, clip(firstLine(statement.text), room, 'name', measure), 'name', 'text');
      this.words(this.left + this.boxWidth - 8, top + 17, time, 'name', 'text', 'right');
      const why = sentence(`Run by Python, ${where}: ${statement.reason?.text ?? 'it is no array work'}`);
      const end = this.addLines(why, this.left + 10, top + 32, this.boxWidth - 20, 'note', 'muted') - 6;
      frame.height = end - top;
      this.item(
        `statement:${index}`,
        'statement',
        `${firstLine(statement.text)}. ${why}`,
        1,
        this.left,
        top,
        this.boxWidth,
        end - top
      );
      this.y = end;
    });
    if (statements.length > MOST_STATEMENTS) {
      this.y =
        this.addLines(
          `and ${some(statements.length - MOST_STATEMENTS, 'more statement')}`,
          this.left + 10,
          this.y + 16,
          this.boxWidth,
          'note',
          'muted'
        ) - 8;
    }
  }

  private addShortEdge(edge: FlowEdge | undefined): void {
    const top = this.y;
    this.y += 26;
    if (edge) {
      const x = this.left + 18;
      this.stroke(`M${x} ${top + 1}V${this.y - 2}`, 'line2', { x, y: this.y - 1, to: 'down' });
      this.words(
        x + 10,
        top + 17,
        clip(edgeLabel(edge), this.boxWidth - 40, 'note', this.options.measure),
        'note',
        'muted'
      );
    }
  }

  private addLongEdge(edge: FlowEdge, lane: number, places: readonly { top: number; bottom: number }[]): void {
    const right = this.left + this.boxWidth;
    const x = right + 12 + lane * 12;
    const from = (places[edge.from]?.bottom ?? 0) - 12 - lane * 4;
    const to = (places[edge.to]?.top ?? 0) + 40 + lane * 6;
    this.stroke(`M${right + 1} ${from}H${x - 4}q4 0 4 4V${to - 4}q0 4 -4 4H${right + 3}`, 'line2', {
      x: right + 2,
      y: to,
      to: 'left'
    });
    const room = to - from - 16;
    const label = edgeLabel(edge);
    const long = this.options.measure(label, 'note');
    const middle = (from + to) / 2;
    const taken = this.shapes.some(
      shape =>
        shape.shape === 'words' &&
        shape.upright === true &&
        shape.x === x + 12 &&
        Math.abs(shape.y - middle) < (this.options.measure(shape.text, 'note') + long) / 2 + 4
    );
    if (long <= room && !taken) {
      this.shapes.push({
        shape: 'words',
        x: x + 12,
        y: middle,
        text: label,
        type: 'note',
        ink: 'muted',
        align: 'center',
        upright: true
      });
    }
  }

  private addNode(node: FlowNode, wholeSeconds: number | null): void {
    const { measure, open } = this.options;
    const mark: Mark & Ink = node.cluster ? clusterMark(node.cluster.color) : 'host';
    const isHost = node.cluster === null;
    const canOpen = node.kernels.length > 0 || node.ops.length > 1;
    const isOpen = canOpen && open.has(node.id);
    const { left, boxWidth: width } = this;
    const top = this.y;
    const frame: Shape = {
      shape: 'box',
      x: left + 0.5,
      y: top + 0.5,
      width,
      height: 0,
      radius: isHost ? 0 : 3,
      fill: 'bg',
      tint: mark,
      stroke: mark,
      thickness: isHost ? 1.5 : 1
    };
    const band: Shape = { shape: 'box', x: left + 1, y: top + 1, width: 6, height: 0, mark };
    this.shapes.push(frame, band);
    const lit = isLit(this.options.linked, node);
    if (lit) {
      frame.thickness = 2;
      frame.stroke = 'link';
    }
    const time = node.seconds === null ? '' : duration(node.seconds);
    const timeWidth = time && measure(time, 'name');
    const name = clip(node.name, width - 48 - (timeWidth || 0), 'name', measure);
    if (isHost) {
      this.words(left + 13, top + 17, '◇', 'body', 'host');
    } else {
      this.stroke(isOpen ? `M${left + 13} ${top + 11}l4 4 4 -4` : `M${left + 15} ${top + 8}l4 4 -4 4`, 'muted');
    }
    this.words(left + 28, top + 17, name, 'name', 'text');
    const used = 28 + measure(name, 'name') + 8;
    const where = [isHost ? `host · ${lines(node.lines)}` : lines(node.lines), lineRanges(node.lines)];
    const fitting = where.find(text => measure(text, 'note') < width - used - (timeWidth || 0) - 16);
    this.words(left + used, top + 17, fitting ?? '', 'note', 'muted');
    this.words(left + width - 8, top + 17, time, 'name', 'text', 'right');

    let y = top + 32;
    const moved = (node.cluster?.bytesRead ?? 0) + (node.cluster?.bytesWritten ?? 0) || null;
    const { heat } = this.options;
    const byTime = wholeSeconds && node.seconds !== null ? node.seconds / wholeSeconds : null;
    const share = heat === undefined ? byTime : (heat?.share({ seconds: node.seconds, bytes: moved }) ?? null);
    const bar = share !== null && width > 240 ? 64 : 0;
    const rows = isHost ? hostFacts(node) : [clusterFacts(node)];
    rows.forEach((text, index) => {
      for (const row of wrap(text, width - 38 - (bar ? bar + 10 : 0), 'note', measure)) {
        this.words(left + 28, y, row, 'note', isHost && index === 0 ? 'text' : 'muted');
        y += 14;
      }
    });
    y = this.addLines(wrongText(node), left + 28, y, width - 38, 'note', 'slower');
    for (const [{ head, why, flip }] of distinctTexts(node.boundaries, 'boxes').slice(0, 3)) {
      y = this.addLines(head, left + 28, y, width - 38, 'note', 'text');
      y = this.addLines(why, left + 28, y, width - 38, 'note', 'muted');
      y = this.addLines(flip, left + 28, y, width - 38, 'note', 'link');
    }
    if (bar && share !== null) {
      const x = left + width - 8 - bar;
      this.shapes.push({ shape: 'box', x, y: top + 25, width: bar, height: 4, stroke: 'line2', thickness: 0.75 });
      this.shapes.push({
        shape: 'box',
        x,
        y: top + 25,
        width: Math.max(1, bar * Math.min(1, share)),
        height: 4,
        fill: mark
      });
    }
    this.item(
      node.id,
      isHost ? 'host' : 'cluster',
      nodeLabel(node),
      1,
      left,
      top,
      width,
      y - 8 - top,
      canOpen ? isOpen : undefined
    );
    y -= 4;
    if (isOpen) {
      if (isHost) {
        y = this.addOps(node.ops, left + 28, y, width - 38, mark === 'host', 2) + 4;
      }
      node.kernels.forEach((part, index) => {
        y = this.addKernel(part, node, index, left + 16, y, width - 26, mark);
      });
      y += 6;
    }
    frame.height = y - top;
    band.height = y - top - 1;
    this.y = y;
  }

  private addKernel(
    part: FlowKernel,
    node: FlowNode,
    index: number,
    x: number,
    y: number,
    width: number,
    mark: Mark & Ink
  ): number {
    const { kernel } = part;
    const { measure, linked } = this.options;
    const kernelId = this.idOf(kernel.name, kernel.plan);
    const litKernel = linked?.kind === 'kernel' && linked.kernels.has(kernelId);
    let at = index > 0 || part.boundaries.length ? this.addBoundaries(part.boundaries, x, y, width) : y;
    const scope = scopeOf(part.ops);
    const before = scopeOf(node.kernels[index - 1]?.ops ?? []);
    at += scope ? (scope === before ? 8 : 18) : 4;
    const top = at;
    const frame: Shape = {
      shape: 'box',
      x: x + 0.5,
      y: top + 0.5,
      width: width - 1,
      height: 0,
      radius: 3,
      fill: 'bg',
      stroke: litKernel ? 'link' : mark,
      thickness: litKernel ? 2 : 1.25
    };
    this.shapes.push(frame);
    const time = kernel.seconds === null ? '' : duration(kernel.seconds);
    this.words(x + 10, top + 17, kernel.name, 'name', 'text');
    const used = 10 + measure(kernel.name, 'name') + 8;
    const where = lines(kernel.lines);
    if (measure(where, 'note') < width - used - (time ? measure(time, 'name') : 0) - 16) {
      this.words(x + used, top + 17, where, 'note', 'muted');
    }
    this.words(x + width - 8, top + 17, time, 'name', 'text', 'right');
    const [leftFacts, rightFacts] = kernelFacts(part, width > 330);
    at = top + 32;
    if (measure(leftFacts, 'note') + measure(rightFacts, 'note') + 30 < width) {
      this.words(x + 10, at, leftFacts, 'note', 'muted');
      this.words(x + width - 8, at, rightFacts, 'note', 'muted', 'right');
    } else {
      const rows = [leftFacts, rightFacts].filter(Boolean).join(' · ');
      at = this.addLines(rows, x + 10, at, width - 18, 'note', 'muted') - 14;
    }
    this.item(kernelId, 'kernel', kernelLabel(part), 2, x, top, width, at - top + 4);
    at = this.addOps(part.ops, x + 10, at + 10, width - 20, false, 3);
    const joined =
      node.cluster?.reason && scope === '' && node.kernels.some(({ ops }) => scopeOf(ops) !== '')
        ? 'unmarked; joined its neighbour'
        : '';
    if (joined) {
      this.words(x + 10, at + 8, joined, 'note', 'muted');
      at += 16;
    }
    frame.height = at - top;
    if (scope) {
      this.shapes.push({
        shape: 'box',
        x: x - 4.5,
        y: top - 4.5,
        width: width + 8,
        height: at - top + 9,
        radius: 5,
        stroke: 'text',
        dash: [1.5, 3]
      });
      if (scope !== before) {
        this.shapes.push({
          shape: 'box',
          x: x + 8,
          y: top - 12,
          width: measure(scope, 'note') + 8,
          height: 14,
          fill: 'bg',
          tint: mark
        });
        this.words(x + 12, top - 1, scope, 'note', 'text');
      }
      at += 5;
    }
    return at + 2;
  }

  /** Two strokes across a dashed line, and beside it why the two sides are apart. */
  private addBoundaries(boundaries: readonly Boundary[], x: number, y: number, width: number): number {
    const distinct = distinctTexts(boundaries, 'kernels');
    const shown = distinct.slice(0, 3);
    if (shown.length === 0) {
      return y + 6;
    }
    const line = x + 14;
    let at = y + 16;
    shown.forEach(([{ head, why, flip }, boundary], index) => {
      const top = at;
      at = this.addLines(head, line + 14, at, width - 30, 'name', 'text');
      at = this.addLines(why, line + 14, at, width - 30, 'note', 'text');
      at = this.addLines(flip, line + 14, at, width - 30, 'note', 'link');
      const label = [head, why, flip].filter(Boolean).map(sentence).join(' ');
      this.item(
        `edge:${this.idOf(boundary.producer, boundary.plan)}→${this.idOf(boundary.consumer, boundary.plan)}`,
        'boundary',
        label,
        2,
        line - 6,
        top - 12,
        width - 10,
        at - top
      );
      at += index < shown.length - 1 ? 4 : 0;
    });
    if (distinct.length > shown.length) {
      at = this.addLines(
        `and ${some(distinct.length - shown.length, 'smaller value')}`,
        line + 14,
        at,
        width - 30,
        'note',
        'muted'
      );
    }
    const middle = y + 12;
    const end = at - 4;
    this.shapes.push(
      {
        shape: 'stroke',
        path: `M${line} ${y}V${middle - 4}M${line} ${middle + 6}V${end - 2}`,
        ink: 'text',
        thickness: 1.25,
        dash: [3, 2.5],
        arrow: { x: line, y: end, to: 'down' }
      },
      {
        shape: 'stroke',
        path: `M${line - 6} ${middle + 1}l12 -5M${line - 6} ${middle + 6}l12 -5`,
        ink: 'text',
        thickness: 1.5
      }
    );
    return end;
  }

  private addOps(
    ops: readonly Operation[],
    x: number,
    y: number,
    width: number,
    isHost: boolean,
    level: number
  ): number {
    const { measure, linked } = this.options;
    const made = layoutOperations(ops, {
      x,
      y,
      width,
      isHost,
      level,
      measure,
      linked,
      open: this.options.open,
      idOf: (name, plan) => this.idOf(name, plan)
    });
    this.shapes.push(...made.shapes);
    this.items.push(...made.items);
    return made.bottom;
  }

  private idOf(name: string, plan: string): string {
    return this.options.idOf?.(name, plan) ?? name;
  }

  private addLines(text: string, x: number, y: number, room: number, type: Type, ink: Ink): number {
    let at = y;
    for (const row of text ? wrap(text, room, type, this.options.measure) : []) {
      this.words(x, at, row, type, ink);
      at += type === 'name' ? 15 : 14;
    }
    return at;
  }

  private words(x: number, y: number, text: string, type: Type, ink: Ink, align?: Words['align']): void {
    if (text) {
      this.shapes.push({ shape: 'words', x, y, text, type, ink, ...(align && { align }) });
    }
  }

  private stroke(path: string, ink: Ink, arrow?: { x: number; y: number; to: 'right' | 'left' | 'down' }): void {
    this.shapes.push({ shape: 'stroke', path, ink, ...(arrow && { arrow }) });
  }

  private item(
    id: string,
    kind: string,
    label: string,
    level: number,
    x: number,
    y: number,
    width: number,
    height: number,
    expanded?: boolean
  ): void {
    this.items.push({ id, kind, label, level, x, y, width, height, ...(expanded !== undefined && { expanded }) });
  }

  private get left(): number {
    return 2;
  }

  private get boxWidth(): number {
    return this.options.width - 4 - this.gutter;
  }

  private gutter = 2;
}

/** A box is lit when it is meant itself; what is inside it is lit by its own mark. */
function isLit(linked: Linked | null, { id, cluster, ops }: FlowNode): boolean {
  return cluster ? linked?.kind === 'cluster' && linked.clusters.has(id) : ops.some(op => linked?.ops.has(op.name));
}
