import { isOnGpu, some } from '../../base/format';
import type { Absorbed } from '../../report/answers';
import type { CodeStage } from '../../report/kernel';

/** `of`: of what runs there alone. `counted`: how many of its lines belong to what is pinned is told. */
interface Stage {
  stage: CodeStage;
  name: string;
  unit: string;
  of?: 'processor' | 'gpu';
  counted?: true;
}

export const STAGES: readonly Stage[] = [
  { stage: 'graph', name: 'Graph', unit: 'Graph line' },
  { stage: 'program', name: 'Program', unit: 'Program line', counted: true },
  { stage: 'numba', name: 'numba.cuda', unit: 'numba line', of: 'gpu' },
  { stage: 'llvm', name: 'LLVM', unit: 'LLVM line' },
  { stage: 'llvm-optimized', name: 'LLVM optimised', unit: 'optimized LLVM line', of: 'processor' },
  { stage: 'asm', name: 'Assembly', unit: 'instruction', of: 'processor', counted: true },
  { stage: 'ptx', name: 'PTX', unit: 'PTX instruction', of: 'gpu', counted: true },
  { stage: 'sass', name: 'SASS', unit: 'SASS instruction', of: 'gpu', counted: true }
];

/** The stages that a cluster has, by the device that it runs on. */
export function stagesOf(device: string): CodeStage[] {
  const where = isOnGpu(device) ? 'gpu' : 'processor';
  return STAGES.filter(({ of = where }) => of === where).map(({ stage }) => stage);
}

/** The stage of another cluster that stands for one: of assembly the PTX and the other way round. */
export function stageIn(stages: readonly CodeStage[], wanted: CodeStage): CodeStage {
  const machine = STAGES.some(({ stage, of }) => stage === wanted && of);
  const near = machine ? (['asm', 'ptx'] as const) : [];
  return [wanted, ...near].find(stage => stages.includes(stage)) ?? 'program';
}

/** "2 operations are in other lines: max, neg" */
export function absorbedText(absorbed: readonly Absorbed[]): string {
  const names = absorbed.slice(0, 4).map(({ op }) => op);
  const more = absorbed.length - names.length;
  const verb = absorbed.length === 1 ? 'is' : 'are';
  return `${some(absorbed.length, 'operation')} ${verb} in other lines: ${names.join(', ')}${more ? `, and ${more} more` : ''}`;
}
