import { isRecord, list, number, records } from '../../base/read';
import type { KernelAccess } from '../../report/kernel';
import { readOperations } from '../../report/read-report';
import { readBoundary, readKernel, readTemporary } from '../../report/records';
import type { Boundary, Cluster, Operation, Report } from '../../report/report';

/** Items of one request; the kernel gives no more than 20 000. */
const AT_ONCE = 5000;

/** What is within the clusters of a report that was too big to be sent whole: fetched a cluster at a time, when it is opened. */
export class Parts {
  /** The report with all that has come meanwhile. */
  whole: Report;

  constructor(readonly report: Report) {
    this.whole = report;
  }

  /** Whether there is more of a cluster than what is here. */
  lacks(cluster: Cluster, here: number): boolean {
    return this.report.summary !== null && !this.came.has(cluster.name) && here < cluster.opCount;
  }

  /** Resolves to whether anything came. */
  async fetch(kernel: KernelAccess, cluster: string): Promise<boolean> {
    const ops = await this.all(kernel, 'ops', cluster, readOperations);
    if (ops.length === 0) {
      return false;
    }
    const boundaries = await this.all(kernel, 'boundaries', cluster, items => records(items).map(readBoundary));
    const other = (op: Operation): boolean => op.cluster !== cluster;
    const edge = ({ plan, producer, consumer }: Boundary): string => `${plan}\n${producer}\n${consumer}`;
    const kernels = await this.all(kernel, 'kernels', cluster, items => records(items).map(readKernel));
    const temporaries = await this.all(kernel, 'temporaries', cluster, items => records(items).map(readTemporary));
    const known = new Set(boundaries.map(edge));
    const elsewhere = (part: { cluster: string | null }): boolean => part.cluster !== cluster;
    this.came.add(cluster);
    this.whole = {
      ...this.whole,
      ops: [...this.whole.ops.filter(other), ...ops],
      clusters: this.whole.clusters.map(one =>
        one.name === cluster
          ? { ...one, kernels: kernels.filter(({ plan }) => plan === one.plan).map(({ name }) => name) }
          : one
      ),
      kernels: [...this.whole.kernels.filter(elsewhere), ...kernels],
      temporaries: [...this.whole.temporaries.filter(elsewhere), ...temporaries],
      boundaries: [...this.whole.boundaries.filter(boundary => !known.has(edge(boundary))), ...boundaries]
    };
    return true;
  }

  private async all<T>(
    kernel: KernelAccess,
    part: 'ops' | 'boundaries' | 'kernels' | 'temporaries',
    cluster: string,
    read: (items: unknown) => T[]
  ): Promise<T[]> {
    const items: T[] = [];
    for (let start = 0; ;) {
      const body = { want: 'part', cell: this.report.cell.id, part, cluster, start, stop: start + AT_ONCE } as const;
      const answer = await kernel.request(body);
      const reply = isRecord(answer) && isRecord(answer.part) ? answer.part : {};
      const come = read(reply.items);
      items.push(...come);
      start += list(reply.items).length; // fewer come where they would be too many bytes
      if (come.length === 0 || start >= (number(reply.total) ?? 0)) {
        return items;
      }
    }
  }

  private readonly came = new Set<string>();
}
