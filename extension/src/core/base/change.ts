import { h, icon } from './dom';

/** Of two times, after over before; `significant`: the interval leaves no room for none. */
type Change = { ratio: number; significant: boolean; word: string } | null;

export function directionOf(change: Change): 'slower' | 'faster' | 'same' {
  return !change?.significant ? 'same' : change.ratio > 1 ? 'slower' : 'faster';
}

/** The word with its arrow: colour says nothing that these do not. */
export function changeElement(change: Change): HTMLElement {
  const direction = directionOf(change);
  const mark = { slower: 'up', faster: 'down', same: 'same' } as const;
  return h('span', { class: `jl-word jl-${direction}` }, icon(mark[direction]), change?.word || 'not measured');
}
