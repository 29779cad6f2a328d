import { duration, joined, lineRanges, lines, sentence, some, whereOf } from '../../base/format';
import type { Linked } from '../../report/links';
import type { Statement } from '../../report/report';
import {
  box,
  clip,
  words,
  clusterMark,
  wrap,
  type Box,
  type Ink,
  type Item,
  type Mark,
  type Paint,
  type Picture
} from '../../base/shapes';
import { bandsOf, isMixed, type FlowEdge, type FlowNode } from './map/boxes';
import { headOf, type Flow } from './flow';
import { addKernel, addOps } from './kernels';
import { Pen, type ClustersOptions } from './map/pen';
import { clusterFacts, distinctTexts, edgeLabel, firstLine, hostFacts, nodeLabel, wrongText } from './words';

const MOST_STATEMENTS = 24;

/** Pure: a flow in, the spine of boxes out. Neighbours are joined by short edges; longer ones take the gutter at the right. */
export function layoutClusters(flow: Flow, options: ClustersOptions): Picture & { items: Item[] } {
  const spine = new Spine(options);
  for (const part of flow.parts) {
    spine.addPart(part.nodes, part.edges, headOf(part, flow), flow.seconds);
  }
  spine.addStatements(flow.statements);
  return { width: options.width, height: spine.y + 4, shapes: spine.shapes, items: spine.items };
}

/** Boxes from the top down, and what passes between them. */
class Spine extends Pen {
  y = 2;

  addPart(nodes: readonly FlowNode[], edges: readonly FlowEdge[], title: string, wholeSeconds: number | null): void {
    if (title) {
      this.y += this.y > 2 ? 12 : 0;
      const head = clip(title, this.options.width - 4, 'note', this.options.measure);
      this.words(this.left, this.y + 12, head, 'note', 'muted');
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
    long.forEach((edge, lane) => this.addLongEdge(edge, Math.min(lane, 2), places));
  }

  /** Statements that Python ran: dashed, because nothing of them is in a plan. */
  addStatements(statements: readonly Statement[]): void {
    const { measure } = this.options;
    this.gutter = 2;
    const said = new Set<string>();
    statements.slice(0, MOST_STATEMENTS).forEach((statement, index) => {
      this.y += 10;
      const top = this.y;
      const time = duration(statement.seconds);
      const frame = box(this.left + 0.5, top + 0.5, this.boxWidth, 0, { stroke: 'line2', dash: [3, 2] });
      this.shapes.push(frame);
      const room = this.boxWidth - 24 - (time ? measure(time, 'name') : 0);
      this.words(this.left + 10, top + 17, clip(firstLine(statement.text), room, 'name', measure), 'name', 'text');
      this.words(this.left + this.boxWidth - 8, top + 17, time, 'name', 'text', 'right');
      const reason = statement.reason.text || 'it is no array work';
      const again = said.has(reason) ? ' for the same reason' : `: ${reason}`;
      said.add(reason);
      const why = sentence(`Run by Python, ${whereOf(statement)}${again}`);
      const end = this.addLines(why, this.left + 10, top + 32, this.boxWidth - 20, 'note', 'muted') - 6;
      frame.height = end - top;
      const place = { x: this.left, y: top, width: this.boxWidth, height: end - top };
      const label = `${firstLine(statement.text)}. ${why}`;
      this.items.push({ id: `statement:${index}`, kind: 'statement', label, level: 1, ...place });
      this.y = end;
    });
    if (statements.length > MOST_STATEMENTS) {
      const more = `and ${some(statements.length - MOST_STATEMENTS, 'more statement')}`;
      this.y = this.addLines(more, this.left + 10, this.y + 16, this.boxWidth, 'note', 'muted') - 8;
    }
  }

  private addShortEdge(edge: FlowEdge | undefined): void {
    const top = this.y;
    this.y += 26;
    if (edge) {
      const x = this.left + 18;
      this.stroke(`M${x} ${top + 1}V${this.y - 2}`, 'line2', { x, y: this.y - 1, to: 'down' });
      const label = clip(edgeLabel(edge), this.boxWidth - 40, 'note', this.options.measure);
      this.words(x + 10, top + 17, label, 'note', 'muted');
    }
  }

  private addLongEdge(edge: FlowEdge, lane: number, places: readonly { top: number; bottom: number }[]): void {
    const right = this.left + this.boxWidth;
    const x = right + 12 + lane * 12;
    const from = (places[edge.from]?.bottom ?? 0) - 12 - lane * 4;
    const to = (places[edge.to]?.top ?? 0) + 40 + lane * 6;
    const path = `M${right + 1} ${from}H${x - 4}q4 0 4 4V${to - 4}q0 4 -4 4H${right + 3}`;
    this.stroke(path, 'line2', { x: right + 2, y: to, to: 'left' });
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
      this.shapes.push({ ...words(x + 12, middle, label, 'note', 'muted', 'center'), upright: true });
    }
  }

