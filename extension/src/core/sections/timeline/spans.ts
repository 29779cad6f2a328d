import type { KernelAccess } from '../../report/kernel';
import { isRecord, list, number } from '../../base/read';
import { readSpans } from '../../report/read-report';
import type { Lane, Report, Span } from '../../report/report';

/** Spans of one request; the kernel gives no more than 20 000. */
const AT_ONCE = 10_000;

/** Every span of a report that was too big to be sent whole, in the lanes of the report. */
export async function fetchSpans(kernel: KernelAccess, report: Report): Promise<Lane[]> {
  const spans = new Map<string, Span[]>(report.lanes.map(lane => [lane.name, []]));
  for (let start = 0; ;) {
    const answer = await kernel.request({
      want: 'part',
      cell: report.cell.id,
      part: 'spans',
      start,
      stop: start + AT_ONCE
    });
    const reply = isRecord(answer) && isRecord(answer.part) ? answer.part : {};
    const come = readSpans(reply.items);
    for (const { lane, span } of come) {
      spans.get(lane)?.push(span);
    }
    start += list(reply.items).length; // fewer come where they would be too many bytes
    if (come.length === 0 || start >= (number(reply.total) ?? 0)) {
      return report.lanes.map(({ name, group, dropped, total, busy }) => ({
        ...{ name, group, dropped, total, busy },
        spans: spans.get(name) ?? []
      }));
    }
  }
}
