import type { Lane, Report } from '../../report/report';
import { nameOf } from './layout';

/** A Chrome trace of a report's timeline: a process a group of lanes, a thread a lane, a complete event a span; spans nest in their thread. */
export function chromeTrace(report: Report, lanes: readonly Lane[] = report.lanes): { traceEvents: object[] } {
  const groups = [...new Set(lanes.map(lane => lane.group))];
  const lines = new Map<string, number[]>();
  for (const op of report.ops) {
    lines.set(`${op.plan}\n${op.name}`, [...new Set(op.lines.map(({ line }) => line))]);
  }
  for (const part of [...report.clusters, ...report.kernels]) {
    lines.set(`${part.plan}\n${part.name}`, part.lines);
  }
  const events: object[] = [];
  groups.forEach((group, pid) => {
    events.push({ ph: 'M', name: 'process_name', pid, args: { name: `${report.cell.title} ${group}` } });
    events.push({ ph: 'M', name: 'process_sort_index', pid, args: { sort_index: pid } });
    lanes
      .filter(lane => lane.group === group)
      .forEach((lane, tid) => {
        events.push({ ph: 'M', name: 'thread_name', pid, tid, args: { name: lane.name } });
        events.push({ ph: 'M', name: 'thread_sort_index', pid, tid, args: { sort_index: tid } });
        for (const span of lane.spans) {
          const where = lines.get(`${span.plan}\n${span.name}`) ?? lines.get(`\n${span.name}`) ?? span.lines;
          events.push({
            ph: 'X',
            cat: span.kind,
            name: span.kind === 'statement' ? span.name || span.label : nameOf(span),
            pid,
            tid,
            ts: span.start,
            dur: span.duration,
            args: {
              name: span.name,
              label: span.label,
              ...(span.cluster === null ? {} : { cluster: span.cluster }),
              ...(span.plan ? { plan: span.plan } : {}),
              ...(where.length ? { lines: where } : {}),
              ...(span.bytes ? { bytes: span.bytes } : {})
            }
          });
        }
      });
  });
  return { traceEvents: events };
}
