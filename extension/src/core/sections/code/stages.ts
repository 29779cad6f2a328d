import { some } from '../../base/format';
import type { Absorbed } from '../../report/answers';
import type { CodeStage } from '../../report/kernel';

export const STAGES: readonly { stage: CodeStage; name: string; unit: string }[] = [
  { stage: 'graph', name: 'Graph', unit: 'Graph line' },
  { stage: 'program', name: 'Program', unit: 'Program line' },
  { stage: 'llvm', name: 'LLVM', unit: 'LLVM line' },
  { stage: 'llvm-optimized', name: 'LLVM optimised', unit: 'optimized LLVM line' },
  { stage: 'asm', name: 'Assembly', unit: 'instruction' },
  { stage: 'ptx', name: 'PTX', unit: 'PTX instruction' }
];

/** "2 operations are in other lines: max, neg" */
export function absorbedText(absorbed: readonly Absorbed[]): string {
  const names = absorbed.slice(0, 4).map(({ op }) => op);
  const more = absorbed.length - names.length;
  const verb = absorbed.length === 1 ? 'is' : 'are';
  return `${some(absorbed.length, 'operation')} ${verb} in other lines: ${names.join(', ')}${more ? `, and ${more} more` : ''}`;
}
