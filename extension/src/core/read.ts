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
  return all.every(entry => typeof entry === 'string') ? all : all.map(text);
}

export function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}
