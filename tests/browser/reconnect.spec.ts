import { expect, request as client } from '@playwright/test';
import { Hub } from './hub';
import { Lab, SECTIONS, test as base } from './lab';

/** JupyterLab as a hub serves it: below a path, behind a proxy, with a limit of 200 messages a second. */
const test = base.extend<object, { hub: Hub; far: Lab }>({
  hub: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads the names of what a fixture needs
    async ({}, use) => {
      const hub = await Hub.start('--ZMQChannelsWebsocketConnection.iopub_msg_rate_limit=200');
      await use(hub);
      await hub.stop();
    },
    { scope: 'worker', timeout: 300_000 }
  ],
  far: [
    async ({ browser, hub }, use, { project }) => {
      const context = await browser.newContext({ baseURL: hub.url, viewport: project.use.viewport });
      const far = new Lab(await context.newPage());
      far.page.on('request', request => {
        strangers(request.url(), hub);
      });
      await far.page.goto('lab?reset');
      await far.started();
      await use(far);
      await context.close();
    },
    { scope: 'worker', timeout: 300_000 }
  ]
});

const asked: string[] = [];

/** Notes what is asked of anybody but the server. */
function strangers(url: string, hub: Hub): void {
  if (/^(https?|wss?):/.test(url) && new URL(url).host !== new URL(hub.url).host) {
    asked.push(url);
  }
}

test.describe('connections @long', () => {
  test('below a path and behind a proxy everything works, and nobody else is asked for anything', async ({ far }) => {
    await far.has('live.ipynb', 'load', 'softmax');
    await expect(far.panel).toHaveAttribute('data-origin', 'live');
    await expect(far.panel).toContainText('21 of 22 operations compiled');
    for (const title of SECTIONS) {
      await far.unfold(title);
    }
    await far.section('Clusters').getByRole('treeitem').first().dblclick();
    await far.page.keyboard.press('m');
    await far.page.keyboard.press('m');
    expect(asked).toEqual([]);
  });

  test('reload, restart, another kernel and sleep: how soon the panel is connected again', async ({ far, hub }) => {
    const times: string[] = [];
    await far.has('live.ipynb', 'load', 'softmax');
    await expect(far.panel).toHaveAttribute('data-origin', 'live');

    let start = Date.now();
    await far.reload({ watch: true });
    times.push(await timed('reload', start, far));
    await expect(far.panel).toHaveAttribute('data-origin', 'live');

    start = Date.now();
    await far.watchKernel();
    await far.restartKernel();
    times.push(await timed('restart', start, far));
    await expect.poll(() => far.debugState()).toMatchObject({ loaded: false });
    await far.run('load', 'softmax');

    start = Date.now();
    await far.watchKernel();
    await far.changeKernel({ name: 'python3' });
    times.push(await timed('another kernel', start, far));
    await expect.poll(() => far.debugState()).toMatchObject({ loaded: false });

    await far.openNew('seven.ipynb');
    await far.run('load', 'line');
    const one = await far.kernelId();
    await far.openNew('live.ipynb');
    start = Date.now();
    await far.watchKernel();
    await far.changeKernel({ id: one });
    times.push(await timed('a kernel that has jitlab', start, far));
    await expect.poll(() => far.debugState()).toMatchObject({ loaded: true });
    await far.run('softmax');
    await expect(far.panel).toHaveAttribute('data-origin', 'live');

    await far.start('slow');
    await expect(far.panel).toHaveAttribute('data-running', 'true');
    hub.cut();
    const direct = await client.newContext({ baseURL: hub.direct });
    const go = { type: 'file', format: 'text', content: 'go' };
    expect((await direct.put('api/contents/let-go.txt', { data: go })).ok()).toBe(true);
    await expect
      .poll(async () => {
        const kernels = (await (await direct.get('api/kernels')).json()) as { id: string; execution_state: string }[];
        return kernels.find(({ id }) => id === one)?.execution_state;
      })
      .toBe('idle');
    await expect(far.panel).toHaveAttribute('data-running', 'true'); // it can't know
    start = Date.now();
    await far.watchKernel('told');
    hub.mend();
    times.push(await timed('sleep', start, far));
    await expect(far.panel).toHaveAttribute('data-running', 'false');
    await expect(far.panel).toHaveAttribute('data-events', '5001');
    console.log(times.join('\n'));
  });

  test('a kernel that was restarted while the page slept is asked anew', async ({ far, hub }) => {
    await far.has('live.ipynb', 'load', 'softmax');
    await expect(far.panel).toHaveAttribute('data-origin', 'live');
    const kernel = await far.kernelId();
    hub.cut();
    const direct = await client.newContext({ baseURL: hub.direct });
    expect((await direct.post(`api/kernels/${kernel}/restart`)).ok()).toBe(true);
    hub.mend();
    await expect(far.panel).toHaveAttribute('data-origin', 'previous');
    await expect.poll(() => far.debugState()).toMatchObject({ loaded: false });
    await far.openNew('live.ipynb');
  });

  test('a server that drops messages above its limit costs the panel none of its events', async ({ far }) => {
    await far.has('live.ipynb', 'load');
    await far.setSource(
      'plain',
      [
        'from IPython.display import display',
        'import time',
        'link, shown = stand_in.load(), display(0, display_id=True)',
        'for n in range(3000):',
        "    link.emit('plain', {'kind': 'cluster-ran', 'cluster': 'cluster_0'})",
        '    shown.update(n)',
        '    time.sleep(0.001)',
        "stand_in.show('softmax')"
      ].join('\n')
    );
    await far.run('plain');
    await expect(far.cell('plain')).toContainText('IOPub message rate exceeded');
    await expect.poll(async () => (await far.debugState()).events).toBeGreaterThan(3000);
    await expect.poll(() => far.debugState()).toMatchObject({ running: false });
    await expect(far.panel).toHaveAttribute('data-origin', 'live');
    await far.openNew('live.ipynb');
  });

  test('with no way to the server what is there can be read, and is followed again afterwards', async ({
    far,
    hub
  }) => {
    await far.has('live.ipynb', 'load', 'softmax', 'line');
    hub.cut();
    await far.select('softmax');
    await expect(far.panel).toContainText('21 of 22 operations compiled');
    await far.unfold('Retraces');
    await expect(far.section('Retraces')).toContainText('lr changed 5 times');
    await far.watchKernel();
    hub.mend();
    await far.connected();
    await far.run('line');
    await expect(far.panel).toContainText('All 2 operations compiled');
    await expect(far.panel).toHaveAttribute('data-origin', 'live');
  });
});

async function timed(what: string, start: number, far: Lab): Promise<string> {
  const own = await far.connected();
  return `${what}: ${own} ms after JupyterLab had its kernel, which took ${Date.now() - start - own} ms`;
}
