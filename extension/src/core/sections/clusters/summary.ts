import { joined, some } from '../../base/format';
import type { Report } from '../../report/report';
import type { FlowNode } from './map/boxes';
import { clusterCount, flowOf } from './flow';

/** Pure: what the heading of the section says, also when it is closed. */
export function summaryOf(report: Report): string {
  if (report.clusters.length === 0) {
    return 'none';
  }
  const nodes = flowOf(report).parts.flatMap(part => part.nodes);
  const clusters = nodes.filter(node => node.cluster !== null);
  const slow = slowestCluster(clusters);
  const heavy = slow?.seconds && clusters.length > 1 ? `slowest: ${slow.name}` : '';
  const stored = report.verdict.stored?.count ?? 0;
  return joined(' · ', stored > 0 && `${some(stored, 'array')} stored`, heavy) || clusterCount(report);
}

/** The first one where none was timed. */
export function slowestCluster(nodes: readonly FlowNode[]): FlowNode | undefined {
  const clusters = nodes.filter(node => node.cluster !== null);
  return clusters.reduce<FlowNode | undefined>(
    (slow, node) => (slow === undefined || (node.seconds ?? 0) > (slow.seconds ?? 0) ? node : slow),
    undefined
  );
}
