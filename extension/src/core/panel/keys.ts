/** Every key of the panel. In JupyterLab each is a command that can be given another key; elsewhere these are the keys. */
import { SECTIONS } from './sections';

export interface Key {
  /** The command is `jitlab:` and this. */
  id: string;
  place: Place;
  /** As the views listen for it. */
  key: string;
  modifier?: 'Alt' | 'Shift';
  label: string;
  /** As a keyboard event's `code` names it, where the key alone does not say it. */
  code?: string;
}

export type Place = 'panel' | 'graph' | 'code' | 'timeline';

/** Where the focus has to be. `jl-keyed` is there only while no text is being typed. */
export const SELECTORS: Record<Place, string> = {
  panel: '.jl-keyed',
  graph: '.jl-keyed .jl-clusters > .jl-body',
  code: '.jl-keyed .jl-code > .jl-body',
  timeline: '.jl-keyed .jl-timeline > .jl-body'
};

export const PLACES: Record<Place, string> = {
  panel: 'In the panel',
  graph: 'In the clusters',
  code: 'In the code',
  timeline: 'In the timeline'
};

export const KEYS: readonly Key[] = [
  ...[{ id: 'verdict', title: 'Verdict', key: '1' }, ...SECTIONS].flatMap(({ id, title, key }): Key[] =>
    key
      ? [{ id: `go-to-${id}`, place: 'panel', key, modifier: 'Alt', label: `Go to ${title}`, code: `Digit${key}` }]
      : []
  ),
  { id: 'pin-cell', place: 'panel', key: 'p', label: 'Pin or unpin the cell' },
  { id: 'toggle-table', place: 'panel', key: 't', label: 'Switch the section between picture and table' },
  { id: 'open-section', place: 'panel', key: 'o', label: 'Open the section in the main area' },
  { id: 'search-graph', place: 'panel', key: '/', label: 'Search the clusters' },
  { id: 'save-html', place: 'panel', key: 's', modifier: 'Shift', label: 'Save the report as an HTML file' },
  { id: 'show-keys', place: 'panel', key: '?', modifier: 'Shift', code: 'Slash', label: 'Show the keys' },
  { id: 'clear-selection', place: 'panel', key: 'Escape', label: 'Clear what is pinned, then go to the notebook' },
  { id: 'select-previous-box', place: 'graph', key: 'ArrowUp', label: 'Previous box' },
  { id: 'select-next-box', place: 'graph', key: 'ArrowDown', label: 'Next box' },
  { id: 'open-box', place: 'graph', key: 'ArrowRight', label: 'Open the box, or go into it' },
  { id: 'close-box', place: 'graph', key: 'ArrowLeft', label: 'Go out of the box, or close it' },
  { id: 'follow-value-back', place: 'graph', key: '[', label: 'Go to what makes the value' },
  { id: 'follow-value-on', place: 'graph', key: ']', label: 'Go to what reads the value' },
  { id: 'next-unfused', place: 'graph', key: 'n', label: 'Next value that is not fused' },
  { id: 'ask-what-if', place: 'graph', key: 'x', label: 'Ask what if' },
  { id: 'fit-graph', place: 'graph', key: ' ', code: 'Space', label: 'Fit the picture, or choose the box' },
  { id: 'select-previous-line', place: 'code', key: 'ArrowUp', label: 'Previous line' },
  { id: 'select-next-line', place: 'code', key: 'ArrowDown', label: 'Next line' },
  { id: 'pin-line', place: 'code', key: 'Enter', label: 'Pin the line' },
  { id: 'go-to-notebook-line', place: 'code', key: 'g', label: 'Go to the line in the notebook' },
  { id: 'zoom-in', place: 'timeline', key: 'w', label: 'Zoom in' },
  { id: 'zoom-out', place: 'timeline', key: 's', label: 'Zoom out' },
  { id: 'move-left', place: 'timeline', key: 'a', label: 'Move left' },
  { id: 'move-right', place: 'timeline', key: 'd', label: 'Move right' },
  { id: 'select-previous-span', place: 'timeline', key: ',', label: 'Previous span' },
  { id: 'select-next-span', place: 'timeline', key: '.', label: 'Next span' },
  { id: 'fit-timeline', place: 'timeline', key: 'f', label: 'Centre the span, again show all' },
  { id: 'select-span', place: 'timeline', key: 'r', label: 'Select the span' },
  {
    ...{ id: 'extend-selection-left', place: 'timeline', key: 'ArrowLeft', modifier: 'Shift' },
    label: 'Make the selection shorter'
  },
  {
    ...{ id: 'extend-selection-right', place: 'timeline', key: 'ArrowRight', modifier: 'Shift' },
    label: 'Make the selection longer'
  }
];

/** As JupyterLab's shortcuts write it: `Alt 1`, `N`, `Shift ArrowLeft`. */
export function shortcutOf({ key, modifier, code }: Key): string {
  const name = key === ' ' ? 'Space' : code === 'Slash' ? '/' : key.length === 1 ? key.toUpperCase() : key;
  return modifier ? `${modifier} ${name}` : name;
}

/** As a user reads it. */
export function keyName({ key, modifier }: Key): string {
  const names: Record<string, string> = {
    ArrowUp: '↑',
    ArrowDown: '↓',
    ArrowLeft: '←',
    ArrowRight: '→',
    Escape: 'Esc',
    ' ': 'Space'
  };
  const name = names[key] ?? (key.length === 1 ? key.toUpperCase() : key);
  return modifier && key !== '?' ? `${modifier}+${name}` : name;
}

/** The key that an event is, where it stands; undefined for any other. */
export function keyOf(event: KeyboardEvent): Key | undefined {
  const target = event.target as Element | null;
  const fits = KEYS.filter(
    ({ key, modifier, code }) =>
      !event.ctrlKey &&
      !event.metaKey &&
      event.altKey === (modifier === 'Alt') &&
      (modifier === 'Alt' || key === '?' || event.shiftKey === (modifier === 'Shift')) &&
      (modifier === 'Alt' ? event.code === code : event.key.toLowerCase() === key.toLowerCase())
  );
  // The innermost place has it.
  const [found] = fits
    .filter(({ place }) => target?.closest(SELECTORS[place]))
    .sort((a, b) => Number(a.place === 'panel') - Number(b.place === 'panel'));
  return found;
}

/** Events that a command has made: the views take them whatever key the user has given to the command. */
const made = new WeakSet<Event>();

export function isMade(event: Event): boolean {
  return made.has(event);
}

/** Presses a key where the focus is, as the views know it. */
export function press({ key, modifier, code }: Key, at: Element): void {
  const event = new KeyboardEvent('keydown', {
    key,
    code: code ?? '',
    altKey: modifier === 'Alt',
    shiftKey: modifier === 'Shift',
    bubbles: true,
    cancelable: true
  });
  made.add(event);
  at.dispatchEvent(event);
}
