import type { CanvasView } from '../../base/canvas';
import { copyLine, h, icon } from '../../base/dom';
import { duration, sentence, some } from '../../base/format';
import { swatch } from '../../base/marks';
import type { Position } from '../../report/report';
import { spentText, type Entry, type Ledger, type Spent } from './layout';

/** A name of more letters has a row of its own above what it was and is. */
const LONG = 12;

/** The ledger is words and a difference, so its picture is its table; `bar` is given the parts of a time to draw. */
export function retracesTable(
  ledger: Ledger,
  goTo: (at: Position) => void,
  bar: (spent: readonly Spent[]) => CanvasView
): HTMLElement {
  return h(
    'div',
    ledger.entries.map(entry => entryElement(entry, goTo, bar)),
    ledger.warmUp.map(({ title, seconds, text, spent }) =>
      h(
        'div.jl-entry.jl-warm',
        h(
          'div.jl-entry-head.jl-is-compile',
          icon('clock'),
          h('span.jl-entry-title', `First call of ${title}`),
          h('span.jl-lost', duration(seconds))
        ),
        text && h('div.jl-note', sentence(text)),
        spent.length > 0 && h('div.jl-note', `First call: ${spentText(spent)}.`)
      )
    ),
    ledger.entries.length + ledger.warmUp.length === 0 && h('p.jl-muted', 'Nothing was traced.')
  );
}

function entryElement(
  entry: Entry,
  goTo: (at: Position) => void,
  bar: (spent: readonly Spent[]) => CanvasView
): HTMLElement {
  const { at, fix, unfixed } = entry;
  const harmless = fix === null;
  return h(
    'div.jl-entry',
    h(
      'div',
      { class: `jl-entry-head jl-is-${harmless ? 'compile' : 'retrace'}` },
      icon('retrace'),
      h('b.jl-entry-title', entry.title),
      h('span.jl-lost', `${duration(entry.seconds)} lost`)
    ),
    h(
      'div.jl-entry-facts',
      withDots([
        entry.cause,
        entry.where && (at ? h('button.jl-link.jl-inline', { onclick: () => goTo(at) }, entry.where) : entry.where),
        entry.site,
        entry.share
      ]),
      entry.badge && h('span.jl-badge-word', entry.badge)
    ),
    diffElement(entry, harmless),
    entry.text && h('div.jl-note.jl-muted', sentence(entry.text)),
    entry.did && h('div.jl-note.jl-muted', entry.did),
    entry.spent.length > 0 && spentElement(entry.spent, bar),
    unfixed && h('div.jl-note', icon(entry.isDone ? 'ok' : 'retrace'), ` ${unfixed.text}`),
    fix && (fix.form === 'words' ? h('div', sentence(fix.text)) : copyLine(fix.text)),
    !harmless && entry.place && h('div.jl-note', entry.place),
    !harmless && entry.proof && h('div.jl-note', icon('ok'), ` Replayed: ${sentence(entry.proof)}`)
  );
}

/** Old struck, new bold; what did not change is folded with its count. */
function diffElement(entry: Entry, harmless: boolean): HTMLElement {
  const rows = h(
    'div',
    { class: `jl-diff ${harmless ? 'jl-harmless' : ''}`, role: 'table', 'aria-label': 'What changed' },
    entry.changes.map(({ argument, before, after }, index) =>
      h(
        'div',
        { role: 'row', class: argument.length > LONG && 'jl-long' },
        h('span', { role: 'rowheader' }, argument),
        h('span.jl-old', { role: 'cell' }, before),
        h('span', { role: 'presentation' }, '→'),
        h(
          'span.jl-new',
          { role: 'cell' },
          after + (index === 0 && entry.count > 1 ? ` (+${entry.count - 1} more)` : '')
        )
      )
    )
  );
  const unnamed = entry.sameCount - entry.same.length;
  return entry.sameCount > 0
    ? h(
        'div',
        rows,
        h(
          'details.jl-equal',
          h('summary.jl-note', equalText(entry)),
          h(
            'ul.jl-list',
            entry.same.map(([argument, text]) => h('li', h('code', `${argument} = ${text}`))),
            unnamed > 0 && h('li', `and ${unnamed} more`)
          )
        )
      )
    : rows;
}

function equalText({ sameCount }: Entry): string {
  return sameCount === 1 ? '1 other argument is equal' : `${some(sameCount, 'other argument')} are equal`;
}

/** Where the time went: a bar, and its legend with the figures. */
function spentElement(spent: readonly Spent[], bar: (spent: readonly Spent[]) => CanvasView): HTMLElement {
  return h(
    'div.jl-spent',
    bar(spent).element,
    h(
      'div.jl-keys',
      spent.map(({ step, seconds, mark }) => h('span', swatch(mark), ` ${step} ${duration(seconds)}`))
    )
  );
}

function withDots(parts: readonly (HTMLElement | string)[]): (HTMLElement | string)[] {
  const said = parts.filter(part => part !== '');
  return said.flatMap((part, index) => (index === 0 ? [part] : [' · ', part]));
}
