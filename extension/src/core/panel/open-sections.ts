import type { PanelActions } from './panel-state';
import type { Report } from '../report/report';
import type { Section } from './section';
import { DEFAULTS } from './settings';

/** Which sections are open: at first those of the setting and the one of the advice; then what a user chose, a notebook each. */
export class OpenSections {
  /** Without `actions` it is an output in a notebook, whose sections stay as they are; `isMain`: in the main area. */
  constructor(
    private readonly sections: readonly Pick<Section, 'place' | 'title' | 'open'>[],
    private readonly actions: PanelActions | null,
    private readonly isMain: boolean
  ) {}

  /** The sections of the setting; what a user opens or closes afterwards is theirs. */
  atFirst(notebook: string): void {
    if (!this.actions || this.isMain || this.kept.has(notebook)) {
      return;
    }
    const wanted = (this.actions.settings ?? DEFAULTS).openSections;
    this.asItWas(() => {
      for (const section of this.sections) {
        section.open = wanted.includes(section.title);
      }
    });
  }

  /** The section that *Do next* speaks of opens too, unless the user has chosen. */
  forReport(report: Report, notebook: string): void {
    const asked = report.verdict.next?.section;
    if (this.isMain) {
      this.asItWas(() => {
        this.sections
          .filter(({ open }) => !open && !this.kept.has(notebook))
          .forEach(section => {
            section.open = true;
          });
      });
      this.kept.set(notebook, []);
    } else if (asked !== undefined && this.actions && !this.kept.has(notebook)) {
      const section = this.sections.find(({ place }) => place.id === asked);
      if (section && !section.open) {
        this.asItWas(() => {
          section.open = true;
        });
      }
    }
  }

  /** A section has been opened or closed: where a user did it, it stays so for the notebook. */
  changed(notebook: string | undefined): void {
    if (this.choosing && notebook !== undefined && !this.isMain) {
      const open = this.sections.filter(section => section.open).map(({ title }) => title);
      this.kept.set(notebook, open);
      this.actions?.keep?.(notebook, open);
    }
  }

  /** As they were when the notebook was last shown; one that is new begins with those of the setting. */
  recall(notebook: string): void {
    const open = this.kept.get(notebook) ?? this.actions?.keep?.(notebook, null);
    if (this.isMain) {
      return;
    }
    if (!open) {
      this.atFirst(notebook);
      return;
    }
    this.kept.set(notebook, open);
    this.asItWas(() => {
      for (const section of this.sections) {
        if (section.open !== open.includes(section.title)) {
          section.open = !section.open;
        }
      }
    });
  }

  /** Opens or closes without its being a user's choice. */
  private asItWas(change: () => void): void {
    this.choosing = false;
    change();
    this.choosing = true;
  }

  private readonly kept = new Map<string, readonly string[]>();
  private choosing = true;
}
