// A daemon in a folder of its own, for the tests that walk its dashboard. ARGIOPE is the command; else it is the one that was
// built here last.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const command = process.env.ARGIOPE ?? fileURLToPath(new URL('../../build/release/bin/argiope', import.meta.url));

const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

export class Daemon {
  // `config`: the text of its configuration file; `files`: what else is in its folder, by name. `token`: the scope of a token that
  // it is to know; its words are in `token`. `options`: more of its command line.
  static async start({ config = '', files = {}, token = '', options = [] } = {}) {
    const daemon = new Daemon();
    daemon.options = options;
    daemon.folder = await mkdtemp(join(tmpdir(), 'argiope-dashboard-'));
    for (const [name, text] of Object.entries({ ...files, 'argiope.toml': config })) await writeFile(join(daemon.folder, name), text);
    if (token) {
      const made = spawnSync(command, ['token', 'add', 'test', '--scope', token, '--file', 'tokens'], { cwd: daemon.folder });
      daemon.token = made.stdout.toString().trim();
    }
    await daemon.run('127.0.0.1:0');
    return daemon;
  }

  // Starts it, and waits until it listens.
  async run(address) {
    const options = ['serve', 'argiope.toml', '--store', 'sqlite:jobs.db', '--listen', address, ...this.options];
    if (this.token) options.push('--tokens', 'tokens');
    this.process = spawn(command, options, { cwd: this.folder, stdio: ['ignore', 'ignore', 'pipe'] });
    running.add(this.process);
    this.said = '';
    this.ended = new Promise((end) => {
      this.process.once('exit', (status) => (running.delete(this.process), end(status)));
      this.process.once('error', (error) => ((this.said += error.message), end(null))); // there is no such command
    });
    const port = await new Promise((found, fail) => {
      createInterface(this.process.stderr).on('line', (line) => {
        this.said += `${line}\n`;
        const listening = /listening: http:\/\/127\.0\.0\.1:(\d+)/.exec(line);
        if (listening) found(Number(listening[1]));
      });
      this.ended.then((status) => fail(new Error(`it ended with ${status}: ${this.said}`)));
    });
    this.port = port;
    this.origin = `http://127.0.0.1:${port}`;
  }
  async stop(signal = 'SIGTERM') {
    this.process.kill(signal);
    await this.ended;
  }
  // At the same address, with the same file.
  again() {
    return this.run(`127.0.0.1:${this.port}`);
  }
  async remove() {
    if (this.process.exitCode === null && this.process.signalCode === null) await this.stop('SIGKILL');
    await rm(this.folder, { recursive: true, force: true });
  }

  async ask(method, path, body) {
    const headers = { 'Content-Type': 'application/json', ...(this.token && { Authorization: `Bearer ${this.token}` }) };
    const response = await fetch(this.origin + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    return { status: response.status, text, json: /json/.test(response.headers.get('Content-Type')) ? JSON.parse(text) : null };
  }
  async good(method, path, body) {
    const { status, text, json } = await this.ask(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return json;
  }
  put = (job) => this.good('POST', '/v1/jobs', job);
  async lease(queue, most, worker = 'worker-1:77') {
    const { leases } = await this.good('POST', '/v1/leases', { queues: [queue], most, wait_ms: 20_000, worker });
    if (!leases.length) throw new Error(`no job of ${queue}`);
    return leases;
  }
  settle(lease, settlement) {
    return this.good('POST', '/v1/leases/settle', { settlements: [{ token: lease.token, ...settlement }] });
  }
  async work(queue, settlement, worker) {
    const [lease] = await this.lease(queue, 1, worker);
    await this.settle(lease, settlement);
    return lease;
  }
}
