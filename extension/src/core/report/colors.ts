import { HOLLOW } from '../base/shapes';
import type { Cluster } from './report';

/** The colour of a kernel of a cluster, by their names; null for what no cluster has. */
export type ColorOf = (cluster: string | null, kernel: string | null) => number | null;

/**
 * Clusters have a colour each. Where there is but one, which is the usual case, a picture of it would be all of one colour:
 * its kernels then have one each, in their order, beginning with the cluster's.
 */
export function colorsOf({ clusters }: { clusters: readonly Cluster[] }): ColorOf {
  const byName = new Map(clusters.map(cluster => [cluster.name, cluster]));
  const own = isByKernel(clusters);
  return (name, kernel) => {
    const cluster = byName.get(name ?? '');
    if (!cluster || cluster.color === HOLLOW) {
      return cluster?.color ?? null;
    }
    return (cluster.color + (own ? Math.max(0, cluster.kernels.indexOf(kernel ?? '')) : 0)) % 6;
  };
}

/** Whether kernels have colours of their own. */
export function isByKernel(clusters: readonly Cluster[]): boolean {
  return new Set(clusters.map(({ color }) => color)).size === 1 && clusters.some(({ kernels }) => kernels.length > 1);
}
