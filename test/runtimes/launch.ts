/** Starts a module with a `fetch` export in Bun, Deno or workerd, as docs/runtimes.md says. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { rolldown } from 'rolldown'
import type { Program, Programs } from './programs.ts'

export interface Launched {
  url: string
  /** All that it has printed. */
  printed(): string
  close(): Promise<void>
}

/** What `deno serve` must be allowed: docs/runtimes.md says why. */
export const permissions = ['--allow-net', '--allow-env', '--allow-sys=hostname']

export async function launch(programs: Programs, program: Program, project: string, main: string): Promise<Launched> {
  switch (program) {
    case 'bun':
      return start(programs.bun, ['--no-install', main], project, /http:\/\/\S+:(\d+)/u)
    case 'deno':
      return start(
        programs.deno,
        ['serve', '--no-prompt', '--v8-flags=--expose-gc', ...permissions, '--host=127.0.0.1', '--port=0', main],
        project,
        /:(\d+)\/?/u,
      )
    case 'workerd': {
      const config = await writeWorker(project, main)
      return start(programs.workerd, ['serve', config, '--control-fd=3'], project, /"port":(\d+)/u)
    }
  }
}

/** The bundle that Cloudflare's tools make of a module, and the worker's settings. */
async function writeWorker(project: string, main: string): Promise<string> {
  const bundle = await rolldown({
    input: join(project, main),
    platform: 'browser',
    external: /^node:/u,
    resolve: { conditionNames: ['workerd', 'worker', 'browser', 'import', 'default'] },
    logLevel: 'silent',
  })
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false })
  await bundle.close()
  writeFileSync(join(project, 'worker.js'), output[0].code)
  const config = join(project, 'worker.capnp')
  writeFileSync(
    config,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .main), (name = "internet", network = (allow = ["public", "private", "local"])) ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "main") ],
);
const main :Workerd.Worker = (modules = [ (name = "worker.js", esModule = embed "worker.js") ], compatibilityDate = "2026-11-01");
`,
  )
  return config
}

async function start(program: string, args: string[], cwd: string, port: RegExp): Promise<Launched> {
  const child = spawn(program, args, {
    cwd,
    env: { PATH: process.env['PATH'], HOME: cwd, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  let printed = ''
  const ended = new Promise<void>((resolve) => {
    child.on('close', (code, signal) => {
      printed += `It has ended: ${code ?? signal}\n`
      resolve()
    })
  })
  const found = new Promise<string>((resolve, reject) => {
    for (const stream of child.stdio.slice(1) as Readable[]) {
      createInterface(stream).on('line', (line) => {
        printed += `${line}\n`
        const at = port.exec(line)?.[1]
        if (at !== undefined) resolve(at)
      })
    }
    void ended.then(() => reject(new Error(`It has ended, and printed: ${printed}`)))
  })
  const close = () => {
    // workerd waits for work that it holds.
    child.kill('SIGKILL')
    return ended
  }
  try {
    return { url: `http://127.0.0.1:${await found}`, printed: () => printed, close }
  } catch (error) {
    await close()
    throw error
  }
}
