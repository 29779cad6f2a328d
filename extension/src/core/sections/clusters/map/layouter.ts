import { layered, type Layered, type LayeredGraph } from './layered';

/** A group to lay out. The size of a box that is itself a group of this job is known when that one is done. */
export interface GroupJob {
  graph: LayeredGraph;
  /** For each box the job's group that it is, or -1. Groups within come before the group that they are in. */
  inner: ArrayLike<number>;
  /** What a group's frame adds around its boxes. */
  frame: { width: number; height: number };
}

/** The part of a Worker that is needed; tests have their own. */
export interface WorkerLike {
  onmessage: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  postMessage(message: unknown): void;
  terminate(): void;
}

/** Milliseconds of the page's own thread at a time, where there is no worker. */
const SLICE_MS = 8;
/** A worker that does not answer in this time is not waited for. */
const PATIENCE_MS = 4000;

/** Lays groups out away from the page's thread. A new job ends the one before it. */
export class Layouter {
  constructor(private readonly makeWorker: () => WorkerLike | null = workerOfText) {}

  /** Null where a newer job took its place. */
  async run(jobs: readonly GroupJob[]): Promise<Layered[] | null> {
    this.cancel();
    const ticket = ++this.ticket;
    if (jobs.reduce((sum, job) => sum + job.graph.widths.length, 0) <= SMALL) {
      return this.inSlices(jobs, ticket); // sooner done than told
    }
    const worker = this.worker ?? (this.forbidden ? null : this.makeWorker());
    this.forbidden = worker === null;
    if (worker) {
      this.worker = worker;
      const made = await this.inWorker(worker, jobs, ticket);
      if (made !== 'failed') {
        return made;
      }
      this.forbidden = true;
    }
    return ticket === this.ticket ? this.inSlices(jobs, ticket) : null;
  }

  /** What is under way is dropped; the worker that does it is ended. */
  cancel(): void {
    this.ticket++;
    this.drop?.();
    this.drop = null;
  }

  dispose(): void {
    this.cancel();
    this.worker?.terminate();
    this.worker = null;
  }

  private inWorker(
    worker: WorkerLike,
    jobs: readonly GroupJob[],
    ticket: number
  ): Promise<Layered[] | null | 'failed'> {
    return new Promise(resolve => {
      const end = (answer: Layered[] | null | 'failed', keep: boolean): void => {
        clearTimeout(patience);
        this.drop = null;
        if (!keep) {
          worker.terminate();
          this.worker = null;
        }
        resolve(answer);
      };
      const patience = setTimeout(() => end('failed', false), PATIENCE_MS);
      this.drop = () => end(null, false);
      worker.onmessage = event => {
        if (ticket === this.ticket) {
          end(event.data as Layered[], true);
        }
      };
      worker.onerror = event => {
        event.preventDefault();
        end('failed', false);
      };
      worker.postMessage(jobs);
    });
  }

  private async inSlices(jobs: readonly GroupJob[], ticket: number): Promise<Layered[] | null> {
    const done: Layered[] = [];
    let began = performance.now();
    for (const job of jobs) {
      if (performance.now() - began > SLICE_MS) {
        await new Promise(resolve => setTimeout(resolve));
        began = performance.now();
      }
      if (ticket !== this.ticket) {
        return null;
      }
      layOutGroup(job, done, layered);
    }
    return done;
  }

  private worker: WorkerLike | null = null;
  private forbidden = false;
  private ticket = 0;
  private drop: (() => void) | null = null;
}

const SMALL = 500;

/** Self-contained, as `layered` is: the worker has both as text. */
export function layOutGroup(job: GroupJob, done: Layered[], lay: typeof layered): void {
  const widths = Array.from(job.graph.widths);
  const heights = Array.from(job.graph.heights);
  for (let index = 0; index < widths.length; index++) {
    const inside = done[job.inner[index] ?? -1];
    if (inside) {
      widths[index] = Math.max(widths[index] ?? 0, inside.width + job.frame.width);
      heights[index] = inside.height + job.frame.height;
    }
  }
  done.push(lay({ ...job.graph, widths, heights }));
}

/** A page may forbid workers, or workers made of text; then there is none. */
function workerOfText(): WorkerLike | null {
  try {
    const text = `const layered = ${layered.toString()};
const layOutGroup = ${layOutGroup.toString()};
onmessage = event => {
  const done = [];
  for (const job of event.data) layOutGroup(job, done, layered);
  postMessage(done);
};`;
    const address = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
    try {
      return new Worker(address);
    } finally {
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    }
  } catch {
    return null;
  }
}
