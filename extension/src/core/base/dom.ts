/** Elements by hand. Text is always text: a report may hold anything a user wrote. */

import type { PANEL_ICONS } from './icons';

type Attribute = string | number | boolean | null | undefined | ((event: MouseEvent) => void);
type Attributes = Record<string, Attribute> & { on?: never };
export type Child = Node | string | null | false | undefined | Child[];
type Handlers = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };
type Tags = HTMLElementTagNameMap;
type Made<S> = S extends keyof Tags ? Tags[S] : S extends `${infer T extends keyof Tags}.${string}` ? Tags[T] : never;

const SVG = 'http://www.w3.org/2000/svg';

/** `h('div.jl-note', { role: 'status' }, 'Asked.')`: an element, its classes, its attributes where it has any, what is in it. */
export function h<S extends keyof Tags | `${keyof Tags}.${string}`>(
  selector: S,
  first?: Attributes | Child,
  ...rest: Child[]
): Made<S> {
  const [tag = '', ...classes] = selector.split('.');
  const element = document.createElement(tag);
  const named = { class: classes.join(' ') || null, type: tag === 'button' ? tag : null }; // one that sends a form says so
  fill(element, isAttributes(first) ? { ...named, ...first } : named, isAttributes(first) ? rest : [first, ...rest]);
  return element as Made<S>;
}

function isAttributes(value: Attributes | Child): value is Attributes {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Node);
}

export function on<E extends HTMLElement>(element: E, handlers: Handlers): E {
  for (const [name, handler] of Object.entries(handlers)) {
    element.addEventListener(name, handler as EventListener);
  }
  return element;
}

/** Sets attributes; null takes one away. */
export function set(element: Element, attributes: Record<string, string | number | boolean | null>): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) {
      element.removeAttribute(name);
    } else {
      element.setAttribute(name, String(value));
    }
  }
}

/** As many items over a picture as there are things: each keeps its place, so that none is taken from under the pointer. */
export function placeItems<T>(
  layer: HTMLElement,
  things: readonly T[],
  place: (item: HTMLElement, thing: T) => { left: number; top: number; width: number; height: number }
): void {
  while (layer.children.length > things.length) {
    layer.lastElementChild?.remove();
  }
  things.forEach((thing, index) => {
    let item = layer.children[index] as HTMLElement | undefined;
    if (!item) {
      item = h('div.jl-item', { role: 'treeitem', tabindex: '-1' });
      layer.append(item);
    }
    for (const [side, pixels] of Object.entries(place(item, thing))) {
      item.style.setProperty(side, `${pixels}px`);
    }
  });
}

/** Nobody else acts on an event. */
export function consume(event: Event): void {
  event.preventDefault();
  event.stopPropagation();
}

/** Does what a key stands for, a letter also with Shift; then nobody else acts on it. What returns false is left to others. */
export function takeKey(
  event: KeyboardEvent,
  keys: Record<string, () => unknown>,
  other = (): unknown => false
): boolean {
  const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key] ?? other;
  const isTaken = act() !== false;
  if (isTaken) {
    consume(event);
  }
  return isTaken;
}

/** Gives the keyboard to the next of some elements (1) or the one before (-1), around their end. */
export function focusNext(elements: readonly HTMLElement[], by: 1 | -1): void {
  const at = elements.findIndex(element => element === document.activeElement);
  elements[(at + by + elements.length) % elements.length]?.focus();
}

/** Whether a key is the browser's or JupyterLab's: with Ctrl, Alt or the like. */
export function isChord(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
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

export function iconButton(
  name: IconName,
  label: string,
  press: () => void,
  more: Record<string, string> = {}
): HTMLButtonElement {
  return h('button.jl-icon-button', { 'aria-label': label, title: label, onclick: press, ...more }, icon(name));
}

/** A field that chooses one of some values, each with its text. */
export function chooser(
  label: string,
  options: readonly { value: string; text: string }[],
  chosen: string,
  choose: (value: string) => void
): HTMLSelectElement {
  const select = h(
    'select.jl-select',
    { 'aria-label': label },
    options.map(({ value, text }) => h('option', { value, selected: value === chosen }, text))
  );
  return on(select, { change: () => choose(select.value) });
}

/** A line of code with a button that copies it. */
export function copyLine(code: string): HTMLElement {
  const text = h('code', code);
  const word = h('span', 'Copy');
  // Over plain http there is no clipboard, and the browser may not give the one there is: then it is one key away.
  const select = (): void => getSelection()?.selectAllChildren(text);
  const copied = (): void => {
    word.textContent = 'Copied';
    setTimeout(() => {
      word.textContent = 'Copy';
    }, 2000);
  };
  const copy = (): void => {
    if (window.isSecureContext) {
      void navigator.clipboard.writeText(code).then(copied, select);
    } else {
      select();
    }
  };
  const named = { 'aria-label': `Copy ${code}`, onclick: copy };
  return h('div.jl-fix', text, h('button.jl-button', named, icon('copy'), word));
}

/** Gives the browser a text as a file. */
export function download(text: string, name: string, type: string): void {
  const link = h('a', { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The button that had the keyboard has it again, though it is another element. */
export function refill(element: HTMLElement, ...children: Child[]): void {
  const at = [...element.querySelectorAll('button')].findIndex(button => button === document.activeElement);
  element.replaceChildren(...given(children));
  if (at >= 0) {
    element.querySelectorAll('button')[at]?.focus({ preventScroll: true });
  }
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name.slice(2), value as EventListener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  element.append(...given(children));
  return element;
}

function given(children: unknown[]): (Node | string)[] {
  return (children.flat(Infinity) as Child[]).filter(child => child && !Array.isArray(child)) as (Node | string)[];
}
