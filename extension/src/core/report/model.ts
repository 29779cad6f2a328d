import { isCellFinished, isCellStarted, type Batch, type FromKernel, type ToKernel } from './events';
import { JobsModel } from './kernel';
import { readReport } from './read-report';
import type { Report } from './report';
import { sameReport } from './same';
import { Signal } from '../base/signal';

/** What the panel knows of one cell. */
export interface CellState {
  report: Report | null;
  /** Why a report that came can't be shown. */
  refusal: string | null;
  /** `live`: of this kernel; `previous`: of the kernel before its restart; `saved`: read from the notebook. */
  origin: 'live' | 'previous' | 'saved';
  running: boolean;
  /** Events since the cell began. */
  events: number;
}

/** A cell that runs. */
export interface Busy {
  title: string;
  /** As Date.now() has it, when the message came. */
  since: number;
}

const RESUME_MS = 2000;

/** What the panel knows of one notebook. Takes the messages of the wire, asks again for those it missed. */
export class NotebookModel {
  readonly changed = new Signal<string | null>();
  /** The first view was opened, or the last one closed. */
  readonly shownChanged = new Signal<void>();
  /** Whether the kernel has jitlab loaded; null while unknown. */
  loaded: boolean | null = null;
  epoch = '';
  last = 0;
  eventCount = 0;
  resumes = 0;
  /** Events that are recorded and not here yet: the picture lags, the recording does not. */
  behind = 0;
  readonly jobs = new JobsModel();
  /** The cell that reported last. */
  latest: string | null = null;

  constructor(private readonly send: (message: ToKernel) => void) {}

  /** Whether any view is open. */
  get isShown(): boolean {
    return this.shown;
  }

  /** What runs besides this cell, and since when; null where the kernel is free. */
  busy(id: string | null): Busy | null {
    const running = [...this.started].find(([cell]) => cell !== id);
    return running?.[1] ?? null;
  }

  cell(id: string): CellState | undefined {
    return this.cells.get(id);
  }

  /** Cells with a report, in the order they came. */
  reported(): string[] {
    return [...this.cells].filter(([, state]) => state.report ?? state.refusal).map(([id]) => id);
  }

  receive(message: FromKernel): void {
    this.loaded = true;
    if ('behind' in message && typeof message.behind === 'number') {
      this.behind = Math.max(0, message.behind);
    }
    switch (message.op) {
      case 'hello':
        this.takeHello(message.epoch, message.last);
        break;
      case 'batch':
        this.takeBatch(message);
        break;
      case 'report':
        this.takeReport(message.cell ?? '', message.report, message.mark, message.order ?? this.latestOrder);
        break;
      case 'reply':
        break; // the link hands replies to who asked
      case 'job':
        this.jobs.take(message);
        break;
      case 'paused':
        this.resumeNow(); // another page has hidden its panel, this one has not
        break;
    }
  }

  /** The kernel has gone, with what it knew; what is shown stays and says so. */
  kernelLost(): void {
    this.loaded = null;
    this.asked = false;
    this.resumed = 0;
    this.forgetKernel();
    this.jobs.kernelLost();
    this.changed.emit(null);
  }

  setLoaded(loaded: boolean): void {
    if (this.loaded !== loaded) {
      this.loaded = loaded;
      this.changed.emit(null);
    }
  }

  /** Reports found in the notebook's outputs. They never replace what the kernel said. */
  setSaved(reports: ReadonlyMap<string, unknown>): void {
    let fresh = false;
    for (const [cell, value] of reports) {
      if (!this.cells.get(cell)?.report) {
        this.store(cell, value, 'saved');
        fresh = true;
      }
    }
    if (fresh) {
      this.changed.emit(null);
    }
  }

  /** A report that a cell has just put out; with no view open nothing else brings it. */
  takeOutput(cell: string, value: unknown): void {
    this.takeReport(cell, value, undefined, this.latestOrder);
  }

  /** Whether anyone looks; the kernel sends nothing to a panel that is hidden. */
  setShown(shown: boolean): void {
    if (this.shown === shown) {
      return;
    }
    this.shown = shown;
    this.shownChanged.emit();
    if (shown) {
      this.resumeNow();
    } else if (this.loaded) {
      this.asked = false;
      this.send({ op: 'pause' });
    }
  }

  /** The connection was cut and is there again. */
  cameBack(): void {
    this.resumeNow();
  }

