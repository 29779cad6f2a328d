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

export function numbers(value: unknown): number[] {
  return list(value).filter(entry => typeof entry === 'number');
}

export function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}
