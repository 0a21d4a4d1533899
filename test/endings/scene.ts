/**
 * Agents that stand still in one state each, for the matrix of endings: the same file in this process and, as part of a config, in
 * servers that are killed. It imports nothing, because the config of the built server reads it.
 */

export const states = [
  'text',
  'reasoning',
  'tool arguments',
  'server tool',
  'client tool pending',
  'approval pending',
  'second step',
] as const
export type State = (typeof states)[number]

export function yamlOf(state: State, top: string): string {
  const tools = '[work, quick, { name: pick, client: true }, { name: pay, approval: true }]'
  return `${top}\nonDisconnect: cancel\nworkflow: [{ id: a, type: llm, config: { model: "scene:${state}", stream: true, retries: 0, tools: ${tools} } }]\n`
}

export function idOf(state: State): string {
  return state.replaceAll(' ', '-')
}

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
const finish = (unified: string) => ({ type: 'finish', finishReason: { unified, raw: unified }, usage })
const call = (toolName: string) => [
  { type: 'tool-call', toolCallId: `c-${toolName}`, toolName, input: '{}' },
  finish('tool-calls'),
]

/**
 * The script of one model call. `hold` is a latch, at which a model stands still; what comes behind it is only played when it opens.
 */
export function scriptOf(state: State, results: number, hold: unknown): unknown[] {
  const broken = { type: 'error', error: new Error('The provider broke.') }
  const half = [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Half ' }, hold, broken]
  if (state === 'second step') return results === 0 ? call('quick') : half
  if (results > 0)
    return [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'Done.' },
      { type: 'text-end', id: 't' },
      finish('stop'),
    ]
  switch (state) {
    case 'text':
      return half
    case 'reasoning':
      return [{ type: 'reasoning-start', id: 'r' }, { type: 'reasoning-delta', id: 'r', delta: 'Hm ' }, hold, broken]
    case 'tool arguments':
      return [
        { type: 'tool-input-start', id: 'c', toolName: 'work' },
        { type: 'tool-input-delta', id: 'c', delta: '{"a' },
        hold,
        broken,
      ]
    case 'server tool':
      return call('work')
    case 'client tool pending':
      return call('pick')
    default:
      return call('pay')
  }
}

/** Whether this entry shows that a run stands still in the state. */
export function isReached(state: State, entry: { type: string; toolName?: unknown }): boolean {
  switch (state) {
    case 'text':
    case 'second step':
      return entry.type === 'text-delta'
    case 'reasoning':
      return entry.type === 'reasoning-delta'
    case 'tool arguments':
      return entry.type === 'tool-input-delta'
    case 'server tool':
      return entry.type === 'step-start' && entry.toolName === 'work'
    default:
      return entry.type === 'suspend' || entry.type === 'run-end'
  }
}
