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
