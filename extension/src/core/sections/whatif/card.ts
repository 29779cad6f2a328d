import { focusNext, h, on, takeKey } from '../../base/dom';
import { arrayBytes, arrayType, bytes, sentence, whereOf } from '../../base/format';
import { put, type Links } from '../../report/links';
import { swatch } from '../../base/marks';
import { colorsOf } from '../../report/colors';
import type { Operation, Report } from '../../report/report';
import type { SectionContext } from '../../panel/section';
import { askable } from './ask';
import { askButtons, coded } from './cards';

const DELAY_MS = 300;
/** So long the pointer may be on its way to the card. */
const GRACE_MS = 250;
const WIDE = 316;
/** Where pointing at a thing means the thing, not the text that is read there. */
const PLACES = '.jl-clusters, .jl-verdict';

/** What an operation or a value is, and what can be asked of it: comes when something is pointed at, or the keyboard asks. */
export class Card {
  constructor(
    private readonly root: HTMLElement,
    private readonly context: SectionContext,
    private readonly report: () => Report | null
  ) {
    root.append(this.element);
    on(root, {
      pointermove: event => {
        this.at = [event.clientX, event.clientY];
        this.over = event.target instanceof Element ? event.target : null;
      },
      pointerdown: event => {
        if (!this.element.contains(event.target as Node)) {
          this.close();
        }
      }
    });
    on(this.element, {
      pointerenter: () => clearTimeout(this.timer),
      pointerleave: () => this.later(() => this.close(), GRACE_MS),
      keydown: event => this.onKey(event)
    });
    this.ends = [
      context.selection.changed.connect(() => this.follow()),
      context.selection.menu.connect(({ id, anchor }) => {
        if (root.contains(anchor)) {
          const { left, bottom } = anchor.getBoundingClientRect();
          this.anchor = anchor;
          this.open(id, left + 8, bottom - 4);
          this.element.querySelector<HTMLElement>('button:not(:disabled)')?.focus({ preventScroll: true });
        }
      })
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const end of this.ends) {
      end();
    }
  }

  /** Comes a moment after the pointer rests on a thing, and goes a moment after it has left. */
  private follow(): void {
    const id = this.context.selection.pointed;
    if (this.element.contains(document.activeElement)) {
      return; // the keyboard asked for it
    }
    if (id === null || !this.over?.closest(PLACES)) {
      this.later(() => this.close(), GRACE_MS);
    } else if (id !== this.shown) {
      this.later(() => {
        const [x, y] = this.at;
        this.open(id, x + 8, y + 14);
      }, DELAY_MS);
    }
  }

  private later(then: () => void, ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(then, ms);
  }

  private open(id: string, x: number, y: number): void {
    clearTimeout(this.timer); // what closes the card before it is not for this one
    const report = this.report();
    const { links } = this.context.selection;
    const about = report && links ? askable(report, links, id) : null;
    if (!report || !links || !about || (about.asks.length === 0 && links.of(id).kind !== 'op')) {
      this.close();
      return;
    }
    this.shown = id;
    const op = links.of(id).kind === 'op' ? links.op(id) : undefined;
    const kernel = this.context.kernel;
    this.element.setAttribute('aria-label', `${about.title}, ${about.facts}`);
    this.element.replaceChildren(
      h(
        'div.jl-card-head',
        swatch(markOf(report, links, id)),
        h('b', about.title),
        h('span.jl-muted.jl-grow', about.facts)
      ),
      ...(op
        ? factsOf(report, links, op).map(([text, code]) => h(code ? 'code' : 'div', {}, code ? text : coded(text)))
        : []),
      askButtons(about.asks, kernel !== null, ask => {
        this.close();
        this.context.selection.question.emit({ ask, from: this.root });
      }),
      h(
        'div.jl-note.jl-muted',
        about.asks.length === 0
          ? about.hint
          : kernel
            ? `${about.asks.length > 1 ? 'Each builds' : 'Builds'} both plans and measures them.`
            : 'Measuring needs the kernel that ran this cell.'
      )
    );
    this.element.hidden = false;
    this.place(x, y);
  }

