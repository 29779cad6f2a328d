import { h } from '../../base/dom';
import { swatch } from '../../base/marks';
import { colorsOf, isByKernel } from '../../report/colors';
import type { Cluster } from '../../report/report';
import type { PreparedLane } from './prepare';

/** Marks of a lane that are looked at: all kinds of it come early. */
const MOST_MARKS = 10_000;
const KINDS = [
  ...(['host', 'statement', 'copy'] as const),
  ...(['trace', 'retrace', 'capture', 'passes', 'planning', 'quick', 'codegen', 'load'] as const)
];
const NAMES: Record<string, string> = {
  quick: 'quick tier',
  codegen: 'good tier',
  load: 'from the disk cache',
  statement: 'Python'
};

/** What the colours and patterns of the lanes mean: clusters by colour, then each kind that is there. */
export function legendOf(lanes: readonly PreparedLane[], clusters: readonly Cluster[]): HTMLElement[] {
  const byColor = new Map<number, string[]>();
  const colorOf = colorsOf({ clusters });
  for (const { name, color, kernels } of clusters) {
    const parts = isByKernel(clusters)
      ? kernels.map(kernel => [colorOf(name, kernel) ?? color, kernel] as const)
      : [[color, name] as const];
    for (const [of, called] of parts) {
      byColor.set(of, [...new Set([...(byColor.get(of) ?? []), called])]);
    }
  }
  const colors = [...byColor].map(([color, [first = '', ...rest]]): [string | number, string] => [
    color,
    rest.length > 1 ? `${first} and ${rest.length} more` : [first, ...rest].join(' and ')
  ]);
  const used = new Set(lanes.flatMap(lane => lane.marks.slice(0, MOST_MARKS)));
  const kinds = KINDS.filter(kind => used.has(kind)).map((kind): [string, string] => [kind, NAMES[kind] ?? kind]);
  return [...colors, ...kinds].map(([mark, name]) => h('span', swatch(mark), ` ${name}`));
}

const FIRST_KEYS = 5;
const KEYS: [string, string][] = [
  ['W S', 'zoom'],
  ['A D', 'pan'],
  [', .', 'previous, next'],
  ['F', 'fit'],
  ['Esc', 'clear'],
  ['↑ ↓', 'lane, or what is within'],
  ['⇧← ⇧→', 'select, or drag'],
  ['R', 'select the span'],
  ['⏎', 'pin'],
  ['Ctrl+wheel', 'zoom'],
  ['⇧+wheel', 'pan'],
  ['E', 'export'],
  ['T', 'table']
];

/** The keys below the picture: the first of them, or all. */
export function keysOf(all: boolean): HTMLElement[] {
  return [
    ...(all ? KEYS : KEYS.slice(0, FIRST_KEYS)).map(([key, text]) =>
      h('span', ...key.split(' ').map(name => h('kbd', name)), ` ${text}`)
    ),
    h('span', h('kbd', '?'), all ? ' fewer keys' : ' all keys')
  ];
}
