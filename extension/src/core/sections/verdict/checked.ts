import { h, icon } from '../../base/dom';
import { checkedHead, checkedTexts, worstRows } from '../../report/numerics';
import type { Report } from '../../report/report';

const MOST_ROWS = 30;
/** As in jitlab/report/build/accounting.py. */
const NOT_PYTHON = 'Each operation was compared, not the cell’s own Python; f.check(*args) does that for a function.';

/** What a check beside NumPy found: one line, opened where something is out of bounds; "" where none was made. */
export function checkedElement(report: Report, open: boolean, toggled: (open: boolean) => void): HTMLElement | '' {
  const numerics = worstRows(report.numerics, report.plans);
  if (numerics.length === 0) {
    return '';
  }
  const wrong = numerics.some(({ ok }) => !ok);
  const rows = [...numerics].sort((a, b) => Number(a.ok) - Number(b.ok) || (b.maxUlp ?? 0) - (a.maxUlp ?? 0));
  const details = h(
    'details',
    { class: `jl-details jl-checked jl-note ${wrong ? 'jl-is-wrong' : ''}`, open },
    h('summary', wrong && icon('no'), checkedHead(numerics)),
    h(
      'ul.jl-told',
      { 'aria-label': 'Outputs beside NumPy' },
      rows.slice(0, MOST_ROWS).map(row => {
        const { name, where, off, why } = checkedTexts(row);
        return h(
          'li',
          { class: row.ok ? null : 'jl-is-wrong' },
          h('div.jl-told-head', h('b', name), h('span.jl-muted.jl-grow', where), off),
          why
        );
      }),
      rows.length > MOST_ROWS && h('li.jl-muted', `and ${rows.length - MOST_ROWS} that are nearer`)
    ),
    h('p.jl-muted', NOT_PYTHON)
  );
  details.addEventListener('toggle', () => toggled(details.open));
  return details;
}
