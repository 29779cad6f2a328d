import { h, icon, on, set, takeKey } from '../../base/dom';
import { some } from '../../base/format';
import type { Found, SearchIndex } from './search';

const MOST = 50;

/** A field that finds anything of the graph, and what it found as a list to choose from. */
export class FindBox {
  readonly element: HTMLElement;

  constructor(private readonly locate: (found: Found) => void) {
    this.list = h('div.jl-found', { role: 'listbox', id: `jl-found-${++made}`, hidden: true });
    this.input = h('input.jl-search', {
      type: 'search',
      role: 'combobox',
      placeholder: 'name, type, shape, dtype, line, reason',
      'aria-label': 'Search the graph',
      'aria-expanded': 'false',
      'aria-controls': this.list.id,
      'aria-autocomplete': 'list',
      spellcheck: 'false'
    });
    this.count = h('span.jl-hidden', { role: 'status' });
    this.element = h('div.jl-find', icon('search'), this.input, this.count, this.list);
    on(this.input, {
      input: () => this.search(),
      keydown: event => this.onKey(event)
    });
    on(this.list, {
      click: event => {
        const option = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>('[role=option]') : null;
        this.choose(Number(option?.dataset.index ?? -1));
      }
    });
  }

  set index(index: SearchIndex) {
    this.source = index;
    if (!this.list.hidden) {
      this.search();
    }
  }

  focus(): void {
    this.input.focus({ preventScroll: false });
    this.input.select();
  }

  private search(): void {
    const query = this.input.value.trim();
    const { found, total } = this.source?.find(query, MOST) ?? { found: [], total: 0 };
    this.found = found;
    this.at = found.length ? 0 : -1;
    const more = total > found.length ? `the first ${found.length} of ${some(total, 'result')}` : some(total, 'result');
    this.count.textContent = query ? more : '';
    this.list.hidden = query === '';
    this.input.setAttribute('aria-expanded', String(query !== ''));
    this.list.replaceChildren(
      ...found.map(({ title, about, kind }, index) =>
        h(
          'div',
          { role: 'option', id: `${this.list.id}-${index}`, 'data-index': index, 'data-kind': kind },
          h('b', title),
          h('span.jl-muted', ` ${about}`)
        )
      ),
      h('div.jl-note.jl-muted', total ? more : 'Nothing found. Every word has to match.')
    );
    this.mark();
  }

  private onKey(event: KeyboardEvent): void {
    const step = (by: 1 | -1): void => {
      const count = Math.max(1, this.found.length);
      this.at = (this.at + by + count) % count;
      this.mark();
    };
    const empty = (): void => {
      this.input.value = '';
      this.search();
    };
    const isKnown = takeKey(event, {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      Enter: () => this.choose(this.at),
      Escape: () => (this.input.value === '' ? false : empty())
    });
    if (!isKnown && event.key !== 'Escape') {
      event.stopPropagation(); // letters are text here, not keys of the section
    }
  }

  private mark(): void {
    this.list.querySelectorAll('[role=option]').forEach((option, index) => {
      option.setAttribute('aria-selected', String(index === this.at));
      if (index === this.at) {
        option.scrollIntoView({ block: 'nearest' });
      }
    });
    set(this.input, { 'aria-activedescendant': this.at >= 0 ? `${this.list.id}-${this.at}` : null });
  }

  private choose(index: number): void {
    const found = this.found[index];
    if (found) {
      this.list.hidden = true;
      this.input.setAttribute('aria-expanded', 'false');
      this.locate(found);
    }
  }

  private readonly input: HTMLInputElement;
  private readonly list: HTMLElement;
  private readonly count: HTMLElement;
  private source: SearchIndex | null = null;
  private found: Found[] = [];
  private at = -1;
}

let made = 0;
