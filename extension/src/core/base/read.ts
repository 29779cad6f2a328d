/** Unknown JSON, by the type that is wanted of it: what is missing or of another type becomes empty, never an error. */

export type Json = Record<string, unknown>;

export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function record(value: unknown): Json {
  return isRecord(value) ? value : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function records(value: unknown): Json[] {
  return list(value).filter(isRecord);
}

/** Null for what is no record. */
export function maybe<T>(value: unknown, read: (value: Json) => T): T | null {
  return isRecord(value) ? read(value) : null;
}

/** One of some words; the first of them for what is none. */
export function choice<T extends string>(value: unknown, words: readonly [T, ...T[]]): T {
  return words.find(word => word === value) ?? words[0];
}

/** What is said of a request that was refused, or went wrong. */
export function refusal(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function flag(value: unknown): boolean {
  return value === true;
}

/** The list itself where it is what it should be: of 50 000 operations a copy each is felt. */
export function numbers(value: unknown): number[] {
  const all = list(value);
  return all.every(entry => typeof entry === 'number') ? all : all.filter(entry => typeof entry === 'number');
}

/** As `list(value).map(text)`; the list itself where it has nothing but text. */
export function texts(value: unknown): string[] {
  const all = list(value);
  return all.every((entry): entry is string => typeof entry === 'string' && clean(entry) === entry)
    ? all
    : all.map(text);
}

export function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

export function amount(value: unknown): number {
  return number(value) ?? 0;
}

export function text(value: unknown): string {
  return typeof value === 'string' ? clean(value) : typeof value === 'number' ? String(value) : '';
}

/** Not those that lay out code, nor what joins emoji. */
const ACTS = /(?![\n\t\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{NChar}]/gu;

/** Text that can't act, as `clean` of jitlab/ir/graphs/dot.py has it: what turns, hides or parts other text is a visible escape. */
export function clean(value: string): string {
  return /[^\n -~]/.test(value)
    ? value.replace(ACTS, letter => {
        const code = letter.codePointAt(0) ?? 0;
        const [mark, digits] = code < 256 ? ['x', 2] : code < 65_536 ? ['u', 4] : ['U', 8];
        return letter === '\r' ? '\\r' : `\\${mark}${code.toString(16).padStart(digits, '0')}`;
      })
    : value;
}

/** A place in a file or cell. */
export interface Position {
  file: string;
  line: number;
  /** From and to, where it ends in the line in which it begins. */
  columns?: [number, number];
}

/** Beside figures, and in a map, the program's words stand as they are: without the marks around them that a text has. */
export function words(value: unknown): string {
  return text(value).replaceAll('`', '');
}

/** Operations of a line have one place: each is made once and shared. */
const known = new Map<string, Position[]>();
const MOST_KNOWN = 50_000;

export function positions(value: unknown): Position[] {
  const [span, more] = list(value);
  if (more !== undefined || !Array.isArray(span)) {
    return list(value).map(positionOf);
  }
  const key = span.join('\n');
  let found = known.get(key);
  if (!found) {
    if (known.size === MOST_KNOWN) {
      known.clear();
    }
    found = [positionOf(span)];
    known.set(key, found);
  }
  return found;
}

/** Of a file or cell, line, column, end line, end column. */
export function positionOf(value: unknown): Position {
  const [file, line, start, endLine, end] = list(value);
  const position: Position = { file: text(file), line: number(line) ?? 0 };
  return typeof start === 'number' && typeof end === 'number' && start >= 0 && endLine === line
    ? { ...position, columns: [start, end] }
    : position;
}
