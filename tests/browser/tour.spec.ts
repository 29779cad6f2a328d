import { expect } from '@playwright/test';
import { test, type Lab } from './lab';

/** What the first lesson says that the panel shows; figures of time are this machine's, and none is read. */
async function readTour(lab: Lab, origin: 'live' | 'previous'): Promise<void> {
  await lab.select('jit');
  await expect(lab.panel).toHaveAttribute('data-cell', 'jit');
  await expect(lab.panel).toHaveAttribute('data-origin', origin);
  await expect(lab.section('Verdict')).toContainText(/(\d+) of \1 operations compiled/);
  await expect(lab.section('Verdict')).toContainText('none run by NumPy');
  await expect.poll(() => lab.clusterNames()).toContain('cluster_0');
  expect((await lab.clusterNames()).every(name => /^cluster_\d+$/.test(name))).toBe(true);
  const timeline = await lab.unfold('Timeline');
  await expect(timeline.locator('canvas')).toHaveAttribute(
    'aria-label',
    /op by op: [\d,]+ spans.*compiled: [\d,]+ spans?.*memory: [\d.]+ [kM]?B at most: /
  );
  await timeline.getByRole('button', { name: 'Show as a table' }).click();
  await expect(
    timeline
      .getByRole('table')
      .getByRole('row', { name: /MatMul/ })
      .first()
  ).toBeVisible();
  await timeline.getByRole('button', { name: 'Show as a table' }).click();

  await lab.select('retrace');
  await expect(lab.panel).toHaveAttribute('data-cell', 'retrace');
  await expect(lab.panel).toHaveAttribute('data-origin', origin);
  const retraces = await lab.unfold('Retraces');
  await expect(retraces).toContainText('rate changed');
  await expect(retraces).toContainText('each new Python number is traced again');
  await expect(retraces).toContainText(/rate was 0\.5, then 0\.45/);
  await expect(retraces).toContainText('np.asarray(0.5 * 0.9 ** step');
}

test.describe('the first lesson', () => {
  test.beforeAll(async ({ lab }) => {
    await lab.open('notebooks/01-softmax-regression.ipynb');
    await lab.runThrough('retrace');
  });

  test('shows clusters, a retrace and both timelines', async ({ lab }) => {
    await readTour(lab, 'live');
  });

  test('shows them after a reload too', async ({ lab }) => {
    await lab.reload();
    await readTour(lab, 'live');
  });

  test('shows them after a restart of the kernel, and says that they are old', async ({ lab }) => {
    await lab.restartKernel();
    await readTour(lab, 'previous');
    await expect(lab.panel).toContainText(
      'From before the restart. Run %load_ext jitlab, then the cell to measure again.'
    );
    await expect(lab.panel).toHaveClass(/jl-previous/);
  });
});
