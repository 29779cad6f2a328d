import type { CodeStage, KernelAccess } from '../../report/kernel';
import type { Links } from '../../report/links';
import { refusal } from '../../base/read';
import { readCode, type Code } from '../../report/answers';
import type { Cluster, Report } from '../../report/report';
import { STAGES } from './stages';

interface Entry {
  code: Code | null;
  error: string | null;
  askedAt: number;
}

/** The kernel answers also while a cell runs, but a long call of native code may hold it up. */
const PATIENCE_MS = 600_000;

/** The texts of a report's clusters: each is asked of the kernel once, when somebody looks at it. */
export class CodeStore {
  constructor(private readonly changed: () => void) {}

  /** What was loaded is kept until the cell has run again. */
  show(report: Report, links: Links, running: boolean): void {
    const other = report.cell.id !== this.report?.cell.id;
    const ended = this.running && !running;
    const again = report.history?.run !== this.report?.history?.run;
    if (other || ended || again) {
      this.entries.clear();
    }
    if (links !== this.links) {
      for (const [key, { code }] of this.entries) {
        this.link(links, key, code);
      }
    }
    this.report = report;
    this.links = links;
    this.running = running;
  }

  get(cluster: Cluster, stage: CodeStage): Entry | undefined {
    return this.entries.get(this.keyOf(cluster, stage));
  }

  /** Whether any of its texts is here. */
  isKnown(cluster: Cluster): boolean {
    return STAGES.some(({ stage }) => this.get(cluster, stage)?.code);
  }

  waitedSeconds(cluster: Cluster, stage: CodeStage): number {
    const entry = this.get(cluster, stage);
    return entry ? (performance.now() - entry.askedAt) / 1000 : 0;
  }

  /** Asks unless it was. */
  load(kernel: KernelAccess, cluster: Cluster, stage: CodeStage): void {
    const key = this.keyOf(cluster, stage);
    if (!this.report || this.entries.has(key)) {
      return;
    }
    const entry: Entry = { code: null, error: null, askedAt: performance.now() };
    this.entries.set(key, entry);
    const take = (code: Code | null, error: string | null): void => {
      if (this.entries.get(key) !== entry) {
        return; // the cell ran again meanwhile
      }
      entry.code = code;
      entry.error = error;
      if (this.links) {
        this.link(this.links, key, code);
      }
      this.changed();
    };
    const body = { want: 'code', cell: this.report.cell.id, ...this.nameOf(cluster), stage } as const;
    kernel.request(body, PATIENCE_MS).then(
      reply => {
        const code = readCode(reply);
        take(code, code ? null : 'The code can’t be read.');
      },
      (error: unknown) => take(null, refusal(error))
    );
  }

  /** The kernel needs the plan, too, where two plans have a cluster of one name. */
  private nameOf({ name, plan }: Cluster): { cluster: string; plan?: string } {
    const many = (this.report?.clusters ?? []).filter(cluster => cluster.name === name).length > 1;
    return many && plan ? { cluster: name, plan } : { cluster: name };
  }

  private link(links: Links, key: string, code: Code | null): void {
    const [cluster = '', stage = ''] = key.split('\n');
    if (code) {
      links.addCode(stage, cluster, code.lines);
    }
  }

  private keyOf({ name, plan }: Cluster, stage: string): string {
    return `${this.links?.idOf(name, plan) ?? name}\n${stage}`;
  }

  private readonly entries = new Map<string, Entry>();
  private report: Report | null = null;
  private links: Links | null = null;
  private running = false;
}
