import type { Kernel, Peaks } from '../../report/report';
import { box, words, type Ink, type Item, type Measure, type Picture, type Shape, type Type } from '../../base/shapes';
import { flopRate, isInCache, roofText, scaled, type Roofline, type RoofPoint } from './points';

const HEIGHT = 230;
const TOP = 16;
const BOTTOM = 34;
const LEFT = 62;
const RIGHT = 10;
const SIZE = 10;

/** Pure: both axes logarithmic; the machine's two lines, and each kernel a mark below, or above where it works in the caches. */
export function layoutRoofline(
  { points, peaks }: Roofline,
  width: number,
  measure: Measure,
  lit: (kernel: Kernel) => boolean
): Picture & { items: Item[] } {
  const knee = peaks ? [peaks.flopsPerSecond / peaks.bytesPerSecond] : [];
  const [x, xs] = scaleOf([...points.map(({ intensity }) => intensity), ...knee], LEFT, width - RIGHT, 2);
  const roof = peaks ? [peaks.flopsPerSecond] : [];
  const [y, ys] = scaleOf([...points.map(({ rate }) => rate), ...roof], HEIGHT - BOTTOM, TOP, 2);
  const shapes: Shape[] = [...axes(width, x, xs, y, ys, measure)];
  const items: Item[] = [];
  const marks = points.map(point => ({ point, left: x(point.intensity) - SIZE / 2, top: y(point.rate) - SIZE / 2 }));
  const taken: Area[] = marks.map(({ left, top }) => ({ left, top, right: left + SIZE, bottom: top + SIZE }));
  if (peaks) {
    shapes.push(...roofShapes(peaks, width, x, xs, y, ys, measure, taken));
  }
  if (points.some(isAbove)) {
    shapes.push(words(width - RIGHT, 10, 'above the lines: in cache', 'note', 'muted', 'right'));
  }
  for (const { point, left, top } of marks) {
    const { kernel, name, mark } = point;
    const isLit = lit(kernel);
    shapes.push(box(left, top, SIZE, SIZE, { mark, stroke: isLit ? 'link' : 'bg', thickness: isLit ? 2 : 1 }));
    const text = isInCache(point) && !isAbove(point) ? `${name}, in cache` : name;
    const wide = measure(text, 'note');
    const beside = placeOf(wide, left, top, width, taken, isInCache(point));
    const place = beside ?? nearest([left + SIZE + 4, top - 2], wide, width, taken, FARTHEST);
    if (place) {
      taken.push(place);
      shapes.push(
        ...(beside ? [] : [leader(left + SIZE / 2, top + SIZE / 2, place)]),
        ...said(place, text, isLit ? 'name' : 'note', 'text')
      );
    }
    const told = [flopRate(point.rate), `${Number(point.intensity.toPrecision(2))} operations a byte`, roofText(point)];
    const label = `${name}: ${told.filter(Boolean).join(', ')}.`;
    items.push({
      id: kernel.name,
      kind: 'kernel',
      label,
      level: 1,
      x: left - 6,
      y: top - 6,
      width: SIZE + 12,
      height: SIZE + 12
    });
  }
  return { width, height: HEIGHT, shapes, items };
}

interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Beside a mark, where nothing else stands; null where there is no room. */
function placeOf(
  wide: number,
  left: number,
  top: number,
  width: number,
  taken: readonly Area[],
  above: boolean
): Area | null {
  const [middle, height] = [left + SIZE / 2, 13];
  const [right, before, over, under] = [
    [left + SIZE + 4, top - 2],
    [left - wide - 4, top - 2],
    [middle - wide / 2, top - height - 1],
    [middle - wide / 2, top + SIZE + 1]
  ] as const;
  const places = above ? [before, over, right, under] : [right, under, before, over]; // away from the roof
  return free(
    places.map(([x, y]) => ({ left: x, top: y, right: x + wide, bottom: y + height })),
    width,
    taken
  );
}

/** From a mark to the name that found no room beside it. */
function leader(x: number, y: number, { left, right, top, bottom }: Area): Shape {
  const [toX, toY] = [Math.min(right, Math.max(left, x)), Math.min(bottom - 2, Math.max(top + 2, y))];
  return { shape: 'stroke', path: `M${x} ${y}L${toX} ${toY}`, ink: 'line2' };
}

/** A name at its place, on a ground of its own: the lines of the scales end before it. */
function said({ left, right, top, bottom }: Area, text: string, type: Type, ink: Ink): Shape[] {
  return [
    box(left - 1, top + 1, right - left + 2, bottom - top - 1, { fill: 'bg' }),
    words(left, bottom - 3, text, type, ink)
  ];
}

/** The first of some places where nothing else stands. */
function free(places: readonly Area[], width: number, taken: readonly Area[]): Area | null {
  const apart = (one: Area, other: Area): boolean =>
    one.right + 3 < other.left || one.left > other.right + 3 || one.bottom < other.top || one.top > other.bottom;
  return (
    places.find(
      one =>
        one.left >= LEFT &&
        one.right <= width &&
        one.top >= TOP - 4 &&
        one.bottom <= HEIGHT - BOTTOM &&
        taken.every(other => apart(one, other))
    ) ?? null
  );
}

