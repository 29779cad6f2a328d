import { bandsOf, type FlowNode } from '../clusters/map/boxes';
import type { Operation } from '../../report/report';
import type { Flow } from '../clusters/flow';
import { duration } from '../../base/format';
import { box, clip, clusterMark, words, type Mark, type Measure, type Picture, type Shape } from '../../base/shapes';

const GAP = 8;
const MOST_CELLS = 60;

/**
 * Pure: one cell an operation, in program order, gaps between kernels, the host as a named diamond. Many operations: bands.
 * Of a run that was given up all is hollow.
 */
export function layoutStrip(flow: Flow, width: number, measure: Measure, hollow = false): Picture {
  const nodes = flow.parts.flatMap(part => part.nodes);
  const operations = nodes.reduce((sum, node) => sum + node.ops.length, 0);
  if (operations > MOST_CELLS || nodes.length > 8) {
    return layoutBands(nodes, operations, width, measure, hollow);
  }
  const room = width - 2 - GAP * (nodes.length - 1);
  const least = nodes.map(node => Math.min(measure(node.name, 'note') + 2, room / nodes.length));
  const cell = cellWidth(nodes, least, room);
  const shapes: Shape[] = [];
  let x = 0;
  nodes.forEach((node, index) => {
    const wide = Math.max(least[index] ?? 0, node.ops.length * cell);
    if (node.cluster === null && node.ops.length === 1 && !hollow) {
      shapes.push({ shape: 'diamond', x: x + 8, y: 8.5, radius: 7.5 });
    } else {
      const markOfOp = marksOf(node);
      node.ops.forEach((op, at) => {
        const first = at > 0 && op.kernel !== node.ops[at - 1]?.kernel ? 2 : 0;
        shapes.push(
          box(x + at * cell + first, 3, Math.max(1, cell - 1.5 - first), 11, { mark: hollow ? 'op' : markOfOp(op) })
        );
      });
    }
    shapes.push(words(x, 27, clip(node.name, wide + GAP - 2, 'note', measure), 'note', 'muted'));
    x += wide + GAP;
  });
  return { width, height: 32, shapes };
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
  const shapes: Shape[] = [words(0, 12, numpySeconds === null ? 'work' : 'jitlab', 'note', 'muted')];
  let x = label;
  for (const node of nodes) {
    for (const [seconds, mark] of timesOf(node)) {
      const part = seconds * shrink * scale;
      if (part > 0) {
        shapes.push(box(x, 3, Math.max(1, part - 0.75), 11, { mark }));
      }
      x += part;
    }
  }
  const end = label + seconds * scale;
  if (end - x > 1.5) {
    shapes.push(box(x + 0.5, 3.5, end - x - 1, 10, { stroke: 'compile' }));
  }
  shapes.push(words(end + 6, 13, ends[0] ?? '', 'name', 'text'));
  if (numpySeconds !== null) {
    shapes.push(
      words(0, 31, 'NumPy', 'note', 'muted'),
      box(label + 0.5, 22.5, Math.max(1, numpySeconds * scale - 1), 10, { stroke: 'line2' }),
      words(label + numpySeconds * scale + 6, 32, ends[1] ?? '', 'body', 'text')
    );
  }
  return { width, height: numpySeconds === null ? 18 : 38, shapes };
}

/** The mark of each of a box's operations. */
function marksOf({ cluster, kernels }: FlowNode): (op: Operation) => Mark {
  const colors = new Map(kernels.map(({ kernel, color }) => [kernel.name, color]));
  return ({ kernel }) => (cluster ? clusterMark(colors.get(kernel ?? '') ?? cluster.color) : 'host');
}

/** The seconds of a box, by kernel where each was timed. */
function timesOf({ cluster, kernels, seconds }: FlowNode): [number, Mark][] {
  const whole = seconds ?? 0;
  const times = kernels.map(({ kernel }) => kernel.seconds ?? NaN);
  const measured = times.reduce((sum, time) => sum + time, 0);
  return measured > 0
    ? kernels.map(({ color }, at) => [((times[at] ?? 0) / measured) * whole, clusterMark(color)])
    : [[whole, cluster ? clusterMark(cluster.color) : 'host']];
}

function layoutBands(
  nodes: readonly FlowNode[],
  operations: number,
  width: number,
  measure: Measure,
  hollow: boolean
): Picture {
  const shapes: Shape[] = [];
  let x = 0;
  let labelEnd = 0;
  for (const node of nodes) {
    const wide = (node.ops.length / operations) * width;
    const shown = Math.max(0.75, wide - (wide > 4 ? 2 : 0));
    let left = x;
    for (const [mark, part] of bandsOf(node)) {
      shapes.push(box(left, 3, Math.max(0.75, shown * part), 11, { mark: hollow ? 'op' : mark }));
      left += shown * part;
    }
    if (measure(node.name, 'note') < wide && x >= labelEnd) {
      shapes.push(words(x, 27, node.name, 'note', 'muted'));
      labelEnd = x + measure(node.name, 'note') + 4;
    }
    x += wide;
  }
  return { width, height: labelEnd ? 32 : 18, shapes };
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
