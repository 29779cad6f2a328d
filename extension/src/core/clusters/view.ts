import { CanvasView } from '../canvas';
import { h, on } from '../dom';
import { lines, percent, some } from '../format';
import type { Report } from '../report';
import type { Section } from '../section';
import type { Selection } from '../selection';
import type { Item } from '../shapes';
import { flowOf, slowest, type Flow, type FlowNode } from './flow';
import { layoutClusters } from './layout';
import { clustersTable } from './table';
import { describe } from './words';

const MOST_BOXES = 40;
const FIRST_BOXES = 12;
/** A cluster of more operations than this is not open at first. */
const MOST_OPEN = 60;

/** The spine of clusters on a canvas; over it lie elements that the keyboard and a screen reader reach. */
export class ClustersView {
  constructor(
    private readonly section: Section,
    private readonly selection: Selection
  ) {
    this.notice = h('div', { class: 'jl-note' });
    this.layer = h('div', { class: 'jl-layer', role: 'tree', 'aria-label': 'Clusters in program order' });
    this.frame = h('div', { class: 'jl-frame' }, this.canvas.element, this.layer);
    this.status = h('div', { class: 'jl-note jl-pinned', role: 'status' });
    on(this.layer, {
      keydown: event => {
        this.onKey(event);
      },
      pointerover: event => {
        this.selection.hover(linkedId(itemOf(event.target)));
      },
      pointerleave: () => {
        this.selection.hover(null);
      },
      click: event => {
        this.onClick(itemOf(event.target), event.detail);
      },
      focusin: event => {
        this.focused = itemOf(event.target)?.dataset.id ?? this.focused;
      }
    });
  }

  show(report: Report, width: number): void {
    if (report !== this.report) {
      const other = report.cell.id !== this.report?.cell.id;
      this.report = report;
      this.flow = flowOf(report);
      if (other) {
        this.showAll = false;
        this.touched = false;
      }
      if (!this.touched) {
        const first = slowestCluster(this.nodes());
        this.open = new Set(first && first.ops.length <= MOST_OPEN ? [first.id] : []);
      }
    }
    this.width = width;
    this.section.summary = report.clusters.length ? this.summary(report) : 'none';
    this.render();
  }

  /** Draws again, after a change of the selection or of the section. */
  render(): void {
    if (!this.flow || !this.section.open) {
      return;
    }
    const { body } = this.section;
    const all = this.nodes().length;
    if (all + this.flow.statements.length === 0) {
      body.replaceChildren(h('p', { class: 'jl-muted' }, 'Nothing was captured.'));
      return;
    }
    if (this.section.asTable) {
      body.replaceChildren(h('div', { class: 'jl-scroll' }, clustersTable(this.flow)));
      return;
    }
    const part = all > MOST_BOXES && !this.showAll ? slowest(this.flow, FIRST_BOXES) : null;
    if (this.frame.parentElement !== body || body.firstElementChild !== this.notice) {
      body.replaceChildren(this.notice, this.frame, this.status);
    }
    this.showNotice(part, all);
    const measure = this.canvas.prepare();
    if (!measure) {
      return;
    }
    const options = { width: this.width - 12, measure, open: this.open, linked: this.selection.lit };
    const picture = layoutClusters(part?.flow ?? this.flow, options);
    this.canvas.paint(picture);
    this.placeItems(picture.items);
    this.showPinned();
  }

  private showNotice(part: { shown: number; of: number; share: number } | null, all: number): void {
    this.notice.hidden = part === null;
    if (part) {
      const slow = `Showing the ${part.shown} slowest of ${part.of} boxes, ${percent(part.share)} of the time. `;
      const button = h('button', { type: 'button', class: 'jl-link' }, all > 400 ? 'Show the table' : 'Show all');
      on(button, {
        click: () => {
          if (all > 400) {
            this.section.asTable = true;
          } else {
            this.showAll = true;
            this.render();
          }
        }
      });
      this.notice.replaceChildren(slow, button);
    }
  }

  private placeItems(items: readonly Item[]): void {
    const hadFocus = this.layer.contains(document.activeElement);
    const current = items.some(item => item.id === this.focused) ? this.focused : items[0]?.id;
    this.focused = current ?? '';
    // Elements are kept by position: a redraw while something is pointed at must not take it away from under the pointer.
    while (this.layer.children.length > items.length) {
      this.layer.lastElementChild?.remove();
    }
    items.forEach((item, index) => {
      let element = this.layer.children[index] as HTMLElement | undefined;
      if (!element) {
        element = h('div', { class: 'jl-item', role: 'treeitem' });
        this.layer.append(element);
      }
      Object.assign(element.dataset, { id: item.id, kind: item.kind });
      element.tabIndex = item.id === this.focused ? 0 : -1;
      element.setAttribute('aria-label', item.label);
      element.title = item.label;
      element.setAttribute('aria-level', String(item.level));
      element.setAttribute('aria-selected', String(linkedId(element) === this.selection.pin));
      if (item.expanded === undefined) {
        element.removeAttribute('aria-expanded');
      } else {
        element.setAttribute('aria-expanded', String(item.expanded));
      }
      Object.assign(element.style, {
        left: `${item.x}px`,
        top: `${item.y}px`,
        width: `${item.width}px`,
        height: `${Math.max(18, item.height)}px`
      });
    });
    if (hadFocus && current !== undefined) {
      this.focusItem(current);
    }
  }

