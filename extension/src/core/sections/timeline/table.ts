import { h, takeKey } from '../../base/dom';
import { duration, joined, some } from '../../base/format';
import { swatch } from '../../base/marks';
import { VirtualRows } from '../../base/virtual';
import { laneTitle, nameOf } from './layout';
import type { PreparedLane, TimeWindow } from './prepare';

const ROW = 22;

/** Every span as a row, lane after lane; only rows that can be seen are elements. */
export class TimelineTable {
  readonly element: HTMLElement;

  constructor(
    private readonly host: { point(lane: number, span: number): void; pin(lane: number, span: number): void }
  ) {
    this.list = new VirtualRows({
      label: 'Timeline',
      role: 'table',
      rowHeight: ROW,
      columns: ['span', 'starts at', 'takes'],
      fill: (row, index) => this.fill(row, index),
      key: (event, index) => takeKey(event, { Enter: () => this.pin(index), ' ': () => this.pin(index) }),
      click: index => this.pin(index),
      point: index => {
        const place = this.placeOf(index);
        this.host.point(place.lane, place.span);
      }
    });
    this.element = this.list.element;
  }

  /** `within`: only spans that ran in this stretch. */
  show(lanes: readonly PreparedLane[], within: TimeWindow | null): void {
    this.lanes = lanes;
    this.members = lanes.map(({ starts, ends }) => {
      const all = Array.from(starts.keys());
      return within ? all.filter(at => (starts[at] ?? 0) < within.end && (ends[at] ?? 0) > within.start) : all;
    });
    let count = 0;
    this.firsts = this.members.map(spans => {
      const first = count;
      count += 1 + spans.length;
      return first;
    });
    this.list.count = count;
  }

  /** Whether it is a span's row. */
  private pin(index: number): boolean {
    const { lane, span } = this.placeOf(index);
    if (span >= 0) {
      this.host.pin(lane, span);
    }
    return span >= 0;
  }

  /** -1 as the span: the lane's own row. */
  private placeOf(index: number): { lane: number; span: number } {
    const lane = this.firsts.findLastIndex(first => first <= index);
    const place = index - (this.firsts[lane] ?? 0) - 1;
    return { lane, span: index < 0 || place < 0 ? -1 : (this.members[lane]?.[place] ?? -1) };
  }

  private fill(row: HTMLElement, index: number): void {
    const place = this.placeOf(index);
    const lane = this.lanes[place.lane];
    const span = lane?.spans[place.span];
    if (!lane) {
      return;
    }
    if (!span) {
      const count = this.members[place.lane]?.length ?? 0;
      const not = lane.dropped ? `; ${some(lane.dropped, 'earlier span')} not kept` : '';
      row.classList.add('jl-row-group');
      row.append(h('b', { role: 'rowheader' }, `${laneTitle(lane.name)}, ${some(count, 'span')}${not}`));
      return;
    }
    const indent = h('span.jl-indent');
    indent.style.width = `${(lane.depths[place.span] ?? 0) * 12}px`;
    const name = nameOf(span); // as on its bar
    const also = span.label && span.label !== span.name && name !== span.name ? span.name : '';
    row.append(
      h(
        'span.jl-what',
        { role: 'cell', title: joined(' ', name, also) },
        indent,
        swatch(lane.marks[place.span] ?? 'op'),
        h('span.jl-called', name),
        also && h('span.jl-muted', also)
      ),
      h('span.jl-number', { role: 'cell' }, duration(span.start / 1e6)),
      h('span.jl-number', { role: 'cell' }, duration(span.duration / 1e6))
    );
  }

  private readonly list: VirtualRows;
  private lanes: readonly PreparedLane[] = [];
  private members: number[][] = [];
  private firsts: number[] = [];
}
