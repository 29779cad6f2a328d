/**
 * Numbers and names as people read them: a unit on each, and no digit that says nothing.
 * Bytes, times, counts and ratios are as jitlab/messages/units.py writes them.
 */

export function duration(seconds: number): string {
  if (seconds >= 0.9995) {
    return `${seconds.toFixed(seconds >= 99.95 ? 0 : seconds >= 9.995 ? 1 : 2)} s`;
  }
  const ms = seconds * 1e3;
  if (ms >= 0.0995) {
    return `${ms.toFixed(ms >= 99.95 ? 0 : ms >= 0.995 ? 1 : 2)} ms`;
  }
  const us = seconds * 1e6;
  return us && us < 0.05 ? '< 0.1 µs' : `${us.toFixed(us >= 9.95 || us === 0 ? 0 : 1)} µs`;
}

/** `142 ms ± 16.6 ms`, of a mean of several; of one run its time alone. */
export function spread(seconds: number, deviation: number | null): string {
  return duration(seconds) + (deviation === null ? '' : ` ± ${duration(deviation)}`);
}

export function bytes(count: number): string {
  for (const [unit, size] of [
    ['GB', 1e9],
    ['MB', 1e6],
    ['kB', 1e3]
  ] as const) {
    if (count >= 0.9995 * size) {
      return `${(count / size).toFixed(count >= 99.95 * size ? 0 : 1)} ${unit}`;
    }
  }
  return `${count.toFixed(0)} B`;
}

/** ", 54 % of the work"; of nearly all of it nothing. */
export function shareText(share: number): string {
  return share < 0.995 ? `, ${percent(share)} of the work` : '';
}

export function percent(part: number): string {
  return part > 0 && part < 0.01 ? '< 1 %' : `${(part * 100).toFixed(0)} %`;
}

/** 12,345. One formatter for all: making one, as toLocaleString does, takes longer than drawing what it is for. */
export function grouped(count: number): string {
  return count < 1000 ? String(count) : GROUPED.format(count);
}

const GROUPED = new Intl.NumberFormat('en-US');

export function some(count: number, noun: string): string {
  return `${grouped(count)} ${count === 1 ? noun : plural(noun)}`;
}

/** `kernels`, `passes`, `copies`. */
export function plural(noun: string): string {
  return /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : noun + (noun.endsWith('s') ? 'es' : 's');
}

/** [3, 4, 5, 8] -> `3–5, 8` */
export function lineRanges(lines: readonly number[]): string {
  const sorted = [...new Set(lines)].filter(line => line > 0).sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const line of sorted) {
    const open = ranges.at(-1);
    if (open && line === open[1] + 1) {
      open[1] = line;
    } else {
      ranges.push([line, line]);
    }
  }
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from}–${to}`)).join(', ');
}

/** `<cell 7>` is what Jupyter's reader knows as In [7]; of a file its name is enough. */
export function fileName(file: string): string {
  const cell = /^<cell (\d+)>$/.exec(file)?.[1];
  return cell === undefined ? (file.split(/[\\/]/).at(-1) ?? file) : `In [${cell}]`;
}

export function lines(numbers: readonly number[]): string {
  const ranges = lineRanges(numbers);
  return ranges && `${/[–,]/.test(ranges) ? 'lines' : 'line'} ${ranges.replace(/, (\d+(–\d+)?)$/, ' and $1')}`;
}

/** The same of things that each have places. */
export function whereOf(...things: readonly { lines: readonly { line: number }[] }[]): string {
  return lines(things.flatMap(thing => thing.lines.map(({ line }) => line)));
}

const SHORT_KIND: Record<string, string> = { float: 'f', int: 'i', uint: 'u', complex: 'c' };

/** float32 and [4096, 784] -> `f32[4096,784]` */
export function arrayType(dtype: string, shape: readonly number[]): string {
  const short = dtype.replace(/^([a-z]+)(\d+)$/, (whole, kind: string, bits: string) =>
    SHORT_KIND[kind] ? SHORT_KIND[kind] + bits : whole
  );
  return `${short}[${shape.join(',')}]`;
}

/** Bytes of an array; null for a dtype whose size is unknown, and for what is several arrays. */
export function arrayBytes(dtype: string, shape: readonly number[]): number | null {
  const bits = dtype === 'bool' ? 8 : Number(/(\d+)$/.exec(dtype)?.[1]);
  return bits ? shape.reduce((product, extent) => product * extent, bits / 8) : null;
}

/** What there is of some texts, with something between. */
export function joined(between: string, ...parts: readonly (string | false | null | undefined)[]): string {
  return parts.filter(Boolean).join(between);
}

/** The same as sentences. */
export function sentences(...parts: readonly string[]): string {
  return joined(' ', ...parts.map(sentence));
}

export function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** A sentence of jitlab's own words begins with a capital; what else it begins with is a name of the user's. */
export function begun(text: string): string {
  return text.replace(/^(an?|it|the) /, capital);
}

export function sentence(text: string): string {
  return /[.!?…]$/.test(text) || text === '' ? text : `${text}.`;
}

/** A number stays beside its unit, and what an arrow leads to beside the arrow, where a text is broken into lines. */
export function unbroken(text: string): string {
  return text.replace(/(?<=\d) (?=(?:%|×|[kMG]?B\b|[µm]?s\b))| (?=→)|(?<=→) (?=\d)/g, '\u00a0');
}

/** " in 20 calls"; "" of one. */
export function inCalls(calls: number): string {
  return calls > 1 ? ` in ${some(calls, 'call')}` : '';
}

/** Whether what is placed on a device, as reports call it, runs on a GPU. */
export const isOnGpu = (device: string): boolean => /gpu|cuda/i.test(device);
