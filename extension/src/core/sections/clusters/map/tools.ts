import { h, iconButton } from '../../../base/dom';
import type { FindBox } from '../find';
import type { Flow } from '../flow';
import { heatOf, HEATS, type Heat, type HeatKind } from './heat';

/** From this width on the search has room beside the rest. */
const WIDE = 520;

/** What stands above the picture: search, what the bars say, and whether it is a map. */
export class Tools {
  readonly element: HTMLElement;
  heat: Heat | null = null;

  constructor(
    private readonly find: FindBox,
    toggleMap: () => void,
    private readonly changed: () => void
  ) {
    const heat = (kind: HeatKind): void => {
      this.heatKind = kind;
      changed();
    };
    this.heatButtons = HEATS.map(kind => h('button.jl-seg', { onclick: () => heat(kind) }, kind));
    this.mapButton = iconButton('map', 'Show as a map (M)', toggleMap);
    this.searchButton = iconButton('search', 'Search (/)', () => this.search(!this.searching));
    this.element = h(
      'div.jl-graph-tools',
      find.element,
      this.searchButton,
      h('span.jl-heat', { role: 'group', 'aria-label': 'Heat' }, h('span', 'show:'), this.heatButtons),
      this.mapButton
    );
  }

  /** Another graph is shown. */
  reset(): void {
    this.heatShown = null;
  }

  /** Shows or hides the field, and goes there. */
  search(shown = true): void {
    this.searching = shown;
    this.changed();
    this.find.focus();
  }

  render(flow: Flow, width: number, isMap: boolean, hasMap: boolean): void {
    this.find.element.hidden = !(width >= WIDE || this.searching);
    this.searchButton.hidden = width >= WIDE;
    this.searchButton.setAttribute('aria-pressed', String(this.searching));
    if (this.heatShown !== this.heatKind) {
      this.heat = heatOf(this.heatKind, flow);
      this.heatShown = this.heatKind;
    }
    this.heatButtons.forEach((button, index) =>
      button.setAttribute('aria-pressed', String(HEATS[index] === this.heatKind))
    );
    this.mapButton.setAttribute('aria-pressed', String(isMap));
    this.mapButton.hidden = !hasMap;
  }

  private readonly heatButtons: HTMLButtonElement[];
  private readonly mapButton: HTMLButtonElement;
  private readonly searchButton: HTMLButtonElement;
  private searching = false;
  private heatKind: HeatKind = 'time';
  private heatShown: HeatKind | null = null;
}
