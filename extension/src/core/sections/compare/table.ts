import { changeElement } from '../../base/change';
import { h } from '../../base/dom';
import { duration } from '../../base/format';
import { swatch } from '../../base/marks';
import type { Comparison, ComparisonRow } from '../../report/answers';
import { runsText, wordOf } from './layout';

/** The same rows as a table; narrow, the times stand below the change. */
export function comparisonTable({ rows, runs }: Comparison, narrow: boolean): HTMLElement {
  return h(
    'table',
    { 'aria-label': 'Change of each part' },
    h(
      'thead',
      h(
        'tr',
        h('th', 'part'),
        !narrow && [head('before, a call', runs[0]), head('now, a call', runs[1])],
        head('change')
      )
    ),
    h(
      'tbody',
      rows.map(row =>
        h(
          'tr',
          h(
            'th',
            { scope: 'row', title: row.name },
            row.kind === 'cluster' && row.color !== null && [swatch(row.color), ' '],
            row.kind === 'host' && [swatch('host'), ' '],
            row.kind === 'cell' ? h('b', row.name) : row.name
          ),
          !narrow && [seconds(row.before), seconds(row.after)],
          h(
            'td.jl-number.jl-wrap',
            row.change ? changeElement(row.change) : wordOf(row),
            narrow && h('div.jl-note.jl-muted', times(row))
          )
        )
      )
    )
  );
}

function times({ before, after }: ComparisonRow): string {
  return [before, after].map(value => (value === null ? '–' : duration(value))).join(' → ');
}

/** Of more runs than one those that were taken together. */
function head(text: string, runs: readonly number[] = []): HTMLElement {
  return h('th.jl-number', text, runs.length > 1 && h('div.jl-muted', runsText(runs)));
}

function seconds(value: number | null): HTMLElement {
  return h('td.jl-number', value === null ? '' : duration(value));
}