  /** Within the panel, below the point; above it where there is no room. */
  private place(x: number, y: number): void {
    const frame = this.root.getBoundingClientRect();
    const wide = Math.min(WIDE, frame.width - 16);
    const left = Math.max(8, Math.min(x - frame.left, frame.width - wide - 8));
    const tall = this.element.offsetHeight;
    const fits = y + tall <= Math.min(frame.bottom, window.innerHeight);
    const top = fits ? y : Math.max(frame.top, y - tall - 34);
    this.element.style.left = `${left + this.root.scrollLeft}px`;
    this.element.style.top = `${top - frame.top + this.root.scrollTop}px`;
  }

  private close(): void {
    clearTimeout(this.timer);
    this.shown = null;
    this.element.hidden = true;
  }

  private onKey(event: KeyboardEvent): void {
    const buttons = [...this.element.querySelectorAll<HTMLElement>('button:not(:disabled)')];
    const [next, before] = [() => focusNext(buttons, 1), () => focusNext(buttons, -1)];
    const leave = (): void => {
      this.close();
      if (this.anchor instanceof HTMLElement || this.anchor instanceof SVGElement) {
        this.anchor.focus();
      }
    };
    const arrows = { ArrowRight: next, ArrowDown: next, ArrowLeft: before, ArrowUp: before };
    takeKey(event, { ...arrows, Escape: leave, Tab: leave });
  }

  readonly element = h('div.jl-hover-card', { role: 'dialog', 'aria-label': 'About this', hidden: true });
  private readonly ends: (() => void)[];
  private at: [number, number] = [0, 0];
  private over: Element | null = null;
  private anchor: Element | null = null;
  private shown: string | null = null;
  private timer = 0;
}

/** Pure: shape and dtype, its bytes, what it shares a kernel with; [text, whether it is code]. */
export function factsOf(report: Report, links: Links, op: Operation): [string, boolean][] {
  const id = links.idOf(op.name, op.plan);
  const inputs = op.inputs.map(input => links.op(links.idOf(input, op.plan))).filter(input => input !== undefined);
  const readers = links
    .readersOf(id)
    .map(reader => links.op(reader))
    .filter(reader => reader !== undefined);
  const from = [...new Set(inputs.map(input => arrayType(input.dtype, input.shape)))].join(', ');
  const type = arrayType(op.dtype, op.shape);
  const size = arrayBytes(op.dtype, op.shape);
  const fused = [...inputs, ...readers].filter(other => other.kernel !== null && other.kernel === op.kernel);
  const temporary = report.temporaries.find(({ plan, name }) => plan === op.plan && name === op.name);
  return [
    [from ? `${from} → ${type}` : type, true],
    size !== null && op.shape.length > 0 ? [`Its value is ${bytes(size)}.`, false] : null,
    temporary?.reason ? [`Still reaches memory: ${sentence(temporary.reason.text)}`, false] : null,
    fused.length ? [`Fused with ${named(fused)}.`, false] : null,
    op.reason ? [sentence(`Not compiled: ${op.reason.text}`), false] : null,
    [`In the graph: ${op.name} (${op.op})`, false]
  ].filter(fact => fact !== null) as [string, boolean][];
}

/** "Sub (line 4), Sum and Div (line 6)" */
function named(ops: readonly Operation[]): string {
  const byLine = new Map<string, string[]>();
  for (const op of new Set(ops)) {
    put(byLine, whereOf(op), op.written);
  }
  return [...byLine].map(([where, names]) => `${names.join(' and ')}${where ? ` (${where})` : ''}`).join(', ');
}

function markOf(report: Report, links: Links, id: string): number | string {
  const [cluster] = links.of(id).clusters;
  const found = cluster === undefined ? undefined : links.cluster(cluster);
  const [kernel] = links.of(id).kernels;
  const own = kernel === undefined ? undefined : links.kernel(kernel);
  return found
    ? (colorsOf(report)(found.name, own?.name ?? null) ?? found.color)
    : report.clusters.length
      ? 'host'
      : 'op';
}
