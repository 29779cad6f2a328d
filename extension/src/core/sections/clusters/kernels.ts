import { joined, lines, sentences, some } from '../../base/format';
import type { Boundary, Operation } from '../../report/report';
import { box, type Ink, type Mark, type Paint } from '../../base/shapes';
import { isMixed, type FlowKernel, type FlowNode } from './map/boxes';
import { layoutOperations } from './operations';
import type { Pen } from './map/pen';
import { distinctTexts, kernelFacts, kernelLabel, launchText, scopeOf, timeOf } from './words';

/** A kernel in its box: what keeps it apart from the one above it, then its operations. Where the next one begins. */
export function addKernel(
  pen: Pen,
  part: FlowKernel,
  node: FlowNode,
  index: number,
  x: number,
  y: number,
  width: number,
  mark: Mark & Ink
): number {
  const { kernel } = part;
  const { measure, linked } = pen.options;
  const kernelId = pen.idOf(kernel.name, kernel.plan);
  let at = index > 0 || part.boundaries.length ? addBoundaries(pen, part.boundaries, x, y, width) : y;
  const scope = scopeOf(part.ops);
  const before = scopeOf(node.kernels[index - 1]?.ops ?? []);
  at += scope ? (scope === before ? 8 : 18) : 4;
  const top = at;
  let rim: Paint = { stroke: mark, thickness: 1.25 };
  // eslint-disable-next-line no-unused-labels
  KERNEL: if (linked?.kind === 'kernel' && linked.kernels.has(kernelId)) {
    // in a widget nothing is linked
    rim = { stroke: 'link', thickness: 2 };
  }
  const frame = box(x + 0.5, top + 0.5, width - 1, 0, { radius: 3, fill: 'bg', ...rim });
  const band = box(x + 1, top + 1, 5, 0, { mark });
  pen.shapes.push(frame);
  if (isMixed(node)) {
    pen.shapes.push(band);
  }
  const took = timeOf(kernel);
  const [leftFacts, moved] = kernelFacts(part, width > 330);
  let [time, rightFacts] = [took, moved];
  // eslint-disable-next-line no-unused-labels
  KERNEL: if (pen.options.heat?.figure) {
    // a widget has no choice of what is shown
    [time, rightFacts] = [moved, took];
  }
  pen.words(x + 12, top + 17, kernel.name, 'name', 'text');
  const used = 12 + measure(kernel.name, 'name') + 8;
  const where = lines(kernel.lines);
  if (measure(where, 'note') < width - used - (time ? measure(time, 'name') : 0) - 16) {
    pen.words(x + used, top + 17, where, 'note', 'muted');
  }
  pen.words(x + width - 8, top + 17, time, 'name', 'text', 'right');
  at = top + 32;
  if (measure(leftFacts, 'note') + measure(rightFacts, 'note') + 30 < width) {
    pen.words(x + 12, at, leftFacts, 'note', 'muted');
    pen.words(x + width - 8, at, rightFacts, 'note', 'muted', 'right');
  } else {
    const rows = joined(' · ', leftFacts, rightFacts);
    at = pen.addLines(rows, x + 12, at, width - 20, 'note', 'muted') - 14;
  }
  // eslint-disable-next-line no-unused-labels
  KERNEL: {
    const launched = launchText(kernel);
    if (launched) {
      at = pen.addLines(launched, x + 12, leftFacts || rightFacts ? at + 14 : at, width - 20, 'note', 'muted') - 14;
    }
  }
  const place = { x, y: top, width, height: at - top + 4 };
  pen.items.push({ id: kernelId, kind: 'kernel', label: kernelLabel(part), level: 2, ...place });
  at = addOps(pen, part.ops, x + 13, at + 10, width - 23, false, 3);
  const unmarked =
    node.cluster?.reason && scope === '' && node.kernels.some(({ ops }) => scopeOf(ops) !== '')
      ? 'also compiled here'
      : '';
  if (unmarked) {
    pen.words(x + 10, at + 8, unmarked, 'note', 'muted');
    at += 16;
  }
  frame.height = at - top;
  band.height = at - top - 1;
  if (scope) {
    pen.shapes.push(box(x - 4.5, top - 4.5, width + 8, at - top + 9, { radius: 5, stroke: 'text', dash: [1.5, 3] }));
    if (scope !== before) {
      pen.shapes.push(box(x + 8, top - 12, measure(scope, 'note') + 8, 14, { fill: 'bg', tint: mark }));
      pen.words(x + 12, top - 1, scope, 'note', 'text');
    }
    at += 5;
  }
  return at + 2;
}

/** Two strokes across a dashed line, and beside it why the two sides are apart. */
function addBoundaries(pen: Pen, boundaries: readonly Boundary[], x: number, y: number, width: number): number {
  const distinct = distinctTexts(boundaries, 'kernels', pen.said);
  const shown = distinct.slice(0, 3);
  if (shown.length === 0) {
    return y + 6;
  }
  const line = x + 14;
  let at = y + 16;
  shown.forEach(([{ head, why, flip }, boundary], index) => {
    const top = at;
    at = pen.addLines(head, line + 14, at, width - 30, 'name', 'text');
    at = pen.addLines(why, line + 14, at, width - 30, 'note', 'text');
    at = pen.addLines(flip, line + 14, at, width - 30, 'note', 'link');
    const label = sentences(head, why, flip);
    const { producer, consumer, plan } = boundary;
    const id = `edge:${pen.idOf(producer, plan)}→${pen.idOf(consumer, plan)}`;
    pen.items.push({
      id,
      kind: 'boundary',
      label,
      level: 2,
      x: line - 6,
      y: top - 12,
      width: width - 10,
      height: at - top
    });
    at += index < shown.length - 1 ? 4 : 0;
  });
  if (distinct.length > shown.length) {
    const more = `and ${some(distinct.length - shown.length, 'more value')}`;
    at = pen.addLines(more, line + 14, at, width - 30, 'note', 'muted');
  }
  const middle = y + 12;
  const end = at - 4;
  pen.shapes.push(
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

/** Operations, a row a line. */
export function addOps(
  pen: Pen,
  ops: readonly Operation[],
  x: number,
  y: number,
  width: number,
  isHost: boolean,
  level: number
): number {
  const { measure, linked } = pen.options;
  const made = layoutOperations(ops, {
    x,
    y,
    width,
    isHost,
    level,
    measure,
    linked,
    open: pen.options.open,
    idOf: (name, plan) => pen.idOf(name, plan)
  });
  pen.shapes.push(...made.shapes);
  pen.items.push(...made.items);
  return made.bottom;
}
