/** A data folder of an older version: `serve`, `run` and `migrate` change it, nothing else does. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { makeOlder } from '../../src/store/testing/older.ts'
import { folder, millrace, ran } from '../support/cli.ts'

const agents = {
  'agents/a.yaml': 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]',
}

async function oldFolder(): Promise<{ cwd: string; run: string; file: string }> {
  const cwd = folder(agents)
  const { out } = await ran(['run', 'a', '-m', 'Hello', '--format', 'parts'], { cwd })
  const { runId: run } = JSON.parse(out.slice(0, out.indexOf('\n'))) as { runId: string }
  await ran(['export', run, '-o', 'run.ndjson'], { cwd })
  const file = join(cwd, '.millrace', 'millrace.db')
  const db = new DatabaseSync(file)
  makeOlder(db, 6)
  db.exec('CREATE VIEW own AS SELECT old FROM runs')
  db.exec('PRAGMA journal_mode = DELETE')
  db.close()
  return { cwd, run, file }
}

const cure =
  /written by an older Millrace \(schema 6, this version needs \d+\); run "millrace migrate --data .*\.millrace" to migrate it/u

describe('millrace migrate', () => {
  test('every other command leaves it as it is, and names the command that migrates it', async () => {
    const { cwd, run, file } = await oldFolder()
    const before = readFileSync(file)
    for (const args of [
      ['ps'],
      ['ps', '--search', 'hello'],
      ['show', run],
      ['logs', run],
      ['verify', 'all'],
      ['export', run],
      ['query', 'SELECT 1'],
      ['stats'],
      ['threads'],
      ['threads', '--search', 'hello'],
      ['diff', run, run],
      ['compact', '--older-than', '0s', '--dry-run'],
      ['compact', '--older-than', '0s'],
      ['prune', '--older-than', '0s', '--dry-run'],
      ['prune', '--older-than', '0s'],
      ['rm', run, '--yes'],
      ['reindex'],
      ['chat', 'a'],
      ['fork', run, '--at', '1', '-m', 'Hello'],
      ['fork', run, '--list'],
      ['replay', run],
      ['answer', run, 'approve'],
      ['import', 'run.ndjson'],
      ['test', '--add', run, '--name', 'adds'],
    ]) {
      const { code, err } = await ran(args, { cwd, input: 'Hello\n' })
      expect.soft({ args, code, err }).toEqual({ args, code: 1, err: expect.stringMatching(cure) })
      expect.soft(readFileSync(file).equals(before), args.join(' ')).toBe(true)
    }
    const { code, err } = await ran(['migrate', '--dry-run'], { cwd })
    expect([code, err]).toEqual([
      0,
      expect.stringMatching(
        /schema 6, this version needs \d+; [\d.]+ MB; a migration needs about [\d.]+ MB more, [\d.]+ MB are free/u,
      ),
    ])
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  test('millrace migrate says what it does, keeps a copy, and is done once', async () => {
    const { cwd, run, file } = await oldFolder()
    const { code, err } = await ran(['migrate', '--backup'], { cwd })
    expect(code).toBe(0)
    expect(err).toMatch(
      /schema 6, this version needs \d+; .*; migrating …\n(?:.*\n)*.* is migrated to schema \d+, in [\d.]+ s; as it was it is in .*millrace\.db\.schema-6\n$/u,
    )
    const copy = new DatabaseSync(`${file}.schema-6`)
    expect(copy.prepare('PRAGMA user_version').get()).toEqual({ user_version: 6 })
    expect(copy.prepare('SELECT id FROM runs').all()).toEqual([{ id: run }])
    copy.close()
    expect((await ran(['verify', 'all'], { cwd })).code).toBe(0)
    expect(await ran(['migrate'], { cwd })).toMatchObject({ code: 0, err: expect.stringMatching(/is up to date/u) })
    expect(readdirSync(join(cwd, '.millrace')).filter((name) => name.includes('schema'))).toEqual([
      'millrace.db.schema-6',
    ])
  })

  test('run and serve migrate it, and say so', async () => {
    const first = await oldFolder()
    const done = /schema 6, this version needs \d+; .*migrating …[^]*is migrated to schema/u
    expect((await ran(['run', 'a', '-m', 'Hello'], { cwd: first.cwd })).err).toMatch(done)
    expect((await ran(['verify', 'all'], { cwd: first.cwd })).err).toContain('2 checked, 0 errors')

    const second = await oldFolder()
    const server = millrace(['serve', '--port', '0'], { cwd: second.cwd })
    await server.until('Millrace is ready')
    expect(server.err).toMatch(done)
    server.kill('SIGTERM')
    await server.exit
  })

  test('while another process has it open, it is not migrated', async () => {
    const { cwd, file } = await oldFolder()
    const other = new DatabaseSync(file)
    other.exec('PRAGMA journal_mode = WAL; BEGIN; SELECT * FROM runs')
    for (const args of [['migrate'], ['run', 'a', '-m', 'Hello']]) {
      const { code, err } = await ran(args, { cwd })
      expect
        .soft([code, err])
        .toEqual([1, expect.stringMatching(/cannot be migrated while another process has it open. End that process/u)])
    }
    expect(other.prepare('PRAGMA user_version').get()).toEqual({ user_version: 6 })
    other.close()
    expect((await ran(['migrate'], { cwd })).code).toBe(0)
    expect(existsSync(`${file}.schema-6`)).toBe(false)
  })
})
