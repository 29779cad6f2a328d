import { consume, h } from './dom';

/** A row of tabs: a click chooses one, and the arrow keys go from one to the next. What stands behind them is not its own. */
export class Tabs {
  constructor(
    readonly element: HTMLElement,
    private readonly chose: (id: string) => void
  ) {
    element.addEventListener('keydown', event => {
      const at = this.ids.indexOf(this.chosen);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.ids.length - 1 }[event.key];
      const id = to === undefined ? undefined : this.ids[(to + this.ids.length) % this.ids.length];
      if (id !== undefined) {
        this.choose(id);
        consume(event);
      }
    });
  }

  /** Made anew only where they are others: the one with the keyboard keeps it. */
  show(tabs: readonly (readonly [id: string, name: string])[], chosen: string): void {
    const key = [...tabs, chosen].join('\n');
    if (key === this.shown) {
      return;
    }
    this.shown = key;
    this.chosen = chosen;
    this.ids = tabs.map(([id]) => id);
    this.element.replaceChildren(
      ...tabs.map(([id, name]) => {
        const isChosen = id === chosen;
        const state = { 'aria-selected': String(isChosen), tabindex: isChosen ? 0 : -1 };
        return h('button', { role: 'tab', ...state, onclick: () => this.choose(id) }, name);
      })
    );
  }

  private choose(id: string): void {
    this.chose(id);
    this.element.querySelector<HTMLElement>('[aria-selected=true]')?.focus();
  }

  private ids: readonly string[] = [];
  private chosen = '';
  private shown = '';
}