  private onClick(element: HTMLElement | null, clicks: number): void {
    const id = element?.dataset.id;
    if (!element || id === undefined) {
      return;
    }
    this.focused = id;
    if (
      element.dataset.kind === 'cluster' ||
      (element.dataset.kind === 'host' && element.hasAttribute('aria-expanded'))
    ) {
      this.toggle(id);
    } else if (clicks <= 1) {
      this.selection.togglePin(linkedId(element) ?? id);
    }
    this.focusItem(id);
  }

  private onKey(event: KeyboardEvent): void {
    const items = [...this.layer.children] as HTMLElement[];
    const at = items.findIndex(item => item.dataset.id === this.focused);
    const item = items[at];
    const id = item?.dataset.id;
    if (!item || id === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const expanded = item.getAttribute('aria-expanded');
    const level = Number(item.getAttribute('aria-level'));
    const move = (found: HTMLElement | undefined): void => {
      this.focusItem(found?.dataset.id ?? id);
    };
    switch (event.key) {
      case 'ArrowDown':
        move(items[at + 1]);
        break;
      case 'ArrowUp':
        move(items[at - 1]);
        break;
      case 'Home':
        move(items[0]);
        break;
      case 'End':
        move(items.at(-1));
        break;
      case 'ArrowRight':
        if (expanded === 'false') {
          this.toggle(id);
        } else {
          move(items[at + 1]);
        }
        break;
      case 'ArrowLeft':
        if (expanded === 'true') {
          this.toggle(id);
        } else {
          move(items.slice(0, at).findLast(other => Number(other.getAttribute('aria-level')) < level));
        }
        break;
      case 'n':
      case 'N': {
        const after = [...items.slice(at + 1), ...items.slice(0, at)];
        move(after.find(other => other.dataset.kind === 'boundary'));
        break;
      }
      case 'Enter':
      case ' ':
        this.onClick(item, 1);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private toggle(id: string): void {
    this.touched = true;
    if (!this.open.delete(id)) {
      this.open.add(id);
    }
    this.render();
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

  private showPinned(): void {
    const pin = this.selection.pin;
    const op =
      pin === null
        ? undefined
        : this.nodes()
            .flatMap(node => node.ops)
            .find(({ name }) => name === pin);
    const text = op ? `Pinned: ${describe(op)}` : '';
    if (this.status.textContent !== text) {
      this.status.textContent = text;
    }
    this.status.hidden = text === '';
  }

  private summary(report: Report): string {
    const nodes = this.nodes();
    const apart = nodes
      .flatMap(node => [node.boundaries, ...node.kernels.map(({ boundaries }) => boundaries)])
      .reduce((sum, boundaries) => sum + boundaries.length, 0);
    const clusters = nodes.filter(node => node.cluster !== null);
    const slow = slowestCluster(clusters);
    const heavy = slow?.seconds && clusters.length > 1 ? `${slow.name} takes most, ${lines(slow.lines)}` : '';
    return (
      [apart ? `${some(apart, 'value')} not fused` : '', heavy].filter(Boolean).join(' · ') ||
      some(report.clusters.length, 'cluster')
    );
  }

  private nodes() {
    return this.flow?.parts.flatMap(part => part.nodes) ?? [];
  }

  private readonly canvas = new CanvasView({ 'aria-hidden': 'true' });
  private readonly frame: HTMLElement;
  private readonly layer: HTMLElement;
  private readonly notice: HTMLElement;
  private readonly status: HTMLElement;
  private report: Report | null = null;
  private flow: Flow | null = null;
  private open = new Set<string>();
  private showAll = false;
  /** Whether the person has opened or closed a box; until then the slowest one is open. */
  private touched = false;
  private focused = '';
  private width = 0;
}

/** The first one where none was timed. */
function slowestCluster(nodes: readonly FlowNode[]): FlowNode | undefined {
  const clusters = nodes.filter(node => node.cluster !== null);
  return clusters.reduce<FlowNode | undefined>(
    (slow, node) => (slow === undefined || (node.seconds ?? 0) > (slow.seconds ?? 0) ? node : slow),
    undefined
  );
}

function itemOf(target: EventTarget | null): HTMLElement | null {
  return target instanceof HTMLElement ? target.closest<HTMLElement>('.jl-item') : null;
}

/** The report's own name of the thing an element stands for. */
function linkedId(element: HTMLElement | null): string | null {
  return element?.dataset.id?.replace(/^op:/, '') ?? null;
}
