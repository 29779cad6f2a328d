import { JobsModel, type KernelAccess, type Request } from '../src/core/report/kernel';
import explained from './fixtures/explained.json';

/** A kernel that answers at once with what a real one said (fixtures/explained.json). `states`: jobs as they wait, too. */
export function recordedKernel(cell: string, states = false): KernelAccess & { asked: Request[] } {
  const jobs = new JobsModel();
  const asked: Request[] = [];
  let ticket = 0;
  const tell = (more: Record<string, unknown>): string => {
    const id = String(++ticket);
    jobs.take({ cell, state: 'done', kind: 'whatif', title: '', ...more, id });
    return id;
  };
  explained.jobs.forEach(job => tell(job));
  if (states) {
    const title = 'Split Take from MatMul (line 10)';
    tell({ state: 'running', title, progress: [12, 80], estimate_seconds: 1 });
    tell({ state: 'queued', title, waits_for: 'In [9]', progress: [0, 80], estimate_seconds: 1 });
  }
  const answer = (body: Request): object => {
    switch (body.want) {
      case 'code':
        return { code: explained.code.find(({ stage }) => stage === body.stage) ?? null };
      case 'compare':
        return { comparison: explained.comparison };
      case 'pin-baseline':
        return {
          history: { ...explained.report.history, baselines: [...explained.report.history.baselines, body.name] }
        };
      case 'whatif':
      case 'sweep':
      case 'measure':
      case 'check':
        return { job: tell({ kind: body.want, state: 'queued', title: 'Asked', waits_for: 'In [9]' }) };
      case 'cancel':
        jobs.take({ ...jobs.get(body.job), state: 'cancelled', error: null });
        return { cancelled: true };
      default:
        throw new Error('This kernel only repeats what was recorded.');
    }
  };
  return {
    jobs,
    asked,
    request(body) {
      asked.push(body);
      return new Promise(resolve => resolve(answer(body)));
    }
  };
}
