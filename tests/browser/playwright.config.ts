import { defineConfig } from '@playwright/test';

/** One port for the server and all workers, and another one for each run: others may test on this machine too. */
process.env.JITLAB_TEST_PORT ??= String(20_000 + (process.pid % 20_000));
const url = `http://127.0.0.1:${process.env.JITLAB_TEST_PORT}`;

export default defineConfig({
  testDir: '.',
  testMatch: process.env.JITLAB_PICTURES === undefined ? '*.spec.ts' : process.env.JITLAB_PICTURES,
  // `make test` leaves the long ones to `make test-browser`.
  ...(process.env.JITLAB_BROWSER === 'long' ? {} : { grepInvert: /@long/ }),
  outputDir: 'test-results',
  workers: 1,
  retries: 0,
  // For what hangs; a slow machine with other work is no failure.
  timeout: 300_000,
  expect: { timeout: 60_000 },
  reporter: [['list']],
  use: {
    baseURL: `${url}/`,
    viewport: { width: 1400, height: 900 },
    // `playwright test --trace on` when a picture does not explain a failure: traces of JupyterLab take half the time.
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.JITLAB_CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--no-first-run',
        '--disable-background-networking'
      ]
    }
  },
  webServer: {
    command: `${process.env.JITLAB_PYTHON ?? '../../.venv/bin/python'} serve.py ${process.env.JITLAB_TEST_PORT}`,
    url: `${url}/api/status`,
    timeout: 300_000,
    gracefulShutdown: { signal: 'SIGTERM', timeout: 10_000 }
  }
});
