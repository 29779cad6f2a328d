import { focusNext, h, on, takeKey } from './dom';

export interface MenuItem {
  label: string;
  /** What stands at the right: a time, a key. */
  note?: string;
  run: () => void;
  disabled?: boolean;
  checked?: boolean;
}

/** Opens a menu below a button: arrows move in it, Escape and Tab close it, and the button has the keyboard again. */
export function openMenu(button: HTMLElement, label: string, items: readonly (MenuItem | string)[]): void {
  const menu = h('div.jl-menu', { role: 'menu', 'aria-label': label, tabindex: -1 });
  const close = (refocus: boolean): void => {
    document.removeEventListener('pointerdown', outside, true);
    menu.remove();
    button.setAttribute('aria-expanded', 'false');
    if (refocus) {
      button.focus();
    }
  };
  const outside = (event: Event): void => {
    if (!menu.contains(event.target as Node)) {
      close(false);
    }
  };
  for (const item of items) {
    menu.append(typeof item === 'string' ? h('div.jl-menu-head', { role: 'presentation' }, item) : entry(item, close));
  }
  const move = (by: 1 | -1): void =>
    focusNext([...menu.querySelectorAll<HTMLElement>('[role^=menuitem]:not([aria-disabled])')], by);
  on(menu, {
    keydown: event => {
      const [next, before, leave] = [() => move(1), () => move(-1), () => close(true)];
      takeKey(event, { ArrowDown: next, ArrowUp: before, Escape: leave, Tab: leave });
      if (event.key === 'Enter' || event.key === ' ') {
        event.stopPropagation(); // the button's own
      }
    }
  });
  button.setAttribute('aria-haspopup', 'menu');
  button.setAttribute('aria-expanded', 'true');
  button.after(menu);
  document.addEventListener('pointerdown', outside, true);
  menu.focus(); // where nothing in it can be chosen
  move(1);
}

function entry(item: MenuItem, close: (refocus: boolean) => void): HTMLElement {
  const radio = item.checked !== undefined;
  return h(
    'button',
    {
      role: radio ? 'menuitemradio' : 'menuitem',
      tabindex: '-1',
      'aria-checked': radio ? String(item.checked) : null,
      'aria-disabled': item.disabled ? 'true' : null,
      onclick: () => {
        if (!item.disabled) {
          close(true);
          item.run();
        }
      }
    },
    h('span.jl-grow', item.label),
    item.note !== undefined && h('span.jl-muted', item.note)
  );
}