  /** Asks for what was missed: at most once in two seconds, because a gap would show in every batch until it is filled. */
  resume(): void {
    const now = Date.now();
    if (!this.shown || now - this.resumed < RESUME_MS) {
      return;
    }
    this.resumed = now;
    this.resumes++;
    this.asked = true;
    this.send({
      op: 'resume',
      epoch: this.epoch,
      since: this.gap ? 0 : this.last,
      have: Object.fromEntries(this.marks)
    });
  }

  private resumeNow(): void {
    if (this.loaded) {
      this.resumed = 0;
      this.resume();
    }
  }

  private takeHello(epoch: string, last: number): void {
    const answer = this.asked;
    this.asked = false;
    this.replaying = answer;
    if (epoch !== this.epoch) {
      this.forgetKernel();
      this.epoch = epoch;
      if (!answer) {
        this.resumed = 0;
        this.resume(); // the kernel sends nothing to a panel that has not asked
      }
      this.changed.emit(null);
    } else if (answer && this.gap) {
      this.recount();
    } else if (!answer && last > this.last) {
      this.resume();
    }
  }

  /** After a gap everything is replayed, so that each event is counted once and in its order. */
  private recount(): void {
    this.gap = false;
    this.last = 0;
    this.eventCount = 0;
    for (const state of this.cells.values()) {
      state.events = 0;
    }
  }

  private forgetKernel(): void {
    for (const state of this.cells.values()) {
      state.running = false;
      if (state.origin === 'live') {
        state.origin = 'previous';
      }
    }
    this.epoch = '';
    this.started.clear();
    this.behind = 0;
    this.marks.clear();
    this.latestOrder = 0;
    this.recount();
  }

  private takeBatch(batch: Batch): void {
    if (batch.last <= this.last) {
      return; // a replay of what is known
    }
    if (batch.first <= this.last && Object.keys(batch.counts ?? {}).length > 0) {
      this.gap = true; // a replay and a batch crossed: which of the counted events are new cannot be told, so all come again
      this.replaying = false;
      this.resumeNow();
      return;
    }
    if (this.replaying) {
      this.replaying = false; // older ones are no longer in the kernel's ring: not a gap that asking would fill
    } else if (batch.first > this.last + 1) {
      this.gap = true;
    }
    if (this.gap) {
      this.resume();
    }
    this.eventCount += batch.last - Math.max(this.last, batch.first - 1);
    const changed = new Set<string>();
    const cell = (id: string) => {
      const state = this.cells.get(id) ?? {
        report: null,
        refusal: null,
        origin: 'live',
        running: false,
        events: 0
      };
      this.cells.set(id, state);
      changed.add(id);
      return state;
    };
    for (const event of batch.events.filter(each => each.seq > this.last)) {
      const state = cell(event.cell ?? batch.cell ?? '');
      state.events++;
      if (isCellStarted(event)) {
        state.running = true;
        state.events = 0;
        const id = event.cell ?? batch.cell ?? '';
        this.started.set(id, { title: `In [${event.execution_count}]`, since: Date.now() });
      } else if (isCellFinished(event)) {
        state.running = false;
        this.started.delete(event.cell ?? batch.cell ?? '');
      }
    }
    for (const [id, kinds] of Object.entries(batch.counts ?? {})) {
      cell(id).events += Object.values(kinds).reduce((sum, count) => sum + count, 0);
    }
    this.last = batch.last;
    for (const id of changed) {
      this.changed.emit(id);
    }
  }

  private takeReport(id: string, value: unknown, mark: number | undefined, order: number): void {
    this.store(id, value, 'live');
    if (mark !== undefined) {
      this.marks.set(id, mark);
    }
    if (order >= this.latestOrder) {
      this.latestOrder = order; // after a reload the newest reports come first
      this.latest = id;
    }
    this.changed.emit(id);
  }

  private store(id: string, value: unknown, origin: CellState['origin']): void {
    const read = readReport(value);
    const before = this.cells.get(id);
    const refusal = typeof read === 'string' ? read : null;
    let report = typeof read === 'string' ? null : read;
    if (report && before?.report && sameReport(before.report, report)) {
      report = before.report; // what is drawn of it stays
    }
    this.cells.set(id, {
      report,
      refusal,
      origin,
      running: report ? report.cell.running : (before?.running ?? false),
      events: before?.events ?? 0
    });
  }

  private readonly cells = new Map<string, CellState>();
  /** The reports that came from this kernel, each by the number of events it holds: they need not come again. */
  private readonly marks = new Map<string, number>();
  private latestOrder = 0;
  private readonly started = new Map<string, Busy>();
  private shown = true;
  private resumed = 0;
  /** A resume is on its way, so the next hello is its answer. */
  private asked = false;
  private gap = false;
  /** What comes next is the first batch of a replay. */
  private replaying = false;
}
