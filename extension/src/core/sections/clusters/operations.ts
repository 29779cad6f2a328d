import { joined, some } from '../../base/format';
import { put, type Linked } from '../../report/links';
import type { Operation } from '../../report/report';
import { box, clip, words, type Ink, type Item, type Measure, type Paint, type Shape } from '../../base/shapes';
import { describe, labelOf, turnsOf } from './words';

export interface OperationsArea {
  x: number;
  y: number;
  width: number;
  isHost: boolean;
  level: number;
  measure: Measure;
  linked: Linked | null;
  /** Loops whose bodies are shown, by their ids. */
  open: ReadonlySet<string>;
  idOf: (name: string, plan: string) => string;
}

interface Chip {
  x: number;
  y: number;
  width: number;
  row: number;
  column: number;
}

interface Row {
  line: number;
  ops: Operation[];
  /** Goes on with the line of the row before. */
  more: boolean;
  end: number;
}

const ROW = 28;
const MOST_ROWS = 24;
/** In a kernel of more operations than this, arrows that pass whole rows are drawn only of what is lit: all would cross everything. */
const FEW = 16;
/** Room for an arrow between two operations. */
const GAP = 26;
const NUMBERS = 20;
export const SIDES = ['then', 'else'];
/** A side of a branch is no narrower than this beside the other. */
const LEAST_SIDE = 170;

/** Pure: one row a source line, its number at the left; arrows are data flow. */
export function layoutOperations(
  all: readonly Operation[],
  area: OperationsArea
): { shapes: Shape[]; items: Item[]; bottom: number } {
  const { x, y, measure, linked, idOf } = area;
  const [ops, bodies] = withoutBodies(all);
  const shapes: Shape[] = [];
  const items: Item[] = [];
  const [rows, chips] = place(ops, area, bodies);
  const shown = rows.slice(0, MOST_ROWS);
  shown.forEach(({ line, more }, index) => {
    if (!more && line > 0) {
      shapes.push(words(x + 10, y + index * ROW + 13, String(line), 'note', 'muted', 'right'));
    }
  });
  const visible = new Set(shown.flatMap(row => row.ops.map(op => op.name)));
  const arrows: [Shape[], Shape[]] = [[], []]; // what is lit stands over the others
  for (const op of ops.filter(({ name }) => visible.has(name))) {
    for (const input of new Set(op.inputs)) {
      const [from, to] = [chips.get(input), chips.get(op.name)];
      if (!from || !to || from === to || !visible.has(input)) {
        continue;
      }
      const lit = linked?.ops.has(idOf(op.name, op.plan)) === true && linked.ops.has(idOf(input, op.plan));
      if (lit || ops.length <= FEW || Math.abs(to.row - from.row) <= 1) {
        arrows[lit ? 1 : 0].push(arrow(from, to, lit ? 'link' : 'line2', x + NUMBERS - 5));
      }
    }
  }
  shapes.push(...arrows.flat());
  for (const op of shown.flatMap(row => row.ops)) {
    const chip = chips.get(op.name);
    if (!chip) {
      continue;
    }
    const id = idOf(op.name, op.plan);
    const lit = linked?.ops.has(id) === true;
    const body = bodies.get(op.name);
    const paint: Paint = lit
      ? { fill: 'lit', stroke: 'link', thickness: 2 }
      : { fill: 'sunk', stroke: area.isHost ? 'host' : 'line2', thickness: 0.75 };
    shapes.push(box(chip.x + 0.5, chip.y + 0.5, chip.width, 18, { radius: area.isHost ? 0 : 2, ...paint }));
    const text = clip(titleOf(op, body), chip.width - 8, 'body', measure);
    shapes.push(words(chip.x + 7, chip.y + 13.5, text, lit ? 'name' : 'body', 'text'));
    items.push({
      id: `op:${id}`,
      kind: 'op',
      label: body
        ? `${describe(op)} ${joined(', ', turnsOf(op), some(body.length, 'operation'))} inside.`
        : describe(op),
      level: area.level,
      ...(body && { expanded: area.open.has(`op:${id}`) }),
      ...{ x: chip.x, y: chip.y, width: chip.width, height: 18 }
    });
  }
  const hidden = rows.slice(MOST_ROWS).reduce((sum, row) => sum + row.ops.length, 0);
  const bottom = y + Math.max(0, shown.length - 1) * ROW + 27;
  if (hidden > 0) {
    const text = `and ${some(hidden, 'more operation')}; the table has them all`;
    shapes.push(words(x + NUMBERS, bottom + 6, text, 'note', 'muted'));
  }
  let end = shown.length ? bottom + (hidden ? 16 : 0) : y;
  for (const op of shown.flatMap(row => row.ops)) {
    const body = bodies.get(op.name);
    if (!body || !area.open.has(`op:${idOf(op.name, op.plan)}`)) {
      continue;
    }
    // Its body stands below in a frame of its own; of a branch both sides, beside one another where there is room.
    const sides = sidesOf(op.name, body);
    const head = joined(' · ', op.loop || `in each iteration of ${op.written}`, turnsOf(op));
    const frames = sides.length ? sides : [[head, body] as const];
    const room = area.width - 12;
    const wide = frames.length * LEAST_SIDE <= room ? (room + 6) / frames.length : room + 6;
    let top = end;
    let bottom = end;
    frames.forEach(([title, inside], index) => {
      const left = x + 12 + (wide < room ? index * wide : 0);
      top = wide < room ? end : bottom;
      const paint: Paint = { radius: 3, stroke: 'line2', dash: sides.length ? [4, 2] : [] };
      const frame = box(left + 0.5, top + 4.5, wide - 6, 0, paint);
      shapes.push(frame, words(left + 8, top + 18, clip(title, wide - 20, 'note', measure), 'note', 'muted'));
      const inner = layoutOperations(
        inside.map(one => (one.parent === op.name ? { ...one, parent: '' } : one)),
        { ...area, x: left + 8, y: top + 26, width: wide - 20, level: area.level + 1 }
      );
      shapes.push(...inner.shapes);
      items.push(...inner.items);
      frame.height = inner.bottom - top - 4;
      bottom = Math.max(bottom, inner.bottom + 6);
    });
    end = bottom;
  }
  return { shapes, items, bottom: end };
}

