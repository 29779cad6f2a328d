import { Signal } from './signal';

/** What is pointed at or pinned, by its id in the report (`cluster_0`, `k0`, `exp`); every view shows it wherever it appears. */
export class Selection {
  readonly changed = new Signal<void>();

  get linked(): string | null {
    return this.hovered ?? this.pinned;
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
}
