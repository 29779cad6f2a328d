import { readReport } from '../src/core/report/read-report';
import type { Report } from '../src/core/report/report';
import type { Measure, Picture, Words } from '../src/core/base/shapes';

/** A fixture as the panel reads it. */
export function report(json: unknown): Report {
  const read = readReport(json);
  if (typeof read === 'string') {
    throw new Error(read);
  }
  return read;
}

const PER_LETTER = { note: 6.1, body: 6.6, name: 7.1, lead: 8.8 };

/** About as wide as the widest common interface font. */
export const measure: Measure = (text, type) => text.length * PER_LETTER[type];

interface Area {
  text: string;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export function areaOf(words: Words): Area {
  const wide = measure(words.text, words.type);
  const left = { left: 0, center: wide / 2, right: wide }[words.align ?? 'left'];
  return words.upright
    ? { text: words.text, left: words.x - 10, right: words.x + 2, top: words.y - left, bottom: words.y - left + wide }
    : { text: words.text, left: words.x - left, right: words.x - left + wide, top: words.y - 9, bottom: words.y + 2 };
}

export function texts(picture: Picture): Area[] {
  return picture.shapes.filter(shape => shape.shape === 'words').map(areaOf);
}

/** Pairs of texts that stand on one another, and texts that stand outside the picture. */
export function misplaced(picture: Picture): string[] {
  const areas = texts(picture);
  const outside = areas
    .filter(
      area => area.left < -1 || area.right > picture.width + 1 || area.top < -1 || area.bottom > picture.height + 1
    )
    .map(area => `outside: ${area.text}`);
  const overlaps = areas.flatMap((a, index) =>
    areas
      .slice(index + 1)
      .filter(b => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
      .map(b => `${a.text} / ${b.text}`)
  );
  return [...outside, ...overlaps];
}
