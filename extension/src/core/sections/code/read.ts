import { some } from '../../base/format';
import type { CodeStage } from '../../report/kernel';
import { isRecord, list, number, positions, record, records, text } from '../../base/read';
import type { Position } from '../../report/report';

/** A line of a cluster's generated code, and what it came from. */
export interface CodeLine {
  text: string;
  at: Position[];
  ops: string[];
  kernel: string | null;
  /** Labels, guards and the like: folded until asked for. */
  noise: boolean;
}

export interface Code {
  cluster: string;
  stage: string;
  lines: CodeLine[];
  /** Of the lines that are no noise, those with a line of the source; null where that can't be said. */
  share: number | null;
  note: string;
  /** Operations that left no line of their own, and where they went. */
  absorbed: Absorbed[];
}

export interface Absorbed {
  op: string;
  into: string[];
  text: string;
}

export const STAGES: readonly { stage: CodeStage; name: string; unit: string }[] = [
  { stage: 'graph', name: 'Graph', unit: 'Graph line' },
  { stage: 'program', name: 'Program', unit: 'Program line' },
  { stage: 'llvm', name: 'LLVM before', unit: 'LLVM line' },
  { stage: 'llvm-optimized', name: 'after', unit: 'optimized LLVM line' },
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

/** The code in a reply; null where there is none to read. */
export function readCode(reply: unknown): Code | null {
  const code = record(reply).code;
  return isRecord(code)
    ? {
        cluster: text(code.cluster),
        stage: text(code.stage),
        lines: records(code.lines).map(line => ({
          text: text(line.text),
          at: positions(line.at),
          ops: list(line.ops).map(text),
          kernel: text(line.kernel) || null,
          noise: line.noise === true
        })),
        share: number(code.share),
        note: text(code.note),
        absorbed: records(code.absorbed).map(entry => ({
          op: text(entry.op),
          into: list(entry.into).map(text),
          text: text(entry.text)
        }))
      }
    : null;
}
