import { records } from '../../base/read';
import { fetchItems, type KernelAccess } from '../../report/kernel';
import { readOperations } from '../../report/read-report';
import { readBoundary, readKernel, readTemporary } from '../../report/records';
import type { Boundary, Cluster, Operation, Report } from '../../report/report';

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
    const { id: cell } = this.report.cell;
    const all = async (part: 'ops' | 'boundaries' | 'kernels' | 'temporaries'): Promise<unknown[]> =>
      fetchItems(kernel, { cell, part, cluster });
    const ops = readOperations(await all('ops'));
    if (ops.length === 0) {
      return false;
    }
    const boundaries = records(await all('boundaries')).map(readBoundary);
    const other = (op: Operation): boolean => op.cluster !== cluster;
    const edge = ({ plan, producer, consumer }: Boundary): string => `${plan}\n${producer}\n${consumer}`;
    const kernels = records(await all('kernels')).map(readKernel);
    const temporaries = records(await all('temporaries')).map(readTemporary);
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

  private readonly came = new Set<string>();
}
