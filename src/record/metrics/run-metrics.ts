/**
 * Metrics of runs: folded on request from the entries stored since the process began. Nothing waits for it. With a shared
 * store each process counts its own entries, at once: so sums over all of them count everything once.
 */
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { RunRow, Store } from '../../part/log.ts'
import { kindOf } from '../../part/step-kind.ts'
import { createAgentsAbove, type AgentsAbove } from '../../fold/agents-above.ts'
import { createCounter, createHistogram } from './families.ts'

/** A run that has not ended. */
interface OpenRun {
  agent: string
  status: 'running' | 'suspended'
  above: AgentsAbove
  calls: Map<
    string,
    { model: string; tool: string; isClients: boolean; startedAt: number; spoken: boolean; failed?: string }
  >
}

/** Most runs that are known at once: of the others' steps, nothing is measured. */
const mostRuns = 10_000

export interface RunMetrics {
  /** Reads the entries stored since the last call. */
  read(): Promise<string>
}

export function createRunMetrics(store: Pick<Store, 'log' | 'runs' | 'onStored'>): RunMetrics {
  const { log, runs } = store
  const isShared = store.onStored !== undefined
  const started = createCounter('millrace_runs_started_total', 'Runs that have started.')
  const ended = createCounter('millrace_runs_ended_total', 'Runs that have ended, by outcome.')
  const duration = createHistogram('millrace_run_duration_seconds', 'From the start of a run to its end.')
  const tokens = createCounter(
    'millrace_tokens_total',
    'Tokens by model; input includes cached, output includes reasoning.',
  )
  const cost = createCounter('millrace_cost_usd_total', 'Known cost in USD.')
  const unpriced = createCounter('millrace_unpriced_calls_total', 'Reports of usage whose price is unknown.')
  const latency = createHistogram('millrace_model_call_duration_seconds', 'Duration of a model call.')
  const first = createHistogram(
    'millrace_model_first_token_seconds',
    'From the start of a model call to its first token.',
  )
  const tools = createCounter('millrace_tool_calls_total', 'Results of tool calls.')
  const toolTime = createHistogram('millrace_tool_call_duration_seconds', 'Time in a tool of the server.')
  const asked = createCounter('millrace_requests_total', 'Requests to people and clients, by what became of them.')
  const open = new Map<string, OpenRun>()
  const begun = new Map<string, number>()
  // The position is asked for at once: entries stored from now on count.
  let position = isShared ? Promise.resolve(0) : log.position().catch(() => 0)
  let reading: Promise<unknown> = Promise.resolve()

  function begin(id: string, { agent, timestamp }: EntryOf<'run-start'>): void {
    started.add({ agent })
    adopt({ id, agent, startedAt: timestamp })
  }

  function adopt({ id, agent, startedAt }: Pick<RunRow, 'id' | 'agent' | 'startedAt'>): void {
    if (open.size >= mostRuns) return
    open.set(id, { agent, status: 'running', above: createAgentsAbove(agent), calls: new Map() })
    begun.set(id, startedAt)
  }

  function forget(id: string): void {
    open.delete(id)
    begun.delete(id)
  }

  function end(id: string, { outcome, timestamp }: EntryOf<'run-end'>): void {
    const run = open.get(id)
    const startedAt = begun.get(id)
    ended.add({ agent: run?.agent ?? 'other', outcome })
    if (run !== undefined && startedAt !== undefined) {
      duration.add({ agent: run.agent }, Math.max(0, timestamp - startedAt) / 1000)
    }
    forget(id)
  }

  function count({ model, usage, cost: usd }: EntryOf<'usage'>): void {
    const kinds = {
      input: usage.inputTokens,
      output: usage.outputTokens,
      cached_input: usage.cachedInputTokens,
      reasoning: usage.reasoningTokens,
    }
    // A CLI agent may correct itself, but a counter must not fall.
    for (const [kind, amount = 0] of Object.entries(kinds)) if (amount > 0) tokens.add({ model, kind }, amount)
    if (usd === undefined) unpriced.add({ model })
    else if (usd > 0) cost.add({ model }, usd)
  }

  function finish(
    call: OpenRun['calls'] extends Map<string, infer C> ? C : never,
    entry: EntryOf<'step-finish'>,
  ): void {
    const seconds = entry.duration / 1000
    if (call.model !== '') latency.add({ model: call.model }, seconds)
    if (call.tool === '') return
    tools.add({ tool: call.tool, outcome: call.failed ?? (entry.error === undefined ? 'completed' : 'failed') })
    // A client takes the time of whoever replies.
    if (!call.isClients) toolTime.add({ tool: call.tool }, seconds)
  }

  function apply(id: string, entry: Entry): void {
    if (entry.type === 'run-start') return begin(id, entry)
    if (entry.type === 'run-end') return end(id, entry)
    if (entry.type === 'usage') return count(entry)
    const run = open.get(id)
    // The one that asks: a called agent, or the run's own.
    const agent = run?.above.at(entry.step).at(-1) ?? 'other'
    if (entry.type === 'request') return asked.add({ agent, kind: entry.kind, outcome: 'asked' })
    if (entry.type === 'response') return asked.add({ agent, kind: 'any', outcome: entry.outcome })
    if (run === undefined) return
    run.above.apply(entry)
    const call = run.calls.get(entry.step)
    switch (entry.type) {
      case 'suspend':
        run.status = 'suspended'
        break
      case 'resume':
        run.status = 'running'
        break
      case 'step-start': {
        const kind = kindOf(entry)
        const isTool = kind === 'tool-call' || kind === 'client-tool'
        if (kind !== 'model-call' && !isTool) break
        const tool = isTool ? (entry.toolName ?? 'other') : ''
        run.calls.set(entry.step, {
          model: '',
          tool,
          isClients: kind === 'client-tool',
          startedAt: entry.timestamp,
          spoken: false,
        })
        break
      }
      case 'prompt':
        if (call !== undefined) call.model = entry.model
        break
      case 'text-delta':
      case 'reasoning-delta':
      case 'tool-input-delta':
        if (call === undefined || call.spoken || call.model === '') break
        call.spoken = true
        first.add({ model: call.model }, Math.max(0, entry.timestamp - call.startedAt) / 1000)
        break
      case 'tool-result':
        if (call !== undefined && entry.isError === true) call.failed = entry.outcome ?? 'failed'
        break
      case 'step-finish':
        if (call !== undefined) finish(call, entry)
        run.calls.delete(entry.step)
        break
      default:
    }
  }

  store.onStored?.((row, entries) => {
    for (const entry of entries) {
      // It began in another process.
      if (!open.has(row.id) && entry.type !== 'run-start') adopt(row)
      apply(row.id, entry)
      // It may go on in another one.
      if (entry.type === 'suspend') forget(row.id)
    }
  })

  async function catchUp(): Promise<void> {
    if (isShared) return
    for await (const changes of log.changes({ after: await position })) {
      for (const { n, run, entries } of changes) {
        // A fork: the entries shared with its source, its start too, are not stored again. Or it began before this process.
        if (!open.has(run) && open.size < mostRuns && entries[0]?.type !== 'run-start') {
          const row = await runs.get(run)
          if (row !== undefined) adopt(row)
        }
        for (const entry of entries) apply(run, entry)
        position = Promise.resolve(n)
      }
    }
  }

  return {
    async read() {
      const turn = reading.then(catchUp)
      reading = turn.catch(() => undefined)
      await turn
      const now = createCounter(
        'millrace_runs',
        'Runs that have not ended, of those that started or went on in this process. With a shared store: that run in it.',
        'gauge',
      )
      for (const status of ['running', 'suspended']) now.add({ status }, 0)
      for (const { status } of open.values()) now.add({ status })
      const all = [started, ended, duration, now, tokens, cost, unpriced, latency, first, tools, toolTime, asked]
      return all.map((family) => family.text()).join('')
    },
  }
}
