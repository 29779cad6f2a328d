import { bytes as sizeOf } from '../../../base/format';
import type { Flow } from '../flow';
import type { TreeNode } from '../tree';

export const HEATS = ['time', 'bytes', 'off'] as const;
export type HeatKind = (typeof HEATS)[number];

/** Each box's part of the whole, by time or by bytes. */
export interface Heat {
  kind: HeatKind;
  /** 0 to 1; null where the figure is not known, which is drawn as no heat at all. */
  of(box: Pick<TreeNode, 'seconds' | 'bytes'>): number | null;
  /** Without the curve that makes small parts visible. */
  share(box: Pick<TreeNode, 'seconds' | 'bytes'>): number | null;
  /** What stands beside a name in place of its time. */
  figure?: (bytes: number | null) => string;
}

export function heatOf(kind: HeatKind, flow: Flow): Heat | null {
  if (kind === 'off') {
    return null;
  }
  const bytes = flow.parts
    .flatMap(part => part.nodes)
    .reduce((sum, { cluster }) => sum + (cluster?.bytesRead ?? 0) + (cluster?.bytesWritten ?? 0), 0);
  const whole = kind === 'time' ? flow.seconds : bytes;
  const share: Heat['share'] = box => {
    const part = kind === 'time' ? box.seconds : box.bytes;
    return part === null || !whole ? null : Math.min(1, part / whole);
  };
  return {
    kind,
    share,
    ...(kind === 'bytes' && { figure: moved => sizeOf(moved ?? 0) }),
    of: box => {
      const part = share(box);
      return part === null ? null : Math.sqrt(part);
    }
  };
}