  private addNode(node: FlowNode, wholeSeconds: number | null): void {
    const { measure, open } = this.options;
    const mark: Mark & Ink = node.cluster ? clusterMark(node.cluster.color) : 'host';
    const ink: Ink = isMixed(node) ? 'line2' : mark;
    const isHost = node.cluster === null;
    const canOpen = node.kernels.length > 0 || node.ops.length > 1;
    const isOpen = canOpen && open.has(node.id);
    const { left, boxWidth: width } = this;
    const top = this.y;
    const form = isHost ? { radius: 0, thickness: 1.5 } : { radius: 3, thickness: 1 };
    let lit: Paint = {};
    // eslint-disable-next-line no-unused-labels
    KERNEL: if (isLit(this.options.linked, node)) {
      // in a widget there is no other view that could link to it
      lit = { stroke: 'link', thickness: 2 };
    }
    const frame = box(left + 0.5, top + 0.5, width, 0, { ...form, fill: 'bg', tint: ink, stroke: ink, ...lit });
    this.shapes.push(frame);
    const bands = this.shapes.length;
    const took = node.seconds === null ? '' : duration(node.seconds);
    let share = wholeSeconds && node.seconds !== null ? node.seconds / wholeSeconds : null;
    let time = took;
    // eslint-disable-next-line no-unused-labels
    KERNEL: if (this.options.heat !== undefined) {
      // a widget has no choice of what is shown
      const { heat } = this.options;
      const moved = (node.cluster?.bytesRead ?? 0) + (node.cluster?.bytesWritten ?? 0) || null;
      share = heat?.share({ seconds: node.seconds, bytes: moved }) ?? null;
      time = heat?.figure?.(moved) ?? took;
    }
    const timeWidth = time && measure(time, 'name');
    const name = clip(node.name, width - 48 - (timeWidth || 0), 'name', measure);
    if (isHost) {
      this.words(left + 13, top + 17, '◇', 'body', 'host');
    } else {
      this.stroke(isOpen ? `M${left + 13} ${top + 11}l4 4 4 -4` : `M${left + 15} ${top + 8}l4 4 -4 4`, 'muted');
    }
    this.words(left + 28, top + 17, name, 'name', 'text');
    const used = 28 + measure(name, 'name') + 8;
    const where = [isHost ? `NumPy · ${lines(node.lines)}` : lines(node.lines), lineRanges(node.lines)];
    const fitting = where.find(text => measure(text, 'note') < width - used - (timeWidth || 0) - 16);
    this.words(left + used, top + 17, fitting ?? '', 'note', 'muted');
    this.words(left + width - 8, top + 17, time, 'name', 'text', 'right');

    let y = top + 32;
    const bar = share !== null && width > 240 ? 64 : 0;
    const rows = isHost ? hostFacts(node) : [joined(' · ', time !== took && took, clusterFacts(node))];
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
      this.shapes.push(box(x, top + 25, bar, 4, { stroke: 'line2', thickness: 0.75 }));
      this.shapes.push(
        box(x, top + 25, Math.max(1, bar * Math.min(1, share)), 4, { fill: ink === 'line2' ? 'muted' : mark })
      );
    }
    this.items.push({
      ...{ id: node.id, kind: isHost ? 'host' : 'cluster', label: nodeLabel(node), level: 1 },
      ...{ x: left, y: top, width, height: y - 8 - top },
      ...(canOpen && { expanded: isOpen })
    });
    y -= 4;
    if (isOpen) {
      if (isHost) {
        y = addOps(this, node.ops, left + 28, y, width - 38, mark === 'host', 2) + 4;
      }
      this.said.clear();
      node.kernels.forEach((part, index) => {
        y = addKernel(this, part, node, index, left + 16, y, width - 26, clusterMark(part.color));
      });
      const small = node.kernels.flatMap(({ boundaries }) => boundaries).filter(boundary => boundary.small).length;
      const more = small ? `and ${some(small, 'smaller value')}` : '';
      y = this.addLines(more, left + 28, y + 14, width - 38, 'note', 'muted') - 8;
    }
    frame.height = y - top;
    this.shapes.splice(bands, 0, ...bandShapes(node, left + 1, top + 1, y - top - 1));
    this.y = y;
  }

  private get left(): number {
    return 2;
  }

  private get boxWidth(): number {
    return this.options.width - 4 - this.gutter;
  }

  private gutter = 2;
}

/** The selvage: one band for a cluster or the host, of a lone cluster one for each kernel. */
function bandShapes(node: FlowNode, x: number, y: number, height: number): Box[] {
  let end = y;
  return bandsOf(node).map(([mark, part]) =>
    box(x, (end += height * part) - height * part, 6, height * part, { mark })
  );
}

/** A box is lit when it is meant itself; what is inside it is lit by its own mark. */
function isLit(linked: Linked | null, { id, cluster, ops }: FlowNode): boolean {
  return cluster ? linked?.kind === 'cluster' && linked.clusters.has(id) : ops.some(op => linked?.ops.has(op.name));
}
