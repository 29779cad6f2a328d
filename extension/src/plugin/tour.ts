import { h, iconButton, on } from '../core/base/dom';
import type { Notebooks } from './notebooks';

interface Step {
  title: string;
  text: string;
  /** What it stands beside; where nothing is shown of that it stands in the middle. */
  at: (notebooks: Notebooks) => Element | null;
}

const panel = (selector: string): Element | null =>
  [...document.querySelectorAll(`#jitlab-panel .jl-panel ${selector}`)].find(each => each.clientWidth > 0) ?? null;

/** What somebody who has just loaded jitlab does first, in this order. */
export const STEPS: readonly Step[] = [
  {
    title: 'Compile a cell',
    text: 'Write %%jit above it, click the three bars in its toolbar, or turn jit on here for every cell. What cannot be compiled runs as Python.',
    at: notebooks => notebooks.current?.notebook.toolbar.node.querySelector('.jl-switch') ?? null
  },
  {
    title: 'See what you waited for',
    text: 'The first lines say how long the run took and why, how much of it compiled, and what to do next. The line below each cell says it in short.',
    at: () => panel('.jl-verdict')
  },
  {
    title: 'From a line to its kernel',
    text: 'Point at an operation: its line in the cell and its code light up. Click pins it, and X asks what the run would take with another decision.',
    at: () => panel('.jl-clusters')
  },
  {
    title: 'Everything has a key',
    text: 'Press ? in the panel for the list, Alt+1 to Alt+8 for the sections. This tour is in the View menu.',
    at: () => panel('.jl-head')
  }
];

const GAP = 8;
const WIDTH = 300;

/** A card beside what it speaks of, one step after the other. Closing it, or the last step, calls `ended`. */
export function showTour(notebooks: Notebooks, takesFocus: boolean, ended: () => void): void {
  document.querySelector('.jl-tour')?.remove();
  let number = 0;
  const card = h('div.jl.jl-tour', { role: 'dialog', 'aria-label': 'A tour of jitlab' });
  const close = (): void => {
    mark(null);
    window.removeEventListener('resize', place);
    card.remove();
    ended();
  };
  const go = (to: number): void => {
    if (to >= STEPS.length) {
      close();
      return;
    }
    number = to;
    fill();
    card.querySelector<HTMLElement>('.jl-tour-next')?.focus();
  };
  const place = (): void => {
    const target = STEPS[number]?.at(notebooks) ?? null;
    mark(target);
    Object.assign(card.style, beside(target?.getBoundingClientRect() ?? null, card.offsetHeight));
  };
  const fill = (): void => {
    const { title, text } = STEPS[number] ?? { title: '', text: '' };
    const last = number === STEPS.length - 1;
    card.replaceChildren(
      h('div.jl-tour-head', h('b.jl-grow', title), iconButton('no', 'Close the tour', close)),
      h('p', text),
      h(
        'div.jl-buttons',
        h('span.jl-muted.jl-grow', `${number + 1} of ${STEPS.length}`),
        number > 0 && h('button.jl-button', { onclick: () => go(number - 1) }, 'Back'),
        h('button.jl-button.jl-tour-next', { onclick: () => go(number + 1) }, last ? 'Done' : 'Next')
      )
    );
    place();
  };
  on(card, {
    keydown: event => {
      event.stopPropagation(); // no command of the page below
      if (event.key === 'Escape') {
        close();
      }
    }
  });
  window.addEventListener('resize', place);
  document.body.append(card);
  fill();
  if (takesFocus) {
    card.querySelector<HTMLElement>('.jl-tour-next')?.focus();
  }
}

function mark(target: Element | null): void {
  document.querySelectorAll('.jl-tour-target').forEach(each => each.classList.remove('jl-tour-target'));
  target?.classList.add('jl-tour-target');
}

/** Left of what stands at the right, else below it; inside the window. */
function beside(rect: DOMRect | null, height: number): { left: string; top: string } {
  const [width, tall] = [window.innerWidth, window.innerHeight];
  if (!rect) {
    return { left: `${(width - WIDTH) / 2}px`, top: `${(tall - height) / 2}px` };
  }
  const isRight = rect.left > width / 2 && rect.left > WIDTH + 2 * GAP;
  const left = isRight ? rect.left - WIDTH - GAP : Math.min(rect.left, width - WIDTH - GAP);
  const top = isRight ? rect.top : rect.bottom + GAP;
  return { left: `${left}px`, top: `${Math.max(GAP, Math.min(top, tall - height - GAP))}px` };
}
