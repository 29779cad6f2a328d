import type { CanvasView } from '../../base/canvas';
import { changeElement } from '../../base/change';
import { copyLine, h, icon } from '../../base/dom';
import { duration, joined, lines, sentence, some, unbroken } from '../../base/format';
import { isOpen, waitsText, type Job } from '../../report/kernel';
import type { Ask } from './ask';
import { about, byPercent, keepTitle, lost, movedRows, roundsNote, stepText, sweepAdvice, sweepRows } from './layout';
import { readAnswer, readSweep, type Answer, type PathStep, type Sweep } from '../../report/answers';

const MOST_MOVED = 2;
/** What is on the button of a question, and on the card of its answer. */
export const ICONS = { cut: 'cut', fuse: 'link', keep_out: 'host', target: 'kernel', several: 'cut' } as const;

/** What can be done with a job: cancel it, or go on with one that was stopped; null where no kernel is there to do it. */
export interface JobActions {
  cancel: () => void;
  goOn: () => void;
}

/** What a job looks like; `bars` gets the picture of an answer, and is left out where the figures are a table. */
export function jobCard(job: Job, bars: CanvasView | null, actions: JobActions | null): HTMLElement {
  const cancel = actions?.cancel ?? null;
  if (job.state === 'done' || (job.state === 'cancelled' && job.result !== null)) {
    const answer = job.kind === 'sweep' ? null : readAnswer(job.result);
    const sweep = job.kind === 'sweep' ? readSweep(job.result) : null;
    return answer
      ? answerCard(answer, bars)
      : sweep
        ? sweepCard(sweep, job.canContinue ? (actions?.goOn ?? null) : null)
        : failedCard(job, 'The answer can’t be read.');
  }
  return isOpen(job) ? waitingCard(job, cancel) : failedCard(job, job.error ?? 'Cancelled.');
}

/** "Waits for In [9], which is running. Then 80 runs, about 1 s." */
export function waitText(job: Job): string {
  const { progress, estimateSeconds } = job;
  const runs = progress && progress.total > 0 ? some(progress.total, job.kind === 'sweep' ? 'split' : 'run') : '';
  const long = estimateSeconds === null ? '' : about(estimateSeconds);
  const work = joined(', ', runs, long);
  if (job.state === 'running') {
    return progress && progress.total > 0
      ? `${progress.done} of ${runs}${long && progress.done === 0 ? `, ${long}` : ''}`
      : 'Builds both plans.';
  }
  const wait = waitsText(job);
  return work ? `${wait} Then ${work}.` : wait;
}

/** A button for each question; `press` asks it. */
export function askButtons(asks: readonly Ask[], enabled: boolean, press: (ask: Ask) => void): HTMLElement {
  const button = (ask: Ask): HTMLElement => {
    const named = { title: ask.title, 'aria-label': ask.title, disabled: !enabled, onclick: () => press(ask) };
    return h('button.jl-button', named, icon(ICONS[ask.kind]), ask.label);
  };
  return h('div.jl-buttons', asks.map(button));
}

/** What a title does not say of where it is. */
export function linesBeside(title: string, where: readonly number[]): string {
  return /\blines? \d/.test(title) ? '' : lines(where);
}

function waitingCard(job: Job, cancel: (() => void) | null): HTMLElement {
  const { progress } = job;
  const known = progress !== null && progress.total > 0;
  return h(
    'div.jl-card',
    { 'data-state': job.state },
    h(
      'div.jl-card-head',
      icon(job.state === 'queued' ? 'wait' : 'clock'),
      h('b.jl-grow', job.title),
      cancel && h('button.jl-button', { 'aria-label': `Cancel ${job.title}`, onclick: cancel }, 'Cancel')
    ),
    job.state === 'running' &&
      h(
        'div.jl-progress',
        {
          role: 'progressbar',
          'aria-label': job.title,
          'aria-valuemin': 0,
          'aria-valuemax': known ? progress.total : null,
          'aria-valuenow': known ? progress.done : null
        },
        h('i', { style: `width:${known ? (100 * progress.done) / progress.total : 0}%` })
      ),
    h('div.jl-muted', waitText(job))
  );
}

function failedCard(job: Job, text: string): HTMLElement {
  return h(
    'div.jl-card',
    { 'data-state': job.state },
    h('div.jl-card-head', icon('no'), h('b.jl-grow', job.title)),
    h('div', coded(sentence(text)))
  );
}

function answerCard(answer: Answer, bars: CanvasView | null): HTMLElement {
  const refused = answer.refusal !== null;
  const { before, after } = answer;
  const where = linesBeside(answer.title, answer.lines);
  const rows = movedRows(answer);
  return h(
    'div.jl-card',
    { 'data-state': refused ? 'refused' : 'done' },
    h(
      'div.jl-card-head',
      icon(refused ? 'no' : ICONS[answer.question.kind]),
      h('span.jl-grow', h('b', answer.title), where && h('span.jl-muted', ` ${where}`)),
      !refused && changeElement(answer.change)
    ),
    answer.refusal && h('div', coded(sentence(answer.refusal.text))),
    answer.refusal && answer.refusal.path.length > 0 && pathElement(answer.refusal.path, answer.refusal.code),
    before && after && bars?.element,
    rows.length > 0 &&
      h(
        'table.jl-moved',
        { 'aria-label': 'What moved' },
        h(
          'thead',
          { class: bars ? 'jl-hidden' : null },
          h('tr', h('th', ''), h('th.jl-number', 'as built'), h('th'), number('changed', 'th'))
        ),
        h(
          'tbody',
          !bars && before && after && row('time', interval(before), interval(after)),
          rows.map(([what, old, now]) => row(what, old, now))
        )
      ),
    answer.moved.length > 0 && movedElement(answer.moved),
    answer.advice && h('div', h('b', coded(answer.advice))),
    answer.keep && h('details', h('summary.jl-note.jl-muted', keepTitle(answer)), keptLines(answer.keep.lines)),
    answer.keepText && h('div.jl-note.jl-muted', coded(sentence(answer.keepText))),
    answer.note && h('div.jl-note', sentence(answer.note)),
    roundsNote(answer) && h('div.jl-note.jl-muted', roundsNote(answer))
  );
}

