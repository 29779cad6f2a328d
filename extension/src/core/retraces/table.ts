import { copyLine, h, icon } from '../dom';
import { duration, sentence } from '../format';
import type { Entry, Ledger } from './layout';

/** The ledger is words and a difference, so its picture is its table. */
export function retracesTable(ledger: Ledger): HTMLElement {
  return h(
    'div',
    {},
    ledger.entries.map(entry => entryElement(entry)),
    ledger.warmUp.map(({ title, seconds, text }) =>
      h(
        'div',
        { class: 'jl-entry' },
        h(
          'div',
          { class: 'jl-entry-head jl-is-compile' },
          icon('clock'),
          h('span', { class: 'jl-entry-title' }, `First call of ${title}`),
          h('span', { class: 'jl-lost' }, seconds === null ? '' : duration(seconds))
        ),
        !/^first call/i.test(text) && text && h('div', { class: 'jl-note jl-muted' }, sentence(text))
      )
    ),
    ledger.entries.length + ledger.warmUp.length === 0 && h('p', { class: 'jl-muted' }, 'Nothing was captured again.')
  );
}

function entryElement(entry: Entry): HTMLElement {
  const kind = entry.fix === null ? 'compile' : 'retrace';
  const facts = [entry.cause, entry.where, entry.share].filter(Boolean).join(' · ');
  return h(
    'div',
    { class: 'jl-entry' },
    h(
      'div',
      { class: `jl-entry-head jl-is-${kind}` },
      icon('retrace'),
      h('b', { class: 'jl-entry-title' }, entry.title),
      h('span', { class: 'jl-lost' }, entry.seconds === null ? '' : `${duration(entry.seconds)} lost`)
    ),
    h('div', { class: 'jl-entry-facts' }, facts),
    h(
      'div',
      { class: `jl-diff ${entry.fix === null ? 'jl-harmless' : ''}`, role: 'table', 'aria-label': 'What changed' },
      h(
        'div',
        { role: 'row' },
        h('span', { role: 'rowheader' }, entry.argument),
        h('span', { role: 'cell', class: 'jl-old' }, entry.before),
        h('span', { role: 'presentation' }, '→'),
        h('span', { role: 'cell', class: 'jl-new' }, entry.after + (entry.more ? ` (+${entry.more} more)` : ''))
      )
    ),
    entry.text && h('div', { class: 'jl-note jl-muted' }, sentence(entry.text)),
    entry.fix !== null && entry.proof && h('div', { class: 'jl-note' }, sentence(entry.proof)),
    entry.fix === null ? h('div', { class: 'jl-note' }, icon('ok'), ' Nothing to fix.') : copyLine(entry.fix)
  );
}
