import { h } from '../../base/dom';

/** Runs the cell once; whether it ended well. */
export type RunOnce = () => Promise<boolean>;

/** A button that runs the cell as often as a comparison needs: one run after the other, until one fails or it is stopped. */
export class RunAgain {
  /** `changed`: what it says is another. */
  constructor(private readonly changed: () => void) {}

  /** Of another cell nothing more is run. */
  stop(): void {
    if (this.going) {
      this.going.stopped = true;
      this.changed();
    }
  }

  get isGoing(): boolean {
    return this.going !== null;
  }

  element(runs: number, run: RunOnce): HTMLElement {
    const { going } = this;
    if (going) {
      const { done, runs: all, stopped } = going;
      const stop = h('button.jl-button', { onclick: () => this.stop(), disabled: stopped }, 'Stop');
      const said = stopped ? 'Stops after this run.' : `Run ${done + 1} of ${all}.`;
      return h('div.jl-buttons', { role: 'status' }, h('span.jl-muted', said), stop);
    }
    const label = runs === 1 ? 'Run once more' : `Run ${runs} more times`;
    return h('div.jl-buttons', h('button.jl-button', { onclick: () => void this.start(runs, run) }, label));
  }

  async start(runs: number, run: RunOnce): Promise<void> {
    const going = { done: 0, runs, stopped: false };
    this.going = going;
    this.changed();
    try {
      while (going.done < runs && !going.stopped && (await run())) {
        going.done++;
        this.changed();
      }
    } finally {
      this.going = null;
      this.changed();
    }
  }

  private going: { done: number; runs: number; stopped: boolean } | null = null;
}