/** Where operations run then; many are folded, with their count. */
function movedElement(moved: readonly string[]): HTMLElement {
  const items = h(
    'ul.jl-list.jl-note',
    { 'aria-label': 'Where it runs then' },
    moved.map(text => h('li', coded(sentence(text))))
  );
  return moved.length <= MOST_MOVED
    ? items
    : h('details', h('summary.jl-note.jl-muted', `${moved.length} operations run elsewhere`), items);
}

/** Lines of a program keep their form: what is too long is scrolled, also by the keyboard. */
function keptLines(texts: readonly string[]): HTMLElement {
  const made = copyLine(texts.join('\n'));
  const code = made.querySelector('code');
  if (code) {
    code.tabIndex = 0;
    code.setAttribute('role', 'group');
    code.setAttribute('aria-label', 'Code to make this permanent');
  }
  return made;
}

/** The way that forbids it, as boxes. */
function pathElement(path: readonly PathStep[], code: string): HTMLElement {
  return h(
    'div.jl-path',
    { role: 'list', 'aria-label': 'What forbids it' },
    path.map((step, index) => {
      const host = step.cluster === null;
      return h(
        'span',
        { role: 'listitem' },
        index > 0 && h('span.jl-muted', { 'aria-hidden': 'true' }, '→ '),
        h('span', { class: `jl-step ${host ? 'jl-is-host' : ''}` }, host ? '◇ ' : '', stepText(step))
      );
    }),
    code === 'cycle' && h('span.jl-muted', { role: 'listitem' }, '→ back to the same kernel')
  );
}

/** `goOn` tries the cuts that are left, where there are any and a kernel that can. */
function sweepCard(sweep: Sweep, goOn: (() => void) | null): HTMLElement {
  const { rows, others } = sweepRows(sweep);
  const tried =
    sweep.tried < sweep.total ? `${sweep.tried} of ${some(sweep.total, 'split')}` : some(sweep.tried, 'split');
  return h(
    'div.jl-card.jl-sweep',
    { 'data-state': 'done' },
    h(
      'div.jl-card-head',
      h('b.jl-grow', 'Sweep: each fused pair of operations split once'),
      h('span.jl-note.jl-muted', `${tried}, ${duration(sweep.seconds)}`)
    ),
    h('div', h('b', coded(sweepAdvice(sweep)))),
    h(
      'table',
      { 'aria-label': 'Splits, most time lost first' },
      h(
        'thead.jl-hidden',
        h(
          'tr',
          ['edge', 'time lost', 'change'].map(name => h('th', name))
        )
      ),
      h(
        'tbody',
        rows.map(edge =>
          h(
            'tr',
            { title: edge.change.word },
            h(
              'td',
              coded(edge.title || `${edge.producer} · ${edge.consumer}`),
              ' ',
              h('span.jl-muted', linesBeside(edge.title, edge.lines).replace(' ', '\u00a0'))
            ),
            number(lost(edge.beforeSeconds, edge.afterSeconds)),
            number(byPercent(edge.change.ratio))
          )
        ),
        others > 0 &&
          h(
            'tr',
            h('td', rows.length ? some(others, 'other split') : some(others, 'edge')),
            h('td.jl-number', { colspan: 2 }, 'no measurable change')
          )
      )
    ),
    sweep.stopped &&
      h(
        'div.jl-measure.jl-note',
        h('span.jl-grow', sentence(sweep.stopped)),
        goOn && h('button.jl-button', { title: 'Tries the splits that are left', onclick: goOn }, 'Continue')
      ),
    sweep.note && h('div.jl-note', sentence(sweep.note))
  );
}

/** Words of the program, which stand in backticks, as code. */
export function coded(text: string): (HTMLElement | string)[] {
  const parts = text.split('`');
  return parts.length % 2 ? parts.map((part, at) => (at % 2 ? h('code', part) : part)) : [text];
}

function row(what: string, old: string, now: string): HTMLElement {
  const same = old === now;
  const shown = unbroken(now);
  return h(
    'tr',
    h('th', { scope: 'row' }, what),
    number(unbroken(old)),
    h('td.jl-arrow', { 'aria-hidden': 'true' }, same ? '=' : '→'),
    h('td.jl-number', same ? shown : h('b', shown))
  );
}

function number(text: string, tag: 'td' | 'th' = 'td'): HTMLElement {
  return h(tag, { class: 'jl-number' }, text);
}

function interval({ seconds, low, high }: { seconds: number; low: number; high: number }): string {
  return `${duration(seconds)} (${duration(low)} to ${duration(high)})`;
}
