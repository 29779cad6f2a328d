import { consume, focusNext, h, on, takeKey } from '../../base/dom';
import type { Report } from '../../report/report';
import type { SectionContext } from '../../panel/section';
import type { Ask } from './ask';

/** What it says, a script of its own. */
const ABOUT = () => import('./about');
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
        const hasMoved = event.clientX !== this.at[0] || event.clientY !== this.at[1];
        this.at = [event.clientX, event.clientY];
        this.over = event.target instanceof Element ? event.target : null;
        if (hasMoved && this.hasScrolled) {
          this.hasScrolled = false;
          this.follow();
        }
      }
    });
    root.addEventListener('scroll', this.scrolled, true);
    document.addEventListener('pointerdown', this.outside, true);
    document.addEventListener('keydown', this.escape, true);
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
          void this.open(id, left + 8, bottom - 4, true);
        }
      })
    ];
  }

  /** Brings what it says here, before it is asked for. */
  prefetch(): void {
    ABOUT().catch(() => undefined);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.root.removeEventListener('scroll', this.scrolled, true);
    document.removeEventListener('pointerdown', this.outside, true);
    document.removeEventListener('keydown', this.escape, true);
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
    if (id === null || this.hasScrolled || !this.over?.closest(PLACES)) {
      this.later(() => this.close(), GRACE_MS);
    } else if (id !== this.shown) {
      this.later(() => {
        const [x, y] = this.at;
        void this.open(id, x + 8, y + 14);
      }, DELAY_MS);
    }
  }

  private later(then: () => void, ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(then, ms);
  }

  /** `isMenu`: the keyboard asked, and goes into it. */
  private async open(id: string, x: number, y: number, isMenu = false): Promise<void> {
    clearTimeout(this.timer); // what closes the card before it is not for this one
    this.shown = id;
    const about = await ABOUT().catch(() => null); // of a server that is gone
    const report = this.report();
    const { context, root } = this;
    if (this.shown !== id) {
      return; // something else was asked of, or nothing, while the script came
    }
    const ask = (ask: Ask): void => {
      this.close();
      context.selection.question.emit({ ask, from: root });
    };
    if (!report || !about?.fillCard(this.element, report, context, id, ask, isMenu)) {
      this.close();
      return;
    }
    this.element.hidden = false;
    this.place(x, y);
    if (isMenu) {
      this.element.querySelector<HTMLElement>('button:not(:disabled)')?.focus({ preventScroll: true });
    }
  }

  /** Within the panel, below the point; above it where there is no room. */
  private place(x: number, y: number): void {
    const frame = this.root.getBoundingClientRect();
    const room = this.root.clientWidth; // beside what scrolls
    const left = Math.max(8, Math.min(x - frame.left, room - Math.min(WIDE, room - 16) - 8));
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

  /** What comes under the pointer because the panel moved is not pointed at. */
  private readonly scrolled = (event: Event): void => {
    this.hasScrolled ||= !this.element.contains(event.target as Node);
  };

  private readonly outside = (event: Event): void => {
    if (!this.element.contains(event.target as Node)) {
      this.close();
    }
  };

  /** From wherever the keyboard is; within the card its own keys say where it goes then. */
  private readonly escape = (event: KeyboardEvent): void => {
    const target = event.target as Node;
    if (event.key !== 'Escape' || this.element.hidden || this.element.contains(target)) {
      return;
    }
    this.close();
    if (this.root.contains(target)) {
      consume(event); // what is pinned stays
    }
  };

  readonly element = h('div.jl-hover-card', { role: 'dialog', 'aria-label': 'About this', hidden: true });
  private readonly ends: (() => void)[];
  private at: [number, number] = [0, 0];
  private over: Element | null = null;
  private anchor: Element | null = null;
  private shown: string | null = null;
  /** Since the pointer has moved last. */
  private hasScrolled = false;
  private timer = 0;
}
