import { clean, list, number, record, text } from '../base/read';
import { Signal } from '../base/signal';

/** What the panel may ask the kernel: a closed list; the kernel checks each field and evaluates none. */
export type Request =
  | { want: 'report'; cell: string }
  | { want: 'cells' }
  | {
      want: 'part';
      cell: string;
      part: 'ops' | 'boundaries' | 'spans' | 'kernels' | 'temporaries';
      cluster?: string;
      start: number;
      stop: number;
    }
  | { want: 'code'; cell: string; cluster: string; plan?: string; stage: CodeStage }
  | { want: 'page'; cell: string; form: 'html' | 'svg'; start: number; notebook?: string }
  | { want: 'runs'; cell: string }
  | { want: 'compare'; cell: string; against: { baseline: string } | { run: number } | null }
  | { want: 'pin-baseline' | 'drop-baseline'; cell: string; name: string }
  | {
      want: 'whatif';
      cell: string;
      plan: string;
      kind: 'cut' | 'fuse' | 'keep_out' | 'target';
      edges: [string, string][];
      ops: string[];
      target?: string;
    }
  | { want: 'sweep'; cell: string; plan: string }
  | { want: 'measure' | 'check'; cell: string }
  | { want: 'cancel' | 'continue'; job: string };

export type CodeStage = 'graph' | 'program' | 'llvm' | 'llvm-optimized' | 'asm' | 'numba' | 'ptx' | 'sass';

/** The kernel, as the panel's views reach it. */
export interface KernelAccess {
  /** Rejects with one sentence when the kernel refuses, or is busy and does not answer in time. */
  request(body: Request, timeoutMs?: number): Promise<unknown>;
  readonly jobs: JobsModel;
}

export type JobState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled';

/** Long work that was asked for: a what-if, a sweep, a measurement, a check. */
export interface Job {
  id: string;
  cell: string;
  kind: string;
  title: string;
  state: JobState;
  /** The cell that has to end first. */
  waitsFor: string | null;
  progress: { done: number; total: number } | null;
  estimateSeconds: number | null;
  result: unknown;
  error: string | null;
  /** It ended before it had all, and can go on. */
  canContinue: boolean;
}

/** Whether it waits or runs. */
export function isOpen({ state }: Job): boolean {
  return state === 'queued' || state === 'running';
}

/** What a queued job waits for. */
export function waitsText({ waitsFor }: Job): string {
  return waitsFor ? `Waits for ${waitsFor}, which is running.` : 'Waits for its turn.';
}

const STATES: readonly string[] = ['queued', 'running', 'done', 'failed', 'cancelled'];
const MOST_JOBS = 200;

/** The jobs of one kernel, in the order in which they were asked for. */
export class JobsModel {
  /** Carries the cell whose job changed; null when the kernel went, and its jobs with it. */
  readonly changed = new Signal<string | null>();

  of(cell: string): Job[] {
    return [...this.jobs.values()].filter(job => job.cell === cell);
  }

  /** How far the compiler is in the cell that runs; undefined where nobody waits for it. */
  get underway(): Job | undefined {
    return [...this.jobs.values()].findLast(job => job.kind === 'compile' && isOpen(job));
  }

  get(id: string): Job | undefined {
    return this.jobs.get(id);
  }

  /** Takes one message of the wire; what is no job is left alone. */
  take(message: Record<string, unknown>): void {
    const job = readJob(message);
    if (!job) {
      return;
    }
    this.jobs.set(job.id, job);
    if (this.jobs.size > MOST_JOBS) {
      const ended = [...this.jobs.values()].find(known => !isOpen(known));
      this.jobs.delete(ended?.id ?? '');
    }
    this.changed.emit(job.cell);
  }

  /** What was queued or running went with its kernel; what had ended stays. */
  kernelLost(): void {
    for (const [id, job] of this.jobs) {
      if (isOpen(job)) {
        this.jobs.set(id, { ...job, state: 'cancelled', error: 'The kernel was restarted.', canContinue: false });
      } else if (job.canContinue) {
        this.jobs.set(id, { ...job, canContinue: false });
      }
    }
    this.changed.emit(null);
  }

  private readonly jobs = new Map<string, Job>();
}

function readJob(message: Record<string, unknown>): Job | null {
  const { id, cell, state } = message;
  if (typeof id !== 'string' || typeof cell !== 'string' || typeof state !== 'string' || !STATES.includes(state)) {
    return null;
  }
  const [done, total] = Array.isArray(message.progress) ? (message.progress as unknown[]) : [];
  return {
    id,
    cell,
    state: state as JobState,
    kind: text(message.kind),
    title: text(message.title).replaceAll('`', ''),
    waitsFor: typeof message.waits_for === 'string' ? clean(message.waits_for) : null,
    progress: typeof done === 'number' && typeof total === 'number' ? { done, total } : null,
    estimateSeconds: typeof message.estimate_seconds === 'number' ? message.estimate_seconds : null,
    result: message.result ?? null,
    error: typeof message.error === 'string' ? clean(message.error) : null,
    canContinue: message.can_continue === true
  };
}

/** Items of one request; the kernel gives no more than 20 000. */
const AT_ONCE = 5000;

/** All items of a part of a report that was too big to be sent whole, in as many requests as that takes. */
export async function fetchItems(
  kernel: KernelAccess,
  part: Pick<Extract<Request, { want: 'part' }>, 'cell' | 'part' | 'cluster'>
): Promise<unknown[]> {
  const items: unknown[] = [];
  for (;;) {
    const start = items.length;
    const answer = await kernel.request({ want: 'part', ...part, start, stop: start + AT_ONCE });
    const reply = record(record(answer).part);
    const come = list(reply.items); // fewer where they would be too many bytes
    items.push(...come);
    if (come.length === 0 || items.length >= (number(reply.total) ?? 0)) {
      return items;
    }
  }
}

/** The reply to a request, or the kernel's refusal as an error. */
export function replyOf(body: unknown): unknown {
  const error = (body as { error?: unknown } | null | undefined)?.error;
  if (typeof error === 'string') {
    throw new Error(clean(error));
  }
  return body;
}
