import { grouped } from '../../base/format';
import { colorsOf } from '../../report/colors';
import type { Kernel, Peaks, Report } from '../../report/report';
import { clusterMark, type Mark } from '../../base/shapes';

/** A kernel that ran and counts operations: how many a byte, and how many a second. */
export interface RoofPoint {
  kernel: Kernel;
  /** `k0`, or `cluster_1 k0` where several clusters have one. */
  name: string;
  mark: Mark;
  intensity: number;
  rate: number;
  /** Of what the machine allows at this intensity; above 1 its bytes came from the caches. Null where no limit is known. */
  ofRoof: number | null;
}

/** Of fewer operations a byte a kernel moves data, and nothing else: its mark would stretch the axis. */
const LEAST = 1e-3;

export interface Roofline {
  points: RoofPoint[];
  /** Kernels that ran and count next to no operations, or whose bytes only a run counts. */
  others: string[];
  peaks: Peaks | null;
}

/** Pure: where the kernels of the processor stand, whose limits these are; of alike plans together, the slowest first. */
export function rooflineOf(report: Report): Roofline {
  const colors = colorsOf(report);
  const like = new Map(report.plans.map(({ name, like }) => [name, like || name]));
  const merged = new Map<string, Kernel>();
  for (const kernel of report.kernels.filter(({ launches }) => !launches?.length)) {
    const key = [like.get(kernel.plan) ?? kernel.plan, kernel.cluster, kernel.name].join('\n');
    const known = merged.get(key);
    const seconds = known?.seconds == null ? kernel.seconds : known.seconds + (kernel.seconds ?? 0);
    merged.set(key, { ...(known ?? kernel), seconds, calls: (known?.calls ?? 0) + kernel.calls });
  }
  const ran = [...merged.values()].filter(({ seconds, calls }) => (seconds ?? 0) > 0 && calls > 0);
  const alone = new Set(ran.map(({ name }) => name)).size === ran.length;
  const { peaks } = report;
  const points: RoofPoint[] = [];
  const others: string[] = [];
  for (const kernel of ran) {
    const name = alone ? kernel.name : `${kernel.cluster} ${kernel.name}`;
    const moved = kernel.bytesRead + kernel.bytesWritten;
    if (kernel.flops < LEAST * moved || moved === 0 || kernel.perTurn) {
      others.push(name);
      continue;
    }
    const [intensity, rate] = [kernel.flops / moved, (kernel.flops * kernel.calls) / (kernel.seconds ?? 1)];
    const mark = clusterMark(colors(kernel.cluster, kernel.name) ?? 0);
    points.push({ kernel, name, mark, intensity, rate, ofRoof: peaks && rate / roofAt(peaks, intensity) });
  }
  points.sort((a, b) => (b.kernel.seconds ?? 0) - (a.kernel.seconds ?? 0));
  return { points, others, peaks };
}

/** Operations a second that memory and arithmetic allow. */
export function roofAt({ bytesPerSecond, flopsPerSecond }: Peaks, intensity: number): number {
  return Math.min(intensity * bytesPerSecond, flopsPerSecond);
}

/** `25 GFLOP/s` */
export function flopRate(rate: number): string {
  return scaled(rate, 'FLOP/s');
}

export function scaled(value: number, unit: string): string {
  const [prefix, size] = (
    [
      ['T', 1e12],
      ['G', 1e9],
      ['M', 1e6],
      ['k', 1e3]
    ] as const
  ).find(([, least]) => value >= least) ?? ['', 1];
  const number = value / size;
  return `${number >= 100 ? grouped(Math.round(number)) : String(Number(number.toPrecision(2)))} ${prefix}${unit}`;
}

/** `in cache` where it is faster than memory, `35 % of the limit` else; "" where nothing is known. */
export function roofText({ ofRoof, kernel }: RoofPoint): string {
  if (ofRoof === null) {
    return '';
  }
  return isInCache({ ofRoof, kernel })
    ? 'in cache'
    : `${ofRoof < 0.01 ? '< 1' : Math.round(100 * ofRoof)} % of the limit`;
}

/** What a mark says, of the slowest kernel in words; "" where nothing is known. */
export function meaningOf({ points: [point], peaks }: Roofline): string {
  if (!point || !peaks) {
    return '';
  }
  const { name, rate, intensity } = point;
  const ran = `${name} runs at ${flopRate(rate)}`;
  if (rate > peaks.flopsPerSecond) {
    return `${ran}, above the ${flopRate(peaks.flopsPerSecond)} that were measured as the limit of this machine.`;
  }
  if (isInCache(point)) {
    const gives = rate > intensity * peaks.bytesPerSecond ? 'faster than memory gives them' : 'not from memory';
    return `${ran}: its bytes come from the caches, ${gives} (${scaled(peaks.bytesPerSecond, 'B/s')}).`;
  }
  const bound = intensity * peaks.bytesPerSecond < peaks.flopsPerSecond ? 'memory' : 'arithmetic';
  const limit = flopRate(roofAt(peaks, intensity));
  return `${ran} of the ${limit} that ${bound} allows at ${Number(intensity.toPrecision(2))} operations a byte.`;
}

/** Its bytes came faster than memory gives them. */
export function isInCache({ ofRoof, kernel }: Pick<RoofPoint, 'ofRoof' | 'kernel'>): boolean {
  return ofRoof !== null && (ofRoof > 1 || kernel.bound === 'cache');
}

/** Pure: what the heading of the section says, also when it is closed. */
export function rooflineSummary(report: Report): string {
  const [slowest] = rooflineOf(report).points;
  const told = slowest ? roofText(slowest) : '';
  return slowest && told ? `${slowest.name}: ${told}` : 'what the machine allows';
}
