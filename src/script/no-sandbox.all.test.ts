import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const source = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'millrace-no-sandbox-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Our source where no package is in reach. */
beforeAll(() => {
  for (const room of ['script', 'pipeline', 'part', 'fold'])
    cpSync(source(room), join(folder, 'src', room), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'main.ts'),
    `import { createSandboxPool, sandboxFault } from './src/script/pool.ts'
     import { runScript } from './src/script/testing/run-script.ts'
     globalThis.isHere = true
     const pool = createSandboxPool()
     const said = [sandboxFault()?.message ?? 'it can']
     for (let i = 0; i < 2; i++) try {
       said.push((await runScript(pool, 'return typeof isHere')).value)
     } catch (e) { said.push(e.code, e.message) }
     await pool.close()
     console.log(JSON.stringify(said))`,
  )
})

function say(...flags: string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['--no-warnings', ...flags, 'main.ts'], { cwd: folder }, (error, stdout) =>
      error === null ? resolve(JSON.parse(stdout) as string[]) : reject(error),
    )
  })
}

function install(version: string): void {
  rmSync(join(folder, 'node_modules'), { recursive: true, force: true })
  mkdirSync(join(folder, 'node_modules'))
  if (version === '3') symlinkSync(source('../node_modules/quickjs-wasi'), join(folder, 'node_modules/quickjs-wasi'))
  else {
    cpSync(source('../node_modules/quickjs-wasi'), join(folder, 'node_modules/quickjs-wasi'), { recursive: true })
    const manifest = {
      name: 'quickjs-wasi',
      version,
      type: 'module',
      exports: { '.': './dist/index.js', './quickjs.wasm': './quickjs.wasm', './package.json': './package.json' },
    }
    writeFileSync(join(folder, 'node_modules/quickjs-wasi/package.json'), JSON.stringify(manifest))
  }
}

describe('where scripts cannot run, no script runs', () => {
  const cure = 'Run `npm install quickjs-wasi@3`.'

  test('without quickjs-wasi, which is optional: each start says what to install', async () => {
    const fault = `Scripts cannot run here: the package quickjs-wasi is not installed. ${cure}`
    expect(await say()).toEqual([fault, 'no-sandbox', fault, 'no-sandbox', fault])
  })

  test('with another major version of it', async () => {
    install('4.0.0')
    const fault = `Scripts cannot run here: the package quickjs-wasi cannot be used (its version is 4.0.0). ${cure}`
    expect(await say()).toEqual([fault, 'no-sandbox', fault, 'no-sandbox', fault])
  })

  test('with it, but without workers: Node’s permission model forbids them', async () => {
    install('3')
    const fault = expect.stringMatching(
      /^Scripts cannot run here: worker threads cannot be started \(.*\)\.$/u,
    ) as string
    expect(await say('--permission', '--allow-fs-read=*')).toEqual(['it can', 'no-sandbox', fault, 'no-sandbox', fault])
  })

  test('with both, they do, in a thread of their own', async () => {
    install('3')
    expect(await say()).toEqual(['it can', 'undefined', 'undefined'])
  })
})
