/**
 * How a CLI agent may end, and what becomes of the run: the table in docs/cli-agents.md, row by row. `UPDATE_GOLDEN=1` writes it
 * again. After each row no process is left, which the process table says.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { createEngine, entriesOf, only, until, type EngineOptions } from '../support/engine.ts'
import { hasProcessTable, installFakes, startLatch, untilGone, type Fakes } from '../support/cli/fakes.ts'

const input = { messages: [{ role: 'user' as const, content: 'Look at it.' }] }

interface Row {
  what: string
  mode: string
  outcome: string
  code?: string
  /** The exit code in the step's value. */
  exit?: number | null
  message?: string
  session?: string
  config?: string
  top?: string
  engine?: Partial<EngineOptions>
  /** Stops the run once the fake is silent. */
  stops?: boolean
  waits?: boolean
}

const rows: Row[] = [
  { what: 'It says its result and exits with 0.', mode: 'normal', outcome: 'completed', exit: 0 },
  { what: 'It says its result and does not exit.', mode: 'hang-after-result', outcome: 'completed', exit: null },
  {
    what: 'It exits with 0, and a process that it has started stays.',
    mode: 'grandchild-stays',
    outcome: 'completed',
    exit: 0,
  },
  {
    what: 'Its result says that it failed.',
    mode: 'normal',
    session: 'claudeFails',
    outcome: 'failed',
    code: 'cli-failed',
  },
  { what: 'It says its result and exits with 1.', mode: 'exit-1', outcome: 'failed', code: 'cli-exit' },
  { what: 'It exits with 1 in the middle of a line.', mode: 'exit-1-mid-line', outcome: 'failed', code: 'cli-exit' },
  { what: 'It exits with 0 without a result.', mode: 'no-result', outcome: 'interrupted', code: 'interrupted' },
  { what: 'It exits with 130 (Ctrl-C).', mode: 'interrupted', outcome: 'interrupted', code: 'interrupted' },
  { what: 'A signal ends it.', mode: 'killed', outcome: 'interrupted', code: 'interrupted' },
  {
    what: 'It says nothing for longer than `idle`.',
    mode: 'silent',
    config: 'timeouts: { idle: 300ms }',
    outcome: 'timed-out',
    code: 'timed-out',
    message: 'Claude Code said nothing for 300 ms in the middle of its answer.',
  },
  {
    what: 'The step takes longer than `step`, and it ignores SIGTERM.',
    mode: 'ignore-term',
    config: 'timeouts: { step: 2s }',
    outcome: 'timed-out',
    code: 'timed-out',
  },
  {
    what: 'It uses up the budget.',
    mode: 'normal',
    config: 'budget: { tokens: 150 }',
    outcome: 'budget-exceeded',
    code: 'budget-exceeded',
  },
  {
    what: 'It writes more than `limits.answerChars`.',
    mode: 'flood',
    outcome: 'failed',
    code: 'answer-too-long',
  },
  {
    what: 'The run is stopped, and it ignores SIGTERM.',
    mode: 'ignore-term',
    outcome: 'aborted',
    code: 'aborted',
    stops: true,
  },
  {
    what: 'It is not installed.',
    mode: 'normal',
    config: 'command: no-such-cli',
    outcome: 'failed',
    code: 'not-installed',
  },
  {
    what: 'The server lacks a variable that `env` names.',
    mode: 'normal',
    config: 'env: [NO_SUCH_KEY]',
    outcome: 'failed',
    code: 'missing-env',
  },
]

const seen = new Map<string, string>()

describe('exits of CLI agents', () => {
  test.each(rows)('$what', { timeout: 30_000 }, async (row) => {
    const fakes = installFakes()
    const latch = row.stops ? await startLatch() : undefined
    const { mode, session, config = '', top = '' } = row
    const yaml = fakes.agent({
      mode,
      config,
      top: `${top}\nreturn: "$done"`,
      ...(session === undefined ? undefined : { session }),
    })
    const engine = createEngine({ ...row.engine, agents: { a: yaml }, environment: fakes.environment })
    onTestFinished(() => engine.close())
    const run = await engine.runtime.start('a', input)
    if (row.stops) {
      await until(engine.store, run.id, ({ type }) => type === 'text-delta')
      await run.stop()
    }
    void latch
    const { outcome, output, error } = await run.result
    const entries = await entriesOf(engine.store, run.id)
    const exit = (output as { exitCode?: number | null } | undefined)?.exitCode
    const found = { outcome, ...(error && { code: error.code }), ...(exit !== undefined && { exit }) }
    const { code } = row
    expect(found).toEqual({ outcome: row.outcome, ...(code && { code }), ...('exit' in row && { exit: row.exit }) })
    if (row.message !== undefined) expect(error?.message).toContain(row.message)
    expect(only(entries, 'run-end')).toHaveLength(1)
    const value = exit === undefined ? '' : `\`exitCode: ${exit}\``
    seen.set(row.what, `| ${row.what} | \`${outcome}\` | ${error === undefined ? value : `\`${error.code}\``} |`)
    await noneLeft(fakes)
    if (mode === 'flood') expect(Number(readFileSync(join(fakes.dir, 'report.ndjson.flood'), 'utf8'))).toBeLessThan(40)
  })

  test('the two others: an exit code of theirs is explained, and what they print without a result is interrupted', async () => {
    for (const cli of ['codex', 'gemini']) {
      for (const [mode, expected] of [
        ['no-result', 'interrupted'],
        ['exit-1', 'failed'],
        ['hang-after-result', 'completed'],
      ] as const) {
        const fakes = installFakes()
        const engine = createEngine({ agents: { a: fakes.agent({ cli, mode }) }, environment: fakes.environment })
        onTestFinished(() => engine.close())
        const run = await engine.runtime.start('a', input)
        expect((await run.result).outcome, `${cli} ${mode}`).toBe(expected)
        await entriesOf(engine.store, run.id)
        await noneLeft(fakes)
      }
    }
  }, 30_000)

  /** Fakes name their folder in their arguments, and what they start inherits it. */
  async function noneLeft({ dir }: Fakes): Promise<void> {
    if (hasProcessTable) await untilGone(dir)
  }

  afterAll(() => {
    // One test alone says nothing about the table.
    if (seen.size < rows.length) return
    const file = new URL('../../docs/cli-agents.md', import.meta.url)
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    const head = '| What happens | Outcome of the run | Error, or exit code in the value |\n| --- | --- | --- |'
    const table = [head, ...rows.map(({ what }) => seen.get(what))].join('\n')
    const [before, rest = ''] = text.split('<!-- exits -->\n')
    const [there, after] = rest.split('\n<!-- end of exits -->')
    if (process.env['UPDATE_GOLDEN']) {
      writeFileSync(file, `${before}<!-- exits -->\n${table}\n<!-- end of exits -->${after}`)
    } else expect(there, 'the table in docs/cli-agents.md: run with UPDATE_GOLDEN=1').toBe(table)
  })
})
