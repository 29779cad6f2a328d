import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

const BASE = '/user/ada/';

/** A second server, as a hub runs one: below a path of its own, behind a proxy; its wire can be cut, and its limits are low. */
export class Hub {
  private constructor(
    private readonly server: ChildProcess,
    private readonly wire: Wire,
    port: number
  ) {
    this.direct = `http://127.0.0.1:${port}${BASE}`;
    this.url = `http://127.0.0.1:${wire.port}${BASE}`;
  }

  static async start(...settings: string[]): Promise<Hub> {
    const port = await freePort();
    const python = process.env.JITLAB_PYTHON ?? '../../.venv/bin/python';
    const server = spawn(python, ['serve.py', String(port), `--ServerApp.base_url=${BASE}`, ...settings], {
      stdio: 'ignore'
    });
    const hub = new Hub(server, await Wire.to(port), port);
    while (!(await hub.answers())) {
      if (server.exitCode !== null) {
        throw new Error(`serve.py ended with ${server.exitCode}`);
      }
      await new Promise(resolve => setTimeout(resolve, 200));
    }
    return hub;
  }

  /** As the browser reaches it. */
  readonly url: string;
  /** The same without the wire that can be cut. */
  readonly direct: string;

  /** Every connection ends, and none can be made. */
  cut(): void {
    this.wire.cut();
  }

  mend(): void {
    this.wire.isCut = false;
  }

  async stop(): Promise<void> {
    this.wire.close();
    if (this.server.exitCode === null) {
      this.server.kill('SIGTERM');
      await once(this.server, 'exit');
    }
  }

  private async answers(): Promise<boolean> {
    try {
      return (await fetch(`${this.direct}api/status`)).ok;
    } catch {
      return false;
    }
  }
}

/** Hands bytes on, both ways, as long as it is whole. */
class Wire {
  isCut = false;

  private constructor(private readonly server: Server) {}

  static async to(target: number): Promise<Wire> {
    const server = createServer();
    const wire = new Wire(server);
    server.on('connection', near => {
      if (wire.isCut) {
        near.destroy();
        return;
      }
      const far = connect(target, '127.0.0.1');
      for (const [from, to] of [
        [near, far],
        [far, near]
      ] as const) {
        wire.ends.add(from);
        from.pipe(to);
        from.on('error', () => to.destroy());
        from.on('close', () => {
          wire.ends.delete(from);
          to.destroy();
        });
      }
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return wire;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  cut(): void {
    this.isCut = true;
    this.ends.forEach(end => end.destroy());
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  private readonly ends = new Set<Socket>();
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
