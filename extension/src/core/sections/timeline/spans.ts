import { fetchItems, type KernelAccess } from '../../report/kernel';
import { readSpans } from '../../report/read-report';
import type { Lane, Report, Span } from '../../report/report';

/** Every span of a report that was too big to be sent whole, in the lanes of the report. */
export async function fetchSpans(kernel: KernelAccess, report: Report): Promise<Lane[]> {
  const spans = new Map<string, Span[]>(report.lanes.map(lane => [lane.name, []]));
  for (const { lane, span } of readSpans(await fetchItems(kernel, { cell: report.cell.id, part: 'spans' }))) {
    spans.get(lane)?.push(span);
  }
  return report.lanes.map(({ name, group, dropped, total, busy }) => ({
    ...{ name, group, dropped, total, busy },
    spans: spans.get(name) ?? []
  }));
}
