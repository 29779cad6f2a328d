// How the panel behaves at 50 000 operations, 100 000 spans and 10 000 events a second, in headless Chromium.
// node performance.mjs [report.json …]: reports that jitlab made, as files, beside the synthetic one.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from '@playwright/test';

const page = fileURLToPath(new URL('../../extension/test/page.html', import.meta.url));
const script = fileURLToPath(new URL('../../extension/lib/page/bench.js', import.meta.url));
const SECONDS = Number(process.env.JITLAB_BENCH_SECONDS ?? 3);

const browser = await chromium.launch({
  executablePath: process.env.JITLAB_CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    '--disable-background-networking'
  ]
});

let failed = false;
function row(what, value, unit, bound, below) {
  const good = below ? value <= bound : value >= bound;
  failed ||= !good;
  const shown = value.toFixed(value < 10 ? 2 : 0);
  console.log(
    `  ${what.padEnd(58)}${shown.padStart(9)} ${unit.padEnd(4)} ${below ? '≤' : '≥'} ${bound}${good ? '' : '   missed'}`
  );
}

async function measure(name, text) {
  const tab = await browser.newPage({ viewport: { width: 960, height: 1080 } });
  tab.on('pageerror', error => {
    failed = true;
    console.log(`  error in the page: ${error.message}`);
  });
  await tab.goto(`file://${page}#fixture=absent`);
  await tab.addScriptTag({ content: "document.getElementById('panels').replaceChildren()" });
  await tab.addScriptTag({ path: script });
  const run = (task, ...args) => tab.evaluate(([task, args]) => window.bench[task](...args), [task, args]);
  const json = text ?? (await run('huge'));
  const report = JSON.parse(json);
  const spans = report.timeline.lanes.reduce((sum, lane) => sum + lane.spans.length, 0);
  console.log(
    `${name}: ${report.ops.length} operations, ${report.clusters.length} clusters, ${spans} spans, ${(json.length / 1e6).toFixed(1)} MB`
  );
  await run('paint', json); // once for the compiler of the browser: a panel is opened more than once in a session
  const first = await run('paint', json);
  row('first paint, from the text of the report', first.paint / 1000, 's', 1, true);
  await run('toMap');
  const expand = await run('open', 'Enter');
  row(`a cluster opens in place, ${expand.boxes} boxes then`, expand.ms / 1000, 's', 0.2, true);
  const closed = await run('panMap', SECONDS);
  row('pan, one cluster open', closed.fps, 'fps', 30, false);
  let all = await run('open', '*');
  for (let level = 0; level < 3; level++) {
    const more = await run('open', '*', level + 1);
    all = more.boxes > all.boxes ? more : all;
  }
  console.log(`  all of the first levels open: ${all.boxes} boxes`);
  const pan = await run('panMap', SECONDS);
  row('pan, all of them', pan.fps, 'fps', 30, false);
  const zoom = await run('zoomMap', SECONDS);
  row('zoom, all of them', zoom.fps, 'fps', 30, false);
  const opened = await run('openTimeline');
  row('the timeline opens', opened / 1000, 's', 1, true);
  const timeline = await run('moveTimeline', SECONDS);
  row(`pan, timeline of ${spans} spans`, timeline.pan.fps, 'fps', 30, false);
  row(`zoom, timeline of ${spans} spans`, timeline.zoom.fps, 'fps', 30, false);
  row(`select, timeline of ${spans} spans`, timeline.select.fps, 'fps', 30, false);
  await tab.close();
}

async function stream() {
  const tab = await browser.newPage({ viewport: { width: 960, height: 1080 } });
  await tab.goto(`file://${page}#fixture=absent`);
  await tab.addScriptTag({ content: "document.getElementById('panels').replaceChildren()" });
  await tab.addScriptTag({ path: script });
  const text = readFileSync(new URL('../../extension/test/fixtures/softmax.json', import.meta.url), 'utf8');
  console.log('10 000 events a second for 10 s, four reports a second');
  const result = await tab.evaluate(text => window.bench.stream(10_000, 10, text), text);
  row('events that were lost', result.sent - result.shown, '', 0, true);
  row(`frames, worst gap ${result.worst.toFixed(0)} ms, ${result.sent} events`, result.fps, 'fps', 50, false);
  await tab.close();
}

await measure('synthetic', null);
for (const path of process.argv.slice(2)) {
  await measure(basename(path), readFileSync(path, 'utf8'));
}
await stream();
await browser.close();
process.exit(failed ? 1 : 0);
