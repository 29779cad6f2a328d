import { h, iconButton, on, takeKey } from '../base/dom';
import { keyName, KEYS, PLACES, type Key, type Place } from './keys';

/** The list of all keys, over the panel. Escape closes it, and the focus is back where it was. */
export class KeyHelp {
  readonly element = h('div.jl-help', { role: 'dialog', 'aria-label': 'Keys', tabindex: '-1', hidden: true });

  /** `nameOf` says what a key is now, where a user can change it. */
  constructor(private readonly nameOf: ((key: Key) => string) | null) {
    const toggle = (): void => this.toggle();
    on(this.element, {
      keydown: event => {
        takeKey(event, { Escape: toggle, '?': toggle });
        event.stopPropagation();
      }
    });
  }

  get open(): boolean {
    return !this.element.hidden;
  }

  toggle(): void {
    if (this.open) {
      this.element.hidden = true;
      this.before?.focus({ preventScroll: true });
      return;
    }
    this.before = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    const close = iconButton('no', 'Close', () => this.toggle());
    this.element.replaceChildren(
      h('div.jl-head', h('b.jl-grow', 'Keys'), close),
      ...(Object.keys(PLACES) as Place[]).map(place => this.table(place))
    );
    this.element.hidden = false;
    close.focus();
  }

  private table(place: Place): HTMLElement {
    const keys = KEYS.filter(key => key.place === place);
    return h(
      'table',
      h('caption', PLACES[place]),
      keys.map(key =>
        h('tr', h('th', { scope: 'row' }, h('kbd', this.nameOf?.(key) || keyName(key))), h('td', key.label))
      )
    );
  }

  private before: HTMLElement | null = null;
}
