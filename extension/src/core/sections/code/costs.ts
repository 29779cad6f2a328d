import { h } from '../../base/dom';
import { clusterMark } from '../../base/shapes';
import { restText, spanText, type LineMark } from './lines';

/** What a line cost, in parts of which the last ones give way to the code; beside a bracket nothing need be said of the other lines. */
export function costParts(mark: LineMark): (HTMLElement | string)[] {
  const isHeld = mark.cost ? mark.brackets.some(bracket => bracket?.edge === 'first') : mark.brackets.length > 0;
  const rest = isHeld ? '' : mark.cost ? spanText(mark) : restText(mark);
  return [
    ...(mark.cost ? [h('b.jl-cost-name', mark.name), ' ', h('span.jl-cost-time', mark.cost)] : []),
    ...(mark.cost && rest ? [' '] : []),
    ...(rest ? [h('span.jl-cost-rest', rest)] : [])
  ];
}

/** Beside a line what holds it and the other lines of its kernel together, the first lane at the right edge. */
export function brackets(mark: LineMark): HTMLElement | false {
  const lanes = mark.brackets.map(bracket =>
    h('i', {
      'data-edge': bracket?.edge ?? null,
      'data-mark': bracket?.color == null ? null : clusterMark(bracket.color)
    })
  );
  return lanes.length > 0 && h('span.jl-brackets', { 'aria-hidden': 'true' }, lanes.reverse());
}
