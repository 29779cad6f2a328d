import { h } from '../../base/dom';

export type NoticeAction = readonly [name: string, press: () => void];

/** One line above the picture: what of the graph it shows, and what else it could. */
export class Notice {
  readonly element = h('div.jl-note.jl-graph-note');

  hide(): void {
    this.element.hidden = true;
  }

  /** Buttons that have the keyboard keep it when the words beside them change. */
  show(text: string, actions: readonly NoticeAction[]): void {
    this.element.hidden = false;
    const key = text + actions.map(([name]) => name).join();
    if (key === this.shown) {
      return;
    }
    this.shown = key;
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.textContent : '';
    const buttons = actions.map(([name, press]) => h('button.jl-link', { onclick: press }, name));
    const had = this.element.contains(document.activeElement);
    this.element.replaceChildren(text, ...buttons.flatMap((button, index) => (index ? [' · ', button] : [button])));
    if (had) {
      (buttons.find(button => button.textContent === focused) ?? buttons[0])?.focus();
    }
  }

  private shown = '';
}
