/**
 * What it costs that a model calls an agent as a tool, above a `call-agent` step that calls the same agent: three model calls in both, recorded on
 * SQLite. Run with `npm run bench -- agents`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime } from '../src/project/create-runtime.ts'
import { createScriptedModel, finish, text, toolCall } from '../src/models/testing/scripted-model.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'
import type { Runtime } from '../src/runtime/runtime.ts'
import { answerCalls, ownCpu } from './calls.ts'
import type { Options, Result, ResultRow, Sample } from './scenario.ts'

const llm = (id: string, config = '') =>
  `{ id: ${id}, type: llm, config: { model: "bench:m", messages: [{ role: user, content: ${id} }]${config} } }`
const agents = {
  worker: `workflow: [${llm('work')}]`,
  step: `workflow: [${llm('first')}, { id: call, type: call-agent, config: { agent: worker, input: { messages: [] } } }, ${llm('last')}]`,
  both: `workflow: [${llm('calls', ', tools: [noop]')}, { id: call, type: call-agent, config: { agent: worker, input: { messages: [] } } }]`,
  tool: `workflow: [${llm('calls', ', tools: [{ agent: worker }]')}]`,
}
const titles = {
  step: 'a call-agent step',
  both: 'a tool that does nothing, and a call-agent step',
  tool: 'an agent tool',
}
const runsOfRound = 400

/** Calls the agent if it is offered and has not answered yet. */
function createModel() {
  const model = createScriptedModel([])
  return {
    ...model,
    doStream: (options: Parameters<typeof model.doStream>[0]) => {
      const calls = options.tools !== undefined && options.prompt.at(-1)?.role !== 'tool'
      const name = options.tools?.[0]?.name ?? ''
      const said = calls ? [toolCall('c', name, { message: 'go' }), finish('tool-calls')] : [text('word'), finish()]
      return createScriptedModel([said]).doStream(options)
    },
  }
}

async function timeOf(runtime: Runtime, agent: string): Promise<Sample> {
  const [began, cpu] = [performance.now(), ownCpu()]
  for (let i = 0; i < runsOfRound; i++) await (await runtime.start(agent, { messages: [] })).result
  const each = 1e6 / runsOfRound
  return { us: ((performance.now() - began) / 1000) * each, cpu: (ownCpu() - cpu) * each }
}

async function measure({ rounds = 9 }: Options): Promise<Result[]> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const store = sqliteStore(join(dir, 'millrace.db'))
  const model = createModel()
  const noop = { parameters: { type: 'object' }, execute: () => 'done' }
  const runtime = createRuntime({
    agents,
    tools: { noop },
    store,
    models: { providers: { bench: () => model } },
    environment: {},
  })
  const rows: ResultRow[] = Object.entries(titles).map(([name, title]) => ({ name, title, samples: [] }))
  try {
    for (let round = -1; round < rounds; round++) {
      const order = round % 2 === 0 ? rows : rows.toReversed()
      for (const row of order) {
        const sample = await timeOf(runtime, row.name)
        if (round >= 0) row.samples.push(sample)
      }
    }
  } finally {
    await runtime.close(1000)
    rmSync(dir, { recursive: true, force: true })
  }
  return [
    {
      scenario: 'agents',
      title: `µs for a run of three model calls, one of them in a called agent; medians of ${rounds} rounds of ${runsOfRound}`,
      reference: 'step',
      columns: [
        { key: 'cpu', title: 'CPU µs', digits: 0, ratio: true },
        { key: 'us', title: 'µs', digits: 0, ratio: true },
      ],
      rows,
      notes: ['The model answers at once. Each run is recorded on SQLite.'],
    },
  ]
}

answerCalls({ measure })
