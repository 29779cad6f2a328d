import { h } from '../../base/dom';
import { bytes, duration, joined } from '../../base/format';
import type { Span } from '../../report/report';
import { enqueuedText, laneTitle, nameOf } from './layout';
import type { PreparedLane, TimeWindow } from './prepare';
import { moved, totals, type Traffic } from './totals';

/** While a selection is drawn its totals follow ten times a second. */
const PAUSE_MS = 100;

export interface Drawn {
  lanes: readonly PreparedLane[];
  traffic: Traffic;
  selected: TimeWindow | null;
  /** Under the keyboard's cursor. */
  span: Span | undefined;
  /** Its lines, as text. */
  lines: string;
}

/** Totals of what is selected, or what the span under the cursor is: below the picture, never on top of it. */
export class Drawer {
  readonly element = h('div.jl-drawer', { role: 'status', hidden: true });

  /** `moving`: the selection is being drawn; then `now` is asked again a moment later. */
  show(moving: boolean, now: () => Drawn): void {
    const wait = this.shownAt + PAUSE_MS - performance.now();
    if (moving && wait > 0) {
      this.later ||= window.setTimeout(() => {
        this.later = 0;
        this.fill(now());
      }, wait);
      return;
    }
    this.fill(now());
  }

  dispose(): void {
    clearTimeout(this.later);
  }

  private fill(drawn: Drawn): void {
    this.shownAt = performance.now();
    const [title, rows] = contentOf(drawn);
    const signature = title + rows.join();
    if (signature !== this.signature) {
      this.signature = signature;
      this.element.replaceChildren(
        h('b', title),
        h(
          'table',
          rows.map(([name, text, more]) =>
            h('tr', h('th', { scope: 'row' }, name), h('td', text, more ? h('div.jl-muted.jl-note', more) : null))
          )
        )
      );
    }
    this.element.hidden = title === '';
  }

  private later = 0;
  private shownAt = 0;
  private signature = '';
}

/** Pure: the title, and rows of name, text and what is less important. */
function contentOf({ lanes, traffic, selected, span, lines }: Drawn): [string, [string, string, string][]] {
  if (selected) {
    const rows = totals(lanes, selected, traffic);
    return [
      `Selected ${duration(selected.start / 1e6)} to ${duration(selected.end / 1e6)}`,
      rows.map(({ lane, text, names }) => [laneTitle(lane), text, names])
    ];
  }
  if (span) {
    const size = moved(traffic, span);
    const is = joined(', ', span.kind, span.name, span.cluster, lines);
    return [
      `${nameOf(span)}, ${duration(span.duration / 1e6)}`,
      [
        ['starts at', duration(span.start / 1e6), enqueuedText(span)],
        ['is', is, size ? `moves ${bytes(size)}` : '']
      ]
    ];
  }
  return ['', []];
}
