/** `--log-files`: what stands in the files is what stands in the log, whatever happens in between. */
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exampleRun } from '../../src/store/example-run.contract.ts'
import { readNdjson, verify } from '../../src/store/ndjson.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { createLogFiles, type LogFiles } from '../../src/record/log-files.ts'
import { serve } from '../../src/server/serve.ts'
import { folder, ran } from '../support/cli.ts'
import { agent, createEngine, entriesOf, only, until, type Engine, type EngineOptions } from '../support/engine.ts'

const say = (content = 'Hi') => ({ messages: [{ role: 'user', content }] })

/** An engine whose runs are copied into a folder. */
function copied(options: EngineOptions, dir = join(folder(), 'runs')) {
  const told: string[] = []
  let files: LogFiles | undefined
  const wrapStore: EngineOptions['wrapStore'] = (store) =>
    (files = createLogFiles(store, dir, (line) => void told.push(line))).store
  const engine = createEngine({ keep: true, ...options, wrapStore })
  const read = (name: string) => readFileSync(join(dir, name), 'utf8')
  return { ...engine, files: files!, runs: dir, told, read }
}

/** The log as NDJSON. */
async function recorded({ store }: Engine, run: string): Promise<string> {
  let lines = ''
  for await (const batch of store.log.read(run)) for (const entry of batch) lines += `${JSON.stringify(entry)}\n`
  return lines
}

