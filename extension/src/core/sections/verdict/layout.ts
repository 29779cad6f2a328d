import type { FlowNode } from '../clusters/map/boxes';
import type { Flow } from '../clusters/flow';
import { duration, lines } from '../../base/format';
import { clip, clusterMark, type Item, type Mark, type Measure, type Picture, type Shape } from '../../base/shapes';

const GAP = 8;
const MOST_CELLS = 60;

/** Pure: one cell an operation, in program order, gaps between kernels, the host as a named diamond. Many operations: bands. */
export function layoutStrip(flow: Flow, width: number, measure: Measure): Picture {
  const nodes = flow.parts.flatMap(part => part.nodes);
  const operations = nodes.reduce((sum, node) => sum + node.ops.length, 0);
  if (operations > MOST_CELLS || nodes.length > 8) {
    return layoutBands(nodes, operations, width, measure);
  }
  const room = width - 2 - GAP * (nodes.length - 1);
  const least = nodes.map(node => Math.min(measure(node.name, 'note') + 2, room / nodes.length));
  const cell = cellWidth(nodes, least, room);
  const shapes: Shape[] = [];
  const items: Item[] = [];
  let x = 0;
  nodes.forEach((node, index) => {
    const wide = Math.max(least[index] ?? 0, node.ops.length * cell);
    if (node.cluster === null && node.ops.length === 1) {
      shapes.push({ shape: 'diamond', x: x + 8, y: 8.5, radius: 7.5 });
    } else {
      node.ops.forEach((op, at) => {
        const first = at > 0 && op.kernel !== node.ops[at - 1]?.kernel ? 2 : 0;
        shapes.push({
          shape: 'box',
          x: x + at * cell + first,
          y: 3,
          width: Math.max(1, cell - 1.5 - first),
          height: 11,
          mark: markOf(node)
        });
      });
    }
    shapes.push({
      shape: 'words',
      x,
      y: 27,
      text: clip(node.name, wide + GAP - 2, 'note', measure),
      type: 'note',
      ink: 'muted'
    });
    items.push({ id: node.id, kind: 'segment', label: segmentLabel(node), level: 1, x, y: 0, width: wide, height: 30 });
    x += wide + GAP;
  });
  return { width, height: 32, shapes, items };
}

/** Pure: jitlab's time split by box, and NumPy's beside it on the same scale when it was measured. */
export function layoutBars(
  flow: Flow,
  seconds: number,
  numpySeconds: number | null,
  width: number,
  measure: Measure,
  time = duration(seconds)
): Picture {
  const label = 52;
  const ends = [time, numpySeconds === null ? '' : duration(numpySeconds)];
  const value = Math.max(...ends.map(text => measure(text, 'name'))) + 8;
  const scale = (width - label - value) / Math.max(seconds, numpySeconds ?? 0, 1e-12);
  const nodes = flow.parts.flatMap(part => part.nodes);
  const measured = flow.seconds ?? 0;
  const shrink = measured > seconds ? seconds / measured : 1;
  const shapes: Shape[] = [{ shape: 'words', x: 0, y: 12, text: 'jitlab', type: 'note', ink: 'muted' }];
  let x = label;
  for (const node of nodes) {
    const part = (node.seconds ?? 0) * shrink * scale;
    if (part > 0) {
      shapes.push({ shape: 'box', x, y: 3, width: Math.max(1, part - 0.75), height: 11, mark: markOf(node) });
    }
    x += part;
  }
  const end = label + seconds * scale;
  if (end - x > 1.5) {
    shapes.push({ shape: 'box', x: x + 0.5, y: 3.5, width: end - x - 1, height: 10, stroke: 'compile' });
  }
  shapes.push({ shape: 'words', x: end + 6, y: 13, text: ends[0] ?? '', type: 'name', ink: 'text' });
  if (numpySeconds !== null) {
    shapes.push(
      { shape: 'words', x: 0, y: 31, text: 'NumPy', type: 'note', ink: 'muted' },
      {
        shape: 'box',
        x: label + 0.5,
        y: 22.5,
        width: Math.max(1, numpySeconds * scale - 1),
        height: 10,
        stroke: 'line2'
      },
      { shape: 'words', x: label + numpySeconds * scale + 6, y: 32, text: ends[1] ?? '', type: 'body', ink: 'text' }
    );
  }
  return { width, height: numpySeconds === null ? 18 : 38, shapes, items: [] };
}

export function markOf(node: FlowNode): Mark {
  return node.cluster ? clusterMark(node.cluster.color) : 'host';
}

function layoutBands(nodes: readonly FlowNode[], operations: number, width: number, measure: Measure): Picture {
  const shapes: Shape[] = [];
  const items: Item[] = [];
  let x = 0;
  let labelEnd = 0;
  for (const node of nodes) {
    const wide = (node.ops.length / operations) * width;
    shapes.push({
      shape: 'box',
      x,
      y: 3,
      width: Math.max(0.75, wide - (wide > 4 ? 2 : 0)),
      height: 11,
      mark: markOf(node)
    });
    if (measure(node.name, 'note') < wide && x >= labelEnd) {
      shapes.push({ shape: 'words', x, y: 27, text: node.name, type: 'note', ink: 'muted' });
      labelEnd = x + measure(node.name, 'note') + 4;
    }
    items.push({ id: node.id, kind: 'segment', label: segmentLabel(node), level: 1, x, y: 0, width: wide, height: 30 });
    x += wide;
  }
  return { width, height: labelEnd ? 32 : 18, shapes, items };
}

/** As wide as fits beside the segments that are as wide as their names. */
function cellWidth(nodes: readonly FlowNode[], least: readonly number[], room: number): number {
  let cell = 18;
  for (let round = 0; round < 8; round++) {
    let fixed = 0;
    let free = 0;
    nodes.forEach((node, index) => {
      const minimum = least[index] ?? 0;
      if (node.ops.length * cell < minimum) {
        fixed += minimum;
      } else {
        free += node.ops.length;
      }
    });
    cell = Math.max(2, Math.min(18, (room - fixed) / Math.max(1, free)));
  }
  return cell;
}

function segmentLabel(node: FlowNode): string {
  const where = lines(node.lines);
  return node.cluster ? `${node.name}, ${where}` : `${node.name}, ${where}, on the host`;
}
