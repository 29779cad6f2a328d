import { bytes, duration, some } from '../../../base/format';
import type { Measure, Type } from '../../../base/shapes';
import { placeOf, type TreeNode } from '../tree';
import { turnsOf } from '../words';

/** A closed box grows with its words up to this; what is longer is cut in its middle. */
const WIDEST = 320;
/** Beside a name: the selvage, the triangle of an open box, the edges. */
const BESIDE = 36;

/** Letters keep their size when the picture is made smaller to fit: a name has its room down to four fifths. */
const SLACK = 1.2;

/** What stands below the name of a closed box, the most telling first: what does not fit goes from the end. */
export function factsOf(box: TreeNode): string[] {
  const place = placeOf(box);
  const where = place && `${/[–,]/.test(place) ? 'lines' : 'line'} ${place}`;
  if (box.kind === 'host') {
    return ['run by NumPy', where].filter(Boolean);
  }
  const kernels = box.flow?.kernelCount ?? 0;
  return [
    some(box.count, 'operation'),
    box.kind === 'cluster' && kernels ? some(kernels, 'kernel') : '',
    where,
    box.bytes ? bytes(box.bytes) : ''
  ].filter(Boolean);
}

/** The facts of a box, with its time first where that does not stand beside the name. Said of a box once. */
export function knownFacts(box: TreeNode, timed: boolean): readonly string[] {
  let known = FACTS.get(box);
  if (!known) {
    const facts = factsOf(box);
    known = [facts, box.seconds === null ? facts : [duration(box.seconds), ...facts]];
    FACTS.set(box, known);
  }
  return known[timed ? 0 : 1];
}

/** A picture that moves asks in every frame. */
const FACTS = new WeakMap<TreeNode, [readonly string[], readonly string[]]>();

/** What follows a loop's head: how often it turns, else how many operations are in it. */
export function bodyOf(box: TreeNode): string {
  return ` · ${turnsOf(box.op) || some(box.count - 1, 'operation')}`;
}

/** How wide a closed box has to be for its words. */
export function closedWidth(box: TreeNode, measure: Measure): number {
  switch (box.kind) {
    case 'op':
      return Math.min(WIDEST, SLACK * measure(box.name, 'name') + 20); // as wide as it is when it is lit
    case 'loop':
      return Math.min(WIDEST, SLACK * measure(box.name + bodyOf(box), 'name') + BESIDE);
    default: {
      const least = box.kind === 'kernel' || box.kind === 'part' ? 188 : 208;
      const time = box.seconds === null ? 0 : measure(duration(box.seconds), 'name') + 10;
      const title = measure(box.name, 'name') + time + BESIDE;
      const facts = measure(factsOf(box).join(' · '), 'note') + 24;
      return Math.min(WIDEST, Math.max(least, title, facts));
    }
  }
}

/** As many of the facts as have room, the first ones first. */
export function fitting(facts: readonly string[], room: number, type: Type, measure: Measure): string {
  for (let most = facts.length; most > 0; most--) {
    const text = facts.slice(0, most).join(' · ');
    if (measure(text, type) <= room) {
      return text;
    }
  }
  return shorten(facts[0] ?? '', room, type, measure);
}

/**
 * Cut in its middle, because names that begin alike differ at their ends (`stridedslice_1`). By the share of its letters:
 * while a picture moves nothing is measured twice.
 */
export function shorten(text: string, room: number, type: Type, measure: Measure): string {
  const width = measure(text, type);
  if (width <= room) {
    return text;
  }
  const letters = Math.floor((text.length * (room - 10)) / width);
  if (letters < 2) {
    return '';
  }
  const tail = Math.floor(letters * 0.4);
  return `${text.slice(0, letters - tail)}…${tail ? text.slice(-tail) : ''}`;
}

/** A stretch of the screen. */
export interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A name that its box has no room for. */
export interface Wanted {
  text: string;
  width: number;
  /** Where it stands over its own box, and that is narrower. */
  short: { text: string; width: number };
  /** Of the box, as far as it is on the screen. */
  box: Area;
  /** Of the box around it; null of the whole graph's. */
  around: Area | null;
  /** How deep it lies. */
  level: number;
  /** Pointed at or pinned. */
  lit: boolean;
  seconds: number;
  kind: 'group' | 'closed' | 'operation';
}

/** Where words stand: their left upper corner. */
export interface Placed extends Area {
  text: string;
}

/** How high a label's ground is. */
export const TALL = 13;
/** A screenful of names that can be read. */
const EACH = 2500;
const CELL = 4;

/** Which parts of the screen boxes and words take, in cells: asked for very many places in every frame. */
export class Room {
  constructor(
    readonly width: number,
    readonly height: number
  ) {
    this.columns = Math.ceil(width / CELL);
    this.rows = Math.ceil(height / CELL);
    this.cells = new Uint8Array(this.columns * this.rows);
  }

