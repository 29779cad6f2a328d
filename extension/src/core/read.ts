/** Unknown JSON, by the type that is wanted of it: what is missing or of another type becomes empty, never an error. */

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function record(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function records(value: unknown): Record<string, unknown>[] {
  return list(value).filter(isRecord);
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
