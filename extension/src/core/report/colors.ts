import type { Cluster } from './report';

/** The colour of a kernel of a cluster, by their names; null for what no cluster has. */
export type ColorOf = (cluster: string | null, kernel: string | null) => number | null;

const KNOWN = new WeakMap<readonly Cluster[], ColorOf>();

/**
 * Clusters have a colour each. Where there is but one, which is the usual case, a picture of it would be all of one colour:
 * its kernels then have one each, in their order, beginning with the cluster's.
 */
export function colorsOf({ clusters }: { clusters: readonly Cluster[] }): ColorOf {
  const known = KNOWN.get(clusters) ?? makeColors(clusters);
  KNOWN.set(clusters, known);
  return known;
}

/** Whether kernels have colours of their own. */
export function isByKernel(clusters: readonly Cluster[]): boolean {
  return new Set(clusters.map(({ color }) => color)).size === 1 && clusters.some(({ kernels }) => kernels.length > 1);
}

function makeColors(clusters: readonly Cluster[]): ColorOf {
  const own = new Map(clusters.map(({ name, color }) => [name, color]));
  if (!isByKernel(clusters)) {
    return cluster => own.get(cluster ?? '') ?? null;
  }
  const places = new Map(
    clusters.map(({ name, kernels }) => [name, new Map([...new Set(kernels)].map((kernel, at) => [kernel, at]))])
  );
  return (cluster, kernel) => {
    const color = own.get(cluster ?? '');
    return color === undefined ? null : (color + (places.get(cluster ?? '')?.get(kernel ?? '') ?? 0)) % 6;
  };
}
