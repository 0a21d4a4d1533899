/** A data folder in which nothing can be written: its files belong to another account. As root, which may write anywhere, the commands run as `nobody`. */
import { spawnSync } from 'node:child_process'
import { chmodSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, onTestFinished, expect, test } from 'vitest'
import { environment, folder, ran } from '../support/cli.ts'

const asNobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
/** A clone or a folder for temporary files may be closed to others. */
const mayEnter = (path: string) => spawnSync('test', ['-x', path], asNobody).status === 0
const isOpen = mayEnter(tmpdir()) && spawnSync('test', ['-r', resolve('bin/millrace.js')], asNobody).status === 0

describe('read-only data folder', () => {
  test.skipIf(!isOpen)(
    'ps, show, verify, query, stats and threads read it (needs folders that others may enter)',
    async () => {
      const cwd = folder({
        'agents/a.yaml': 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]',
      })
      const { out } = await ran(['run', 'a', '-m', 'Hello', '--format', 'parts'], { cwd })
      const { runId: run } = JSON.parse(out.slice(0, out.indexOf('\n'))) as { runId: string }
      await ran(['query', 'SELECT 1'], { cwd })
      const data = join(cwd, '.millrace')
      for (const name of readdirSync(data)) {
        if (/-(?:wal|shm)$/u.test(name)) rmSync(join(data, name))
        else chmodSync(join(data, name), 0o444)
      }
      for (const each of [data, cwd]) chmodSync(each, 0o555)
      onTestFinished(() => [cwd, data].forEach((each) => chmodSync(each, 0o755)))
      const files = readdirSync(data)
      for (const args of [
        ['ps'],
        ['show', run],
        ['verify', 'all'],
        ['query', 'SELECT id FROM runs'],
        ['query', 'SELECT id FROM agents'],
        ['stats', '--by', 'agent'],
        ['threads'],
      ]) {
        const { status, stdout, stderr } = spawnSync(process.execPath, [resolve('bin/millrace.js'), ...args], {
          cwd,
          ...asNobody,
          env: environment(),
          encoding: 'utf8',
          timeout: 60_000,
        })
        expect
          .soft({ args, status, stderr })
          .toEqual({ args, status: 0, stderr: args[0] === 'verify' ? expect.any(String) : '' })
        expect.soft(stdout + stderr).toMatch(args[0] === 'stats' || args[0] === 'threads' ? /a/u : run)
      }
      expect(readdirSync(data)).toEqual(files)
    },
  )
})