/** It stands above the roof, so that its place says where its bytes came from. */
function isAbove(point: RoofPoint): boolean {
  return isInCache(point) && (point.ofRoof ?? 0) > 1;
}

type Scale = (value: number) => number;

/** From some values to pixels, with `spare` times as much room at either end; and the first and last value of the axis. */
function scaleOf(values: readonly number[], from: number, to: number, spare: number): [Scale, [number, number]] {
  const known = values.filter(value => value > 0);
  const [low, high] = known.length ? [Math.min(...known) / spare, Math.max(...known) * spare] : [0.1, 10];
  const size = (to - from) / Math.log10(high / low);
  return [value => from + Math.log10(value / low) * size, [low, high]];
}

function axes(
  width: number,
  x: Scale,
  [left, right]: [number, number],
  y: Scale,
  [low, high]: [number, number],
  measure: Measure
): Shape[] {
  const shapes: Shape[] = [];
  const floor = HEIGHT - BOTTOM;
  let free = -Infinity;
  for (const value of decades(left, right)) {
    const at = Math.round(x(value)) + 0.5;
    shapes.push({ shape: 'stroke', path: `M${at} ${TOP}V${floor}`, ink: 'line' });
    const text = String(Number(value.toPrecision(1)));
    if (at - measure(text, 'note') / 2 > free) {
      shapes.push(words(at, floor + 14, text, 'note', 'muted', 'center'));
      free = at + measure(text, 'note') / 2 + 6;
    }
  }
  const all = decades(low, high);
  all.forEach((value, index) => {
    const at = Math.round(y(value)) + 0.5;
    shapes.push({ shape: 'stroke', path: `M${LEFT} ${at}H${width - RIGHT}`, ink: 'line' });
    if (index === all.length - 1 || y(value) - y(all[index + 1] ?? value) > 14) {
      shapes.push(words(LEFT - 4, at + 4, flopRate(value).replace('FLOP/s', ''), 'note', 'muted', 'right'));
    }
  });
  shapes.push(
    words(0, 10, 'FLOP/s', 'note', 'muted'),
    words(width - RIGHT, HEIGHT - 4, 'operations a byte', 'note', 'muted', 'right')
  );
  return shapes;
}

function decades(low: number, high: number): number[] {
  const all: number[] = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power++) {
    all.push(10 ** power);
  }
  return all;
}

function roofShapes(
  peaks: Peaks,
  width: number,
  x: Scale,
  [left, right]: [number, number],
  y: Scale,
  [low]: [number, number],
  measure: Measure,
  taken: Area[]
): Shape[] {
  const { bytesPerSecond, flopsPerSecond } = peaks;
  const knee = flopsPerSecond / bytesPerSecond;
  const start = Math.max(left, low / bytesPerSecond);
  const path = `M${x(start)} ${y(start * bytesPerSecond)}L${x(knee)} ${y(flopsPerSecond)}H${x(right)}`;
  const lines: Shape = { shape: 'stroke', path, ink: 'text', thickness: 1.5 };
  const [from, to] = [x(start), x(knee)];
  const heightAt = (at: number): number =>
    y(bytesPerSecond * start * (knee / start) ** ((at - from) / (to - from || 1)));
  const steps = Array.from({ length: STEPS }, (_, step) => from + ((to - from) * step) / STEPS);
  const step = (to - from) / STEPS;
  taken.push(...steps.map(at => ({ left: at, top: heightAt(at + step), right: at + step, bottom: heightAt(at) })), {
    left: to,
    top: y(flopsPerSecond) - 1,
    right: x(right),
    bottom: y(flopsPerSecond) + 1
  });
  const label = (text: string, place: (wide: number) => [number, number]): Shape[] => {
    const wide = measure(text, 'note');
    const found = nearest(place(wide), wide, width, taken);
    if (found) {
      taken.push(found);
    }
    return found ? said(found, text, 'note', 'muted') : [];
  };
  const flat = y(flopsPerSecond);
  const middle = (from + to) / 2;
  return [
    lines,
    ...label(`arithmetic ${flopRate(flopsPerSecond)}`, wide => [width - RIGHT - wide, flat - 15]),
    ...label(`memory ${scaled(bytesPerSecond, 'B/s')}`, () => [middle + 6, heightAt(middle) + 4])
  ];
}

/** Of all places for a label the nearest to where it belongs. */
function nearest(
  [wantedX, wantedY]: [number, number],
  wide: number,
  width: number,
  taken: readonly Area[],
  farthest = Infinity
): Area | null {
  const all: Area[] = [];
  for (let row = -40; row < 40; row++) {
    for (let column = -40; column < 40; column++) {
      const [left, top] = [wantedX + 6 * column, wantedY + 4 * row];
      all.push({ left, top, right: left + wide, bottom: top + 13 });
    }
  }
  const far = ({ left, top }: Area): number => Math.hypot(left - wantedX, 3 * (top - wantedY));
  return free(
    all.filter(one => far(one) < farthest).sort((one, other) => far(one) - far(other)),
    width - RIGHT + 1,
    taken
  );
}

/** No name stands farther from its mark, rows counting three times. */
const FARTHEST = 240;
/** Pieces of the slope that no text may stand on. */
const STEPS = 12;
