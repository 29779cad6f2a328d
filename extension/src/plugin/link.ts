import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { isFromKernel, type ToKernel } from '../core/report/events';
import { replyOf, type JobsModel, type KernelAccess, type Request } from '../core/report/kernel';
import { NotebookModel } from '../core/report/model';
import { Signal } from '../core/base/signal';
import { readSwitch, UNKNOWN, type JitSwitch } from './magic';

const TARGET = 'jitlab';
const COMM_ID = 'jitlab-v1'; // fixed: live messages reach a reloaded page also while the kernel is busy

/** Carries messages between the kernel of one notebook and its model; outlives kernels, reloads of the page make a new one. */
export class KernelLink implements KernelAccess {
  readonly model: NotebookModel;
  /** `%load_ext jitlab` has just been run. */
  readonly loadedNow = new Signal<void>();
  /** `%jit` was turned on or off, by a click or a cell, or the kernel is another one. */
  readonly switched = new Signal<void>();
  jit: JitSwitch = UNKNOWN;

  constructor(private readonly context: ISessionContext) {
    this.model = new NotebookModel(message => this.send(message));
    context.kernelChanged.connect((_, change) => {
      this.detach();
      this.attach(change.newValue ?? null);
    });
    context.statusChanged.connect((_, status) => {
      if (status === 'restarting' || status === 'autorestarting') {
        this.detach();
        this.attach(context.session?.kernel ?? null);
      }
    });
    // After sleep, or a server that was away: what was sent meanwhile may be lost, and no later message may show the gap.
    context.connectionStatusChanged.connect((_, status) => {
      const wasAway = this.isAway;
      this.isAway = status !== 'connected';
      const kernel = context.session?.kernel;
      if (wasAway && !this.isAway && kernel) {
        this.model.cameBack();
        void this.ask(kernel);
      }
    });
    this.attach(context.session?.kernel ?? null);
  }

  /** Asks the kernel; it answers also while a cell runs, except after a reload of the page in its midst. */
  request(body: Request, timeoutMs = 5000): Promise<unknown> {
    if (!this.comm || this.comm.isDisposed || this.model.loaded !== true) {
      return Promise.reject(new Error('No kernel that has loaded jitlab is connected. Run %load_ext jitlab.'));
    }
    const id = ++this.asked;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(id);
        reject(new Error('The kernel is busy and did not answer in time.'));
      }, timeoutMs);
      this.waiting.set(id, reply => {
        clearTimeout(timer);
        try {
          resolve(replyOf(reply));
        } catch (refusal) {
          reject(refusal instanceof Error ? refusal : new Error(String(refusal)));
        }
      });
      this.send({ op: 'request', id, body });
    });
  }

  /** JupyterLab gives the comms of a kernel to one of the notebooks that share it; the others have their outputs alone. */
  get isDeaf(): boolean {
    return this.context.session?.kernel?.handleComms === false;
  }

  /** Turns `%jit` on or off; a kernel that has not loaded jitlab loads it. Rejects with a sentence where it can't. */
  async switchJit(on: boolean): Promise<void> {
    if (this.jit.on === null) {
      await this.execute(on ? '%load_ext jitlab\n%jit on' : '%jit off');
    } else {
      this.send({ op: 'switch', on });
    }
  }

  /** Runs `%load_ext jitlab`, where that was not done. */
  async loadJitlab(): Promise<void> {
    if (this.model.loaded !== true) {
      await this.execute('%load_ext jitlab');
    }
  }

  /** A line that no cell has: it leaves no number and no output. */
  private async execute(code: string): Promise<void> {
    const kernel = this.context.session?.kernel;
    if (!kernel) {
      throw new Error('No kernel is connected. Choose one for this notebook.');
    }
    const reply = await kernel.requestExecute({ code, silent: true, store_history: false }).done;
    if (reply.content.status === 'error') {
      throw new Error(`This kernel can't load jitlab. ${reply.content.ename}: ${reply.content.evalue}`);
    }
  }

  private setSwitch(jit: JitSwitch): void {
    this.jit = jit;
    this.switched.emit();
  }

  get jobs(): JobsModel {
    return this.model.jobs;
  }

  private attach(kernel: Kernel.IKernelConnection | null): void {
    if (!kernel?.handleComms) {
      return;
    }
    kernel.registerCommTarget(TARGET, (comm, message) => {
      this.bind(comm);
      this.receive(message.content.data);
      this.send({ op: 'switch' });
      this.loadedNow.emit();
    });
    if (!kernel.hasComm(COMM_ID)) {
      // Not opened: if it exists the kernel owns it, and if it does not there is nobody to tell.
      this.bind(kernel.createComm(TARGET, COMM_ID));
    }
    void this.ask(kernel);
  }

  /** A kernel that has never loaded jitlab would complain about a message on a comm it does not know. */
  private async ask(kernel: Kernel.IKernelConnection): Promise<void> {
    const known = this.model.epoch;
    let reply: KernelMessage.ICommInfoReplyMsg;
    try {
      reply = await kernel.requestCommInfo({ target_name: TARGET });
    } catch {
      return; // the kernel went away meanwhile; the next one is asked in turn
    }
    if (this.context.session?.kernel !== kernel || reply.content.status !== 'ok') {
      return;
    }
    const loaded = COMM_ID in reply.content.comms;
    if (loaded) {
      this.model.setLoaded(true);
      this.model.resume();
      this.send({ op: 'switch' });
    } else if (this.model.loaded === null) {
      this.model.setLoaded(false);
    } else if (known !== '' && known === this.model.epoch) {
      this.detach(); // it was restarted while nobody listened
      this.model.setLoaded(false);
    }
  }

  private bind(comm: Kernel.IComm): void {
    this.comm = comm;
    comm.onMsg = message => this.receive(message.content.data);
    comm.onClose = () => {
      if (this.comm === comm) {
        this.comm = null;
      }
    };
  }

  /** The comm of a kernel that has gone is disposed with it; one that is still there stays ours. */
  private detach(): void {
    this.model.kernelLost();
    this.setSwitch(UNKNOWN);
  }

  private send(message: ToKernel): void {
    if (this.comm && !this.comm.isDisposed) {
      void this.comm.send({ ...message }).done;
    }
  }

  private receive(message: unknown): void {
    const jit = readSwitch(message);
    if (jit) {
      this.setSwitch(jit);
    }
    if (!isFromKernel(message)) {
      return;
    }
    if (message.op === 'reply') {
      this.waiting.get(message.id)?.(message.body);
      this.waiting.delete(message.id);
    }
    this.model.receive(message);
  }

  private comm: Kernel.IComm | null = null;
  private isAway = false;
  private asked = 0;
  private readonly waiting = new Map<number, (reply: unknown) => void>();
}
