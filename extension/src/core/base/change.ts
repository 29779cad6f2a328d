import { h, icon } from './dom';
import { isRecord, number, text } from './read';

/** A difference of two times with its 95 % interval, as the kernel's statistics word it. */
export interface Change {
  /** After over before. */
  ratio: number;
  low: number;
  high: number;
  /** Whether the interval leaves no room for none. */
  significant: boolean;
  /** "slower by 54 % ± 3", "no measurable change". */
  word: string;
}

export function readChange(value: unknown): Change | null {
  if (!isRecord(value)) {
    return null;
  }
  const ratio = number(value.ratio);
  return ratio === null
    ? null
    : {
        ratio,
        low: number(value.low) ?? ratio,
        high: number(value.high) ?? ratio,
        significant: value.significant === true,
        word: text(value.word)
      };
}

export function directionOf(change: Change | null): 'slower' | 'faster' | 'same' {
  return !change?.significant ? 'same' : change.ratio > 1 ? 'slower' : 'faster';
}

/** The word with its arrow: colour says nothing that these do not. */
export function changeElement(change: Change | null): HTMLElement {
  const direction = directionOf(change);
  const mark = { slower: 'up', faster: 'down', same: 'same' } as const;
  return h('span', { class: `jl-word jl-${direction}` }, icon(mark[direction]), change?.word || 'not measured');
}
