/** Elements by hand. Text is always text: a report may hold anything a user wrote. */

import type { PANEL_ICONS } from './icons';

type Attribute = string | number | boolean | null | undefined;
type Child = Node | string | null | false | undefined | Child[];
type Handlers = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

const SVG = 'http://www.w3.org/2000/svg';

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Attribute> & { on?: never } = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function on<E extends HTMLElement>(element: E, handlers: Handlers): E {
  for (const [name, handler] of Object.entries(handlers)) {
    element.addEventListener(name, handler as EventListener);
  }
  return element;
}

const ICONS = {
  fold: 'M4 6l4 4 4-4',
  unfold: 'M6 4l4 4-4 4',
  table: 'M2.5 3.5h11v9h-11zM2.5 6.5h11M6.5 6.5v6',
  copy: 'M5.5 5.5h7v8h-7zM3.5 10.5v-8h7',
  retrace: 'M12.5 8a4.5 4.5 0 1 1-1.5-3.4M11.4 1.8v3h-3',
  host: 'M8 2.5 13.5 8 8 13.5 2.5 8z',
  cluster: 'M2.5 3.5h11v9h-11z',
  kernel: 'M3.5 5.5h9v5h-9z',
  clock: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3.2L10 10',
  ok: 'M3 8.5 6.5 12 13 4.5',
  up: 'M8 12.5V4M4.5 7 8 3.5 11.5 7',
  down: 'M8 3.5V12M4.5 9 8 12.5 11.5 9',
  same: 'M3 6.5h10M3 9.5h10',
  no: 'M4 4l8 8M12 4l-8 8'
} as const;

export type IconName = keyof typeof ICONS | keyof typeof PANEL_ICONS;

/** Those that only the panel has: what a host with little room for scripts does not show, it does not carry. */
const added: Partial<Record<IconName, string>> = {};

export function addIcons(icons: Partial<Record<IconName, string>>): void {
  Object.assign(added, icons);
}

export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  const path = document.createElementNS(SVG, 'path');
  fill(path, { d: { ...ICONS, ...added }[name] }, []);
  return fill(svg, { class: 'jl-icon', viewBox: '0 0 16 16', 'aria-hidden': 'true' }, [path]);
}

export function iconButton(name: IconName, label: string, press: () => void): HTMLButtonElement {
  return on(h('button', { type: 'button', class: 'jl-icon-button', 'aria-label': label, title: label }, icon(name)), {
    click: press
  });
}

/** A line of code with a button that copies it. */
export function copyLine(code: string): HTMLElement {
  const text = h('code', {}, code);
  const word = h('span', {}, 'Copy');
  const button = h('button', { type: 'button', class: 'jl-button', 'aria-label': `Copy ${code}` }, icon('copy'), word);
  on(button, {
    click: () => {
      if (!window.isSecureContext) {
        getSelection()?.selectAllChildren(text); // no clipboard over plain http: it is one key away
        return;
      }
      void navigator.clipboard.writeText(code).then(() => {
        word.textContent = 'Copied';
        setTimeout(() => {
          word.textContent = 'Copy';
        }, 2000);
      });
    }
  });
  return h('div', { class: 'jl-fix' }, text, button);
}

/** The button that had the keyboard has it again, though it is another element. */
export function refill(element: HTMLElement, ...children: (Node | string)[]): void {
  const at = [...element.querySelectorAll('button')].findIndex(button => button === document.activeElement);
  element.replaceChildren(...children);
  if (at >= 0) {
    element.querySelectorAll('button')[at]?.focus({ preventScroll: true });
  }
}

function fill<E extends Element>(element: E, attributes: Record<string, Attribute>, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  for (const child of (children as unknown[]).flat(Infinity) as (Node | string | null | false | undefined)[]) {
    if (child !== null && child !== undefined && child !== false && child !== '') {
      element.append(child);
    }
  }
  return element;
}