/** What a branch has on each side, by where its own operations are; none for a loop. */
export function sidesOf(own: string, body: readonly Operation[]): [string, Operation[]][] {
  const byName = new Map(body.map(op => [op.name, op]));
  const sideOf = (op: Operation): string => {
    let at = op;
    for (let outer = byName.get(at.parent), steps = 0; at.parent !== own && outer && steps < 99; steps++) {
      at = outer;
      outer = byName.get(at.parent);
    }
    return at.side;
  };
  return SIDES.map((side): [string, Operation[]] => [side, body.filter(op => sideOf(op) === side)]).filter(
    ([, ops]) => ops.length > 0
  );
}

/** Operations of a loop's body are shown in the outermost loop that is here; those of the loop `within` stand for themselves. */
export function withoutBodies(ops: readonly Operation[], within = ''): [Operation[], Map<string, Operation[]>] {
  const owner = new Map(ops.map(op => [op.name, op.parent]));
  const bodies = new Map<string, Operation[]>();
  const top = ops.filter(op => {
    let outer = '';
    for (let next = op.parent, steps = 0; next !== within && owner.has(next) && steps < 99; steps++) {
      outer = next;
      next = owner.get(next) ?? '';
    }
    if (outer) {
      put(bodies, outer, op);
    }
    return outer === '';
  });
  return [top, bodies];
}

function titleOf(op: Operation, body: readonly Operation[] | undefined): string {
  return body ? `${op.loop || op.written} · ${body.length}` : labelOf(op);
}

function place(
  ops: readonly Operation[],
  { x, y, width, measure }: OperationsArea,
  bodies: ReadonlyMap<string, readonly Operation[]>
): [Row[], Map<string, Chip>] {
  const rows: Row[] = [];
  const chips = new Map<string, Chip>();
  const right = x + width;
  for (const op of ops) {
    const line = op.lines[0]?.line ?? 0;
    const wide = Math.min(measure(titleOf(op, bodies.get(op.name)), 'name') + 14, width - NUMBERS); // as when it is lit
    const last = rows.at(-1);
    const goesOn = last?.line === line;
    let row = last;
    if (!row || !goesOn || row.end + wide > right) {
      row = { line, ops: [], more: goesOn, end: x + NUMBERS };
      rows.push(row);
    }
    chips.set(op.name, {
      x: row.end,
      y: y + (rows.length - 1) * ROW,
      width: wide,
      row: rows.length - 1,
      column: row.ops.length
    });
    row.ops.push(op);
    row.end += wide + GAP;
  }
  return [rows, chips];
}

/** Between rows, and past whole rows along `lane`: no arrow crosses an operation. */
function arrow(from: Chip, to: Chip, ink: Ink, lane: number): Shape {
  const middle = from.y + 9;
  if (from.row === to.row && to.column === from.column + 1) {
    const path = `M${from.x + from.width + 2} ${middle}H${to.x - 2}`;
    return { shape: 'stroke', path, ink, arrow: { x: to.x - 1, y: middle, to: 'right' } };
  }
  if (from.row === to.row) {
    const [start, end] = [from.x + from.width / 2, to.x + to.width / 2];
    const path = `M${start} ${from.y + 19}C${start} ${from.y + 27} ${end} ${from.y + 27} ${end} ${from.y + 20}`;
    return { shape: 'stroke', path, ink };
  }
  const offset = Math.min(from.width, to.width) / 2;
  const [startX, endX] = [from.x + offset, to.x + offset];
  const [startY, endY] = [from.y + 19, to.y - 2];
  const half = (startY + endY) / 2;
  const isFar = Math.abs(to.row - from.row) > 1;
  const path = isFar
    ? `M${startX} ${startY}v1.5H${lane}V${endY - 4}H${endX}V${endY}`
    : Math.abs(startX - endX) < 2
      ? `M${endX} ${startY}V${endY}`
      : `M${startX} ${startY}C${startX} ${half + 3} ${endX} ${half - 4} ${endX} ${endY}`;
  return { shape: 'stroke', path, ink, arrow: { x: endX, y: to.y - 1, to: 'down' } };
}
