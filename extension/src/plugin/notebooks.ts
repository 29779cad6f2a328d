import { Token } from '@lumino/coreutils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Selection } from '../core/panel/selection';
import { DEFAULTS, type Settings } from '../core/panel/settings';
import { Signal } from '../core/base/signal';
import { FollowedNotebook } from './follow';

/** Every open notebook with what jitlab knows of it: what the badges, the marks in the editors and the panels share. */
export const INotebooks = new Token<Notebooks>('jitlab:INotebooks', 'The notebooks that jitlab follows.');

export class Notebooks {
  /** A notebook was opened. */
  readonly added = new Signal<FollowedNotebook>();
  /** Another notebook, or another cell of it, is the active one. */
  readonly moved = new Signal<void>();
  readonly settingsChanged = new Signal<void>();
  /** One for all views: what is pointed at in one lights up in the others. */
  readonly selection = new Selection();
  settings: Settings = DEFAULTS;
  /** Whether the settings are the user's by now. */
  isConfigured = false;

  constructor(readonly tracker: INotebookTracker) {
    tracker.widgetAdded.connect((_, notebook) => this.add(notebook));
    tracker.forEach(notebook => this.add(notebook));
    tracker.currentChanged.connect(() => this.moved.emit());
    tracker.activeCellChanged.connect(() => this.moved.emit());
  }

  get current(): FollowedNotebook | null {
    const { currentWidget } = this.tracker;
    return (currentWidget && this.followed.get(currentWidget.id)) ?? null;
  }

  /** Calls back for each notebook that is open or will be; returns the function that ends it. */
  each(listener: (one: FollowedNotebook) => void): () => void {
    [...this.followed.values()].forEach(listener);
    return this.added.connect(listener);
  }

  /** A view is shown or hidden. Kernels are silent while there is none that shows them. */
  setShown(view: object, shown: boolean): void {
    if (shown) {
      this.views.add(view);
    } else {
      this.views.delete(view);
    }
    for (const { link } of this.followed.values()) {
      link.model.setShown(this.views.size > 0);
    }
  }

  configure(settings: Settings): void {
    this.settings = settings;
    this.isConfigured = true;
    this.settingsChanged.emit();
  }

  /** Changes one setting for good, where settings are kept. */
  change: (name: keyof Settings, value: boolean) => Promise<void> = (name, value) => {
    this.configure({ ...this.settings, [name]: value });
    return Promise.resolve();
  };

  private add(notebook: NotebookPanel): void {
    const one = new FollowedNotebook(notebook);
    one.link.model.setShown(this.views.size > 0);
    this.followed.set(notebook.id, one);
    this.added.emit(one);
    notebook.disposed.connect(() => {
      this.followed.delete(notebook.id);
      one.dispose();
      this.moved.emit();
    });
  }

  private readonly followed = new Map<string, FollowedNotebook>();
  private readonly views = new Set<object>();
}