describe('log files', () => {
  test('a run that goes on is in its file as far as it is; when it has ended there is a summary', async () => {
    const gate = latch()
    const model = createScriptedModel([
      [text('one'), toolCall('c1', 'calculator', { expression: '1+1' }), finish('tool-calls')],
      [text('two'), gate, text('three'), finish()],
    ])
    const engine = copied({ agents: { a: agent('tools: [calculator]') }, scripts: { m: model } })
    const run = await engine.runtime.start('a', say())
    await gate.reached
    await expect
      .poll(() => existsSync(join(engine.runs, `${run.id}.ndjson`)) && engine.read(`${run.id}.ndjson`))
      .toContain('"two"')
    expect(engine.read(`${run.id}.ndjson`)).not.toContain('run-end')
    expect(readdirSync(engine.runs)).toEqual([`${run.id}.ndjson`])
    gate.open()
    await run.result
    await expect.poll(() => readdirSync(engine.runs).toSorted()).toEqual([`${run.id}.ndjson`, `${run.id}.summary.json`])
    const whole = engine.read(`${run.id}.ndjson`)
    expect(whole).toBe(await recorded(engine, run.id))
    const { entries, faults } = readNdjson(whole)
    expect([faults, verify(entries)]).toEqual([[], []])
    const summary = JSON.parse(engine.read(`${run.id}.summary.json`)) as Record<string, number>
    expect(summary).toMatchObject({
      id: run.id,
      agent: 'a',
      status: 'completed',
      textBlocks: 3,
      reasoningBlocks: 0,
      toolCalls: 1,
      toolResults: 1,
      errors: 0,
      tokens: expect.any(Number),
      duration: summary['endedAt']! - summary['startedAt']!,
    })
    // What people said is in them.
    for (const name of readdirSync(engine.runs)) expect(statSync(join(engine.runs, name)).mode & 0o777).toBe(0o600)
    expect(engine.told).toEqual([])
    await engine.close()
  })

  test('a run that fails, and one that is stopped, have a summary that says so', async () => {
    const gate = latch()
    const model = createScriptedModel([[text('a'), gate, finish()]])
    const engine = copied({
      agents: { a: agent(), b: agent().replace('script:m', 'recording:none') },
      scripts: { m: model },
    })
    const stopped = await engine.runtime.start('a', say())
    await gate.reached
    await stopped.stop()
    const failed = await engine.runtime.start('b', say())
    await Promise.all([stopped.result, failed.result])
    // Closing waits for the files.
    await engine.close()
    const summary = (id: string) => JSON.parse(engine.read(`${id}.summary.json`)) as { error: { message: string } }
    expect(summary(stopped.id)).toMatchObject({ status: 'aborted' })
    expect(summary(failed.id)).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('recording:none') },
    })
  })

  async function lastRequest({ store }: Engine, run: string): Promise<string> {
    const entries = await entriesOf(store, run)
    return only(entries, 'request').at(-1)!.requestId
  }

  test('a run that waited for its client goes on in the same file, in this life or the next', async () => {
    const options = () => ({
      agents: { a: agent('tools: [ask]') },
      tools: { ask: { parameters: { type: 'object', properties: {} } } },
      scripts: {
        m: createScriptedModel([
          [toolCall('c1', 'ask', {}), finish('tool-calls')],
          [toolCall('c2', 'ask', {}), finish('tool-calls')],
          [text('ok'), finish()],
        ]),
      },
    })
    const first = copied(options())
    const run = await first.runtime.start('a', say())
    const suspended = await until(first.store, run.id, ({ type }) => type === 'suspend')
    await run.answer(await lastRequest(first, run.id), { kind: 'tool', output: 1 })
    await until(first.store, run.id, ({ type, seq }) => type === 'suspend' && seq > suspended.seq)
    await first.close()
    expect(existsSync(join(first.runs, `${run.id}.summary.json`))).toBe(false)
    const scripts = { m: createScriptedModel([[text('ok'), finish()]]) }
    const second = copied({ ...options(), scripts, dir: first.dir }, first.runs)
    await second.runtime.recover()
    await second.files.catchUp()
    const again = (await second.runtime.open(run.id))!
    await again.answer(await lastRequest(second, run.id), { kind: 'tool', output: 2 })
    expect(await again.result).toMatchObject({ outcome: 'completed', text: 'ok' })
    await expect.poll(() => existsSync(join(second.runs, `${run.id}.summary.json`))).toBe(true)
    expect(second.read(`${run.id}.ndjson`)).toBe(await recorded(second, run.id))
    expect(second.told).toEqual([])
    await second.close()
  })

  test.each([
    ['a torn line', (file: string) => truncateSync(file, statSync(file).size - 7), true],
    ['half of its lines', (file: string) => writeFileSync(file, halfOf(readFileSync(file, 'utf8'))), false],
    ['nothing', (file: string) => rmSync(file), false],
    ['an empty file', (file: string) => writeFileSync(file, ''), false],
    ['only a piece of the first line', (file: string) => writeFileSync(file, '{"seq":1,"ti'), true],
    ['what is no log', (file: string) => writeFileSync(file, 'hello\n'), true],
    ['a piece behind the last line', (file: string) => appendFileSync(file, '{"seq'), true],
  ])('of a file that was left with %s the rest is copied from the log', async (_, damage, torn) => {
    // Longer than one read of the tail.
    const model = createScriptedModel([[text('x'.repeat(300_000)), text('end'), finish()]])
    const first = copied({ agents: { a: agent() }, scripts: { m: model } })
    const run = await first.runtime.start('a', say())
    await run.result
    await first.close()
    const whole = first.read(`${run.id}.ndjson`)
    damage(join(first.runs, `${run.id}.ndjson`))
    rmSync(join(first.runs, `${run.id}.summary.json`))
    const second = copied({ agents: {}, dir: first.dir }, first.runs)
    await second.files.catchUp()
    expect(second.read(`${run.id}.ndjson`)).toBe(whole)
    expect(existsSync(join(first.runs, `${run.id}.summary.json`))).toBe(true)
    expect(second.told).toEqual(torn ? [expect.stringContaining(`${run.id}.ndjson: the last line was incomplete`)] : [])
    await second.close()
  })
  const halfOf = (whole: string) => `${whole.split('\n').slice(0, 4).join('\n')}\n`

  test('a run that was recorded before files were wanted gets its file, and one that has it is left alone', async () => {
    const script = () => createScriptedModel(Array.from({ length: 3 }, () => [text('x'), finish()]))
    const plain = createEngine({ agents: { a: agent() }, scripts: { m: script() }, keep: true })
    const before = await plain.runtime.start('a', say())
    await before.result
    await plain.close()
    const engine = copied({ agents: { a: agent() }, scripts: { m: script() }, dir: plain.dir })
    await engine.files.catchUp()
    const file = join(engine.runs, `${before.id}.ndjson`)
    expect(readFileSync(file, 'utf8')).toBe(await recorded(engine, before.id))
    writeFileSync(file, 'mine')
    await engine.files.catchUp()
    expect(readFileSync(file, 'utf8')).toBe('mine')
    await engine.close()
  })

  test('files that cannot be written hold no run up; they are told once and written when they can be', async () => {
    const model = createScriptedModel(Array.from({ length: 3 }, () => [text('x'), finish()]))
    const place = folder({ runs: 'a file where the folder should be' })
    const engine = copied({ agents: { a: agent() }, scripts: { m: model } }, join(place, 'runs'))
    for (let i = 0; i < 2; i++) {
      expect(await (await engine.runtime.start('a', say())).result).toMatchObject({ outcome: 'completed' })
    }
    await expect
      .poll(() => engine.told)
      .toEqual([expect.stringMatching(/^log files cannot be written at the moment: .*EEXIST/)])
    rmSync(join(place, 'runs'))
    const third = await engine.runtime.start('a', say())
    await third.result
    await expect.poll(() => existsSync(engine.runs) && readdirSync(engine.runs).length).toBe(6)
    expect(engine.told).toHaveLength(1)
    await engine.close()
  })

  test('an id of a program leads nowhere else', async () => {
    const model = createScriptedModel([[text('x'), finish()]])
    const engine = copied({ agents: { a: agent() }, scripts: { m: model } })
    await (
      await engine.runtime.start('a', say(), { runId: '../../run/x' })
    ).result
    await engine.close()
    expect(readdirSync(engine.runs).toSorted()).toEqual([
      '%2E%2E%2F%2E%2E%2Frun%2Fx.ndjson',
      '%2E%2E%2F%2E%2E%2Frun%2Fx.summary.json',
    ])
  })

  test('the config wants them too, for `run` as well; without a folder they are refused', async () => {
    const yaml = agent().replace('script:m', 'demo:assistant')
    const cwd = folder({
      'agents/a.yaml': yaml,
      'agents/millrace.config.mjs': 'export default { record: { logFiles: true } }',
    })
    const { code, err } = await ran(['run', 'a', '-m', 'Hi'], { cwd })
    const id = /run (run_\w+)/u.exec(err)![1]
    expect([code, readdirSync(join(cwd, '.millrace/runs')).toSorted()]).toEqual([
      0,
      [`${id}.ndjson`, `${id}.summary.json`],
    ])
    const nowhere = serve({ dir: join(cwd, 'agents'), data: 'none', env: {}, port: 0 })
    await expect(nowhere).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining('--data none') })
  })

  test('what another process stores in the same database is in the files too', async () => {
    const path = join(folder(), 'runs.db')
    const [own, other] = [sqliteStore(path), sqliteStore(path)]
    const dir = join(folder(), 'runs')
    const files = createLogFiles(own, dir, () => undefined)
    await other.log.append('theirs', 1, exampleRun('theirs'))
    await files.store.log.append('ours', 1, exampleRun('ours'))
    await files.store.close()
    const read = (run: string) => readNdjson(readFileSync(join(dir, `${run}.ndjson`), 'utf8')).entries
    for (const run of ['ours', 'theirs']) expect(read(run)).toEqual(exampleRun(run))
    await other.close()
  })

  test('a run that is deleted while it is copied is not waited for', async () => {
    const dir = folder()
    const inner = sqliteStore(join(dir, 'runs.db'))
    const gate = Promise.withResolvers<void>()
    const read: typeof inner.log.read = (run, options) => ({
      async *[Symbol.asyncIterator]() {
        await gate.promise
        yield* inner.log.read(run, options)
      },
    })
    const told: string[] = []
    const { store } = createLogFiles({ ...inner, log: { ...inner.log, read } }, join(dir, 'runs'), (line) =>
      told.push(line),
    )
    await store.log.append('gone', 1, exampleRun('gone', 4))
    await inner.upkeep!.drop('gone')
    gate.resolve()
    await store.close()
    expect([told, existsSync(join(dir, 'runs/gone.summary.json'))]).toEqual([[], false])
  })
})
