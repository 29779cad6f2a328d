import { Links, type Linked } from '../report/links';
import type { Report } from '../report/report';
import { Signal } from '../base/signal';
import type { Ask } from '../sections/whatif/ask';

/** What is pointed at or pinned, by its id (see Links); every view shows it, and all that is linked to it, wherever it appears. */
export class Selection {
  readonly changed = new Signal<void>();
  /** The keyboard asks what can be done with a thing: opens its card, beside `anchor` and with the focus in it. */
  readonly menu = new Signal<{ id: string; anchor: Element }>();
  /** A what-if was asked for at `from`; the section What-if of that panel takes it to the kernel. */
  readonly question = new Signal<{ ask: Ask; from: Element }>();

  /** The report whose things the ids name; a pin that the new one does not know is let go of. */
  show(report: Report): void {
    if (report !== this.known?.report) {
      const other = report.cell.id !== this.known?.report.cell.id;
      this.known = new Links(report);
      if (other || (this.pinned !== null && this.known.of(this.pinned).kind === 'none')) {
        this.pinned = null;
      }
      this.hovered = null;
    }
  }

  /** Null before the first report. */
  get links(): Links | null {
    return this.known;
  }

  /** What to light: pointed at, else pinned. */
  get linked(): string | null {
    return this.hovered ?? this.pinned;
  }

  /** All that belongs to it; null where nothing is pointed at. */
  get lit(): Linked | null {
    return this.linked === null ? null : (this.known?.of(this.linked) ?? null);
  }

  /** All that belongs to what is pinned; null where nothing is. */
  get held(): Linked | null {
    return this.pinned === null ? null : (this.known?.of(this.pinned) ?? null);
  }

  /** What is pointed at. */
  get pointed(): string | null {
    return this.hovered;
  }

  get pin(): string | null {
    return this.pinned;
  }

  hover(id: string | null): void {
    if (this.hovered !== id) {
      this.hovered = id;
      this.changed.emit();
    }
  }

  /** A second time lets go. */
  togglePin(id: string): void {
    this.pinned = this.pinned === id ? null : id;
    this.changed.emit();
  }

  /** Whether there was anything to let go of. */
  clear(): boolean {
    const had = this.pinned !== null;
    this.hovered = this.pinned = null;
    if (had) {
      this.changed.emit();
    }
    return had;
  }

  private hovered: string | null = null;
  private pinned: string | null = null;
  private known: Links | null = null;
}