  take(area: Area): void {
    const [left, top, right, bottom] = this.within(area);
    for (let row = top; row < bottom; row++) {
      this.cells.fill(1, row * this.columns + left, row * this.columns + Math.max(left, right));
    }
  }

  isFree(area: Area): boolean {
    const [left, top, right, bottom] = this.within(area);
    for (let row = top; row < bottom; row++) {
      for (let column = left; column < right; column++) {
        if (this.cells[row * this.columns + column]) {
          return false;
        }
      }
    }
    return this.holds(area);
  }

  /** Whether all of an area is on the screen. */
  holds({ x, y, width, height }: Area): boolean {
    return x >= 0 && y >= 0 && x + width <= this.width && y + height <= this.height;
  }

  /** Moved so that all of it is on the screen. */
  into({ x, y, width, height }: Area): Area {
    const near = (at: number, most: number): number => Math.max(0, Math.min(most, at));
    return { x: near(x, this.width - width), y: near(y, this.height - height), width, height };
  }

  private within({ x, y, width, height }: Area): [number, number, number, number] {
    const cell = (at: number, most: number): number => Math.max(0, Math.min(most, at));
    return [
      cell(Math.floor(x / CELL), this.columns),
      cell(Math.floor(y / CELL), this.rows),
      cell(Math.ceil((x + width) / CELL), this.columns),
      cell(Math.ceil((y + height) / CELL), this.rows)
    ];
  }

  private readonly columns: number;
  private readonly rows: number;
  private readonly cells: Uint8Array;
}

/** So many of the slowest have their name in any case, if need be over their own box. */
const IN_ANY_CASE = 16;

/**
 * Pure: what is pointed at first, then the slowest: beside its box where nothing stands, and no label on another. `room` has
 * what is drawn, `beside` for each level the boxes at it: a name in another box of its level would be taken for that one's; `taken`
 * has the names that stand in their boxes.
 */
export function placeLabels(
  wanted: Wanted[],
  room: Room,
  beside: readonly Room[],
  taken = new Room(room.width, room.height)
): Placed[] {
  const most = Math.max(12, Math.round((room.width * room.height) / EACH));
  const placed: Placed[] = [];
  const order = wanted.sort(
    (a, b) =>
      Number(b.lit) - Number(a.lit) ||
      b.seconds - a.seconds ||
      Number(a.kind === 'operation') - Number(b.kind === 'operation')
  );
  order.slice(0, 6 * most).forEach((one, rank) => {
    if (placed.length === most) {
      return;
    }
    const [outside, over] = placesOf(one);
    const free = outside.filter(
      area => taken.isFree(area) && room.isFree(area) && beside[one.level]?.isFree(area) !== false
    );
    const head = one.kind === 'group' && isWide(one) ? headOf(one) : null;
    const inside = head && taken.isFree(head) && room.isFree(head) ? head : undefined;
    const within = free.find(area => one.around !== null && contains(one.around, area));
    const isSure = one.kind === 'group' || one.lit || (one.kind === 'closed' && rank < IN_ANY_CASE);
    const beyond = inside ?? within ?? free[0];
    const place = beyond ?? (isSure ? over.map(area => room.into(area)).find(area => taken.isFree(area)) : undefined);
    if (place) {
      taken.take(place);
      placed.push({ ...place, text: beyond || isWide(one) ? one.text : one.short.text });
    }
  });
  return placed;
}

function contains(outer: Area, { x, y, width, height }: Area): boolean {
  return x >= outer.x && y >= outer.y && x + width <= outer.x + outer.width && y + height <= outer.y + outer.height;
}

/** Between a box and a name beside it; no less than a cell, or its own box would be in the way. */
const GAP = CELL;

/** Whether a box is as wide as its name with its time. */
function isWide({ box, width }: Wanted): boolean {
  return width + 6 <= box.width;
}

/** Where a name may stand: first where it hides nothing, then over its own box. */
function placesOf(wanted: Wanted): [Area[], Area[]] {
  const { box, kind } = wanted;
  const width = wanted.width + 4;
  const own = isWide(wanted) ? width : wanted.short.width + 4;
  const at = (x: number, y: number, wide = width): Area => ({ x, y, width: wide, height: TALL });
  const { x, y } = box;
  const [right, below] = [x + box.width + GAP, y + box.height + GAP];
  const [left, above] = [x - width - GAP, y - TALL - GAP];
  const [middle, half] = [x + (box.width - width) / 2, y + (box.height - TALL) / 2];
  if (kind === 'group') {
    return [
      [at(x, above), at(right, y), at(left, y), at(x, below)],
      [at(x + 1, y + 1, own), at(x + 1, half, own)]
    ];
  }
  const outside = [at(right, half), at(left, half), at(middle, above), at(middle, below)];
  return [outside, [at(x + (box.width - own) / 2, half, own)]];
}

/** The head of a box that holds others, where what is in it leaves room. */
function headOf({ box, width }: Wanted): Area {
  return { x: box.x + 1, y: box.y + 1, width: width + 4, height: TALL };
}
