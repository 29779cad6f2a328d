import { h, on, takeKey } from '../base/dom';
import { Tabs } from '../base/tabs';
import type { Section } from './section';

/** Wide enough for three columns side by side, and for two. */
const THREE = 1200;
const TWO = 700;

/** The main area: three columns above the timeline that scroll apart, two from 700 pixels on, below that one section at a time behind tabs. */
export class MainLayout {
  readonly element: HTMLElement;

  constructor(private readonly sections: readonly Section[]) {
    this.columns = Array.from({ length: 4 }, (_, index) => h('div', { class: index < 3 ? 'jl-column' : 'jl-dock' }));
    const [left = h('div'), middle = h('div'), right = h('div'), dock = h('div')] = this.columns;
    const top = h('div.jl-columns', left, this.divider(left, 1), middle, this.divider(right, -1), right);
    this.element = h('div.jl-main-sections', this.tabs.element, top, dock);
  }

  /** Places the sections for this width. */
  arrange(width: number): void {
    const count = width >= THREE ? 3 : width >= TWO ? 2 : 1;
    const wide = count > 1;
    if (count !== this.count) {
      this.count = count;
      this.wide = wide;
      this.element.classList.toggle('jl-tabbed', !wide);
      this.element.classList.toggle('jl-two', count === 2);
      for (const section of this.sections) {
        const { column } = section.place;
        this.columns[wide ? (column === 'dock' ? 3 : Math.min(column, count - 1)) : 1]?.append(section.element);
      }
      this.tabs.element.hidden = wide;
      this.choose(this.chosen || (this.shownSections()[0]?.title ?? ''));
    } else if (!wide) {
      this.drawTabs();
    }
  }

  /** The width that a section has to draw in. */
  widthOf(section: Section): number {
    return section.element.parentElement?.clientWidth ?? 0;
  }

  /** Shows a section that stands behind a tab. */
  choose(title: string): void {
    this.chosen = title;
    for (const { title: own, element } of this.sections) {
      element.classList.toggle('jl-behind', !this.wide && own !== title);
    }
    const section = this.sections.find(candidate => candidate.title === title);
    if (section && !this.wide && !section.open) {
      section.open = true;
    }
    this.drawTabs();
  }

  private shownSections(): Section[] {
    return this.sections.filter(({ element }) => !element.hidden);
  }

  private drawTabs(): void {
    const titles = this.shownSections().map(({ title }) => [title, title] as const);
    this.tabs.show(titles, this.chosen);
  }

  /** Between two columns; dragged, or moved by the arrow keys. */
  private divider(column: HTMLElement, direction: 1 | -1): HTMLElement {
    const divider = h('div.jl-divider', {
      role: 'separator',
      'aria-orientation': 'vertical',
      'aria-label': 'Width of the column',
      'aria-valuemin': '240',
      'aria-valuenow': '240',
      tabindex: '0'
    });
    const resize = (width: number): void => {
      column.style.flex = `0 0 ${Math.max(240, Math.round(width))}px`;
    };
    const move = (by: number): void => resize(column.clientWidth + direction * by);
    new ResizeObserver(() => divider.setAttribute('aria-valuenow', String(Math.round(column.clientWidth)))).observe(
      column
    );
    let from: { x: number; width: number } | null = null;
    on(divider, {
      pointerdown: event => {
        from = { x: event.clientX, width: column.clientWidth };
        divider.setPointerCapture(event.pointerId);
      },
      pointermove: event => {
        if (from) {
          resize(from.width + direction * (event.clientX - from.x));
        }
      },
      pointerup: () => {
        from = null;
      },
      keydown: event => takeKey(event, { ArrowLeft: () => move(-20), ArrowRight: () => move(20) })
    });
    return divider;
  }

  private readonly tabs = new Tabs(h('div.jl-tabs', { role: 'tablist', 'aria-label': 'Sections' }), title =>
    this.choose(title)
  );
  private readonly columns: HTMLElement[];
  private count = 0;
  private wide: boolean | null = null;
  private chosen = '';
}
