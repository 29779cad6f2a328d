import { CanvasView } from '../../base/canvas';
import { h, isChord, on, placeItems, set, takeKey } from '../../base/dom';
import type { Item } from '../../base/shapes';
import type { Flow } from './flow';
import { layoutClusters } from './layout';
import type { ClustersOptions } from './map/pen';

/** What the spine asks of the section that it is a picture of. */
export interface SpineHost {
  hover(id: string | null): void;
  pin(id: string): void;
  readonly pinned: string | null;
  toggle(id: string): void;
  menu(id: string, anchor: Element): void;
  /** A key that the spine itself has no use for. */
  key(event: KeyboardEvent, id: string): boolean;
}

/** Boxes in program order on a canvas; over it lie elements that the keyboard and a screen reader reach. */
export class SpineView {
  readonly element: HTMLElement;

  constructor(private readonly host: SpineHost) {
    this.layer = h('div.jl-layer', { role: 'tree', 'aria-label': 'Clusters in program order' });
    this.element = h('div.jl-frame', this.canvas.element, this.layer);
    on(this.layer, {
      keydown: event => this.onKey(event),
      pointerover: event => this.host.hover(linkedId(itemOf(event.target))),
      pointerleave: () => this.host.hover(null),
      click: event => this.onClick(itemOf(event.target), event),
      dblclick: event => {
        const item = itemOf(event.target);
        if (item?.hasAttribute('aria-expanded') && !onArrow(item, event)) {
          this.host.toggle(item.dataset.id ?? '');
        }
      },
      focusin: event => {
        this.focused = itemOf(event.target)?.dataset.id ?? this.focused;
      }
    });
  }

  render(flow: Flow, options: Omit<ClustersOptions, 'measure'>): void {
    const measure = this.canvas.prepare();
    if (!measure) {
      return;
    }
    const picture = layoutClusters(flow, { ...options, measure });
    this.canvas.paint(picture);
    this.placeItems(picture.items);
  }

  /** Where an item's corner is on the screen. */
  cornerOf(id: string): { x: number; y: number } | null {
    const item = this.itemOf(id)?.getBoundingClientRect();
    return item ? { x: item.left, y: item.top } : null;
  }

  /** Whether it was there to be focused. */
  focus(id: string): boolean {
    const found = this.itemOf(id) !== undefined;
    if (found) {
      this.focusItem(id);
    }
    return found;
  }

  private itemOf(id: string): HTMLElement | undefined {
    return ([...this.layer.children] as HTMLElement[]).find(item => item.dataset.id === id);
  }

  private placeItems(items: readonly Item[]): void {
    const hadFocus = this.layer.contains(document.activeElement);
    const current = items.some(item => item.id === this.focused) ? this.focused : items[0]?.id;
    this.focused = current ?? '';
    placeItems(this.layer, items, (element, item) => {
      Object.assign(element.dataset, { id: item.id, kind: item.kind });
      element.tabIndex = item.id === this.focused ? 0 : -1;
      set(element, {
        ...{ 'aria-label': item.label, title: item.label, 'aria-level': item.level },
        'aria-selected': linkedId(element) === this.host.pinned,
        'aria-expanded': item.expanded ?? null
      });
      return { left: item.x, top: item.y, width: item.width, height: Math.max(18, item.height) };
    });
    if (hadFocus && current !== undefined) {
      this.focusItem(current);
    }
  }

  private onClick(element: HTMLElement | null, event: MouseEvent): void {
    const id = element?.dataset.id;
    if (!element || id === undefined) {
      return;
    }
    this.focused = id;
    if (element.hasAttribute('aria-expanded') && onArrow(element, event)) {
      this.host.toggle(id);
    } else if (event.detail <= 1) {
      this.host.pin(linkedId(element) ?? id);
    }
    this.focusItem(id);
  }

  private onKey(event: KeyboardEvent): void {
    const items = [...this.layer.children] as HTMLElement[];
    const at = items.findIndex(item => item.dataset.id === this.focused);
    const item = items[at];
    const id = item?.dataset.id;
    if (!item || id === undefined || isChord(event)) {
      return;
    }
    const expanded = item.getAttribute('aria-expanded');
    const level = Number(item.getAttribute('aria-level'));
    const move = (found: HTMLElement | undefined): void => {
      this.focusItem(found?.dataset.id ?? id);
      this.host.hover(linkedId(found ?? item));
    };
    const linked = linkedId(item) ?? id;
    const toggle = (): void => this.host.toggle(id);
    const pin = (): void => this.host.pin(linked);
    const next = (): void => move(items[at + 1]);
    const outer = (): void =>
      move(items.slice(0, at).findLast(other => Number(other.getAttribute('aria-level')) < level));
    const after = [...items.slice(at + 1), ...items.slice(0, at)];
    const keys = {
      ArrowDown: next,
      ArrowUp: () => move(items[at - 1]),
      Home: () => move(items[0]),
      End: () => move(items.at(-1)),
      ArrowRight: expanded === 'false' ? toggle : next,
      ArrowLeft: expanded === 'true' ? toggle : outer,
      n: () => move(after.find(other => other.dataset.kind === 'boundary')),
      x: () => this.host.menu(linked, item),
      Enter: expanded === null ? pin : toggle,
      ' ': pin
    };
    takeKey(event, keys, () => this.host.key(event, linked));
  }

  private focusItem(id: string): void {
    this.focused = id;
    for (const element of this.layer.children as HTMLCollectionOf<HTMLElement>) {
      const here = element.dataset.id === id;
      element.tabIndex = here ? 0 : -1;
      if (here) {
        element.focus({ preventScroll: false });
      }
    }
  }

  private readonly canvas = new CanvasView({ 'aria-hidden': 'true' });
  private readonly layer: HTMLElement;
  private focused = '';
}

function itemOf(target: EventTarget | null): HTMLElement | null {
  return target instanceof HTMLElement ? target.closest<HTMLElement>('.jl-item') : null;
}

/** The triangle at the left of a box opens it at once. */
function onArrow(item: HTMLElement, event: MouseEvent): boolean {
  const frame = item.getBoundingClientRect();
  return event.detail === 0 || (event.clientX - frame.left < 28 && event.clientY - frame.top < 26);
}

/** The id by which all views know the thing an element stands for. */
function linkedId(element: HTMLElement | null): string | null {
  // A value is told once a reader's kernel, which stands behind it.
  return element?.dataset.id?.replace(/^op:/, '').replace(/^(edge:.*)>[^>]*$/, '$1') ?? null;
}
