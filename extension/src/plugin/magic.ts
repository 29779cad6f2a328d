/** Pure: the `%%jit` line of a cell. */

/** What stands on a cell's first line that has something: `%%jit`, another cell magic, or no magic of a cell. */
export function magicOf(source: string): 'jit' | 'other' | 'none' {
  const first = source.trimStart();
  return /^%%jit(?![\w?])/.test(first) ? 'jit' : first.startsWith('%%') ? 'other' : 'none';
}

/** The edit that puts `%%jit` above a cell, or takes its line away with the options in it: what `[start, end)` becomes. */
export function toggled(source: string): { start: number; end: number; text: string } {
  if (magicOf(source) !== 'jit') {
    return { start: 0, end: 0, text: '%%jit\n' };
  }
  const start = source.length - source.trimStart().length;
  const line = source.indexOf('\n', start);
  return { start, end: line < 0 ? source.length : line + 1, text: '' };
}

/** Whether `%jit` is on in a kernel, and how; `on` is null where it has not loaded jitlab, or does not say. */
export interface JitSwitch {
  on: boolean | null;
  level: string;
  strict: boolean;
}

export const UNKNOWN: JitSwitch = { on: null, level: '', strict: false };

/** The kernel's message of that. */
export function readSwitch(message: unknown): JitSwitch | null {
  const { op, on, level, strict } = (message ?? {}) as Record<string, unknown>;
  return op === 'switch'
    ? {
        on: typeof on === 'boolean' ? on : null,
        level: typeof level === 'string' ? level : '',
        strict: strict === true
      }
    : null;
}

/** What the button in the toolbar says, and on hover. */
export function switchText({ on, level, strict }: JitSwitch): { text: string; about: string } {
  if (on === true) {
    const how = [level === 'O0' ? level : '', strict ? 'strict' : ''].filter(Boolean).join(' ');
    return {
      text: `jit on${how && ` ${how}`}`,
      about: `Every cell runs compiled (%jit on${level === 'O0' ? ' --level O0' : ''}${strict ? ' --strict' : ''}). Click to end that: %jit off`
    };
  }
  const load = on === null ? '%load_ext jitlab and ' : '';
  return { text: 'jit off', about: `Compile every cell from the next one on: ${load}%jit on` };
}
