/** What the CLI agents print in one session, composed by hand in their formats: a text, a tool call with its result, the answer. */
type Line = Record<string, unknown>

const session = '5e551011-0000-4000-8000-000000000001'
const model = 'claude-sonnet-4-6'

function event(body: Line, parent: string | null = null): Line {
  return { type: 'stream_event', event: body, session_id: session, parent_tool_use_id: parent, uuid: 'u' }
}

function usage(input: number, output: number, cached = 0): Line {
  return {
    input_tokens: input,
    output_tokens: output,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
  }
}

/** One message of Claude as it is written, with the `assistant` line of each block. */
function message(id: string, blocks: Line[], tokens: Line, parent: string | null = null): Line[] {
  const stop = blocks.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn'
  const head = { id, type: 'message', role: 'assistant', model }
  const lines = [
    event({ type: 'message_start', message: { ...head, content: [], usage: { ...tokens, output_tokens: 1 } } }, parent),
  ]
  for (const [index, block] of blocks.entries()) {
    const { pieces, ...whole } = block as Line & { pieces: string[] }
    const isTool = whole['type'] === 'tool_use'
    const empty = isTool ? { ...whole, input: {} } : { type: 'text', text: '' }
    lines.push(event({ type: 'content_block_start', index, content_block: empty }, parent))
    for (const piece of pieces) {
      const delta = isTool ? { type: 'input_json_delta', partial_json: piece } : { type: 'text_delta', text: piece }
      lines.push(event({ type: 'content_block_delta', index, delta }, parent))
    }
    lines.push({
      type: 'assistant',
      message: { ...head, content: [whole], usage: tokens },
      parent_tool_use_id: parent,
      session_id: session,
    })
    lines.push(event({ type: 'content_block_stop', index }, parent))
  }
  lines.push(event({ type: 'message_delta', delta: { stop_reason: stop }, usage: tokens }, parent))
  lines.push(event({ type: 'message_stop' }, parent))
  return lines
}

const say = (...pieces: string[]) => ({ type: 'text', text: pieces.join(''), pieces })
const use = (id: string, name: string, input: Line) => {
  const json = JSON.stringify(input)
  return { type: 'tool_use', id, name, input, pieces: [json.slice(0, 5), json.slice(5)] }
}

function toolResult(id: string, content: unknown, parent: string | null = null): Line {
  const block = { type: 'tool_result', tool_use_id: id, content }
  return { type: 'user', message: { role: 'user', content: [block] }, parent_tool_use_id: parent, session_id: session }
}

const init: Line = {
  type: 'system',
  subtype: 'init',
  session_id: session,
  model,
  cwd: '/work',
  tools: ['Read', 'Task'],
  permissionMode: 'default',
  claude_code_version: '2.1.300',
}

function result(text: string, tokens: Line, more: Line = {}): Line {
  return {
    type: 'result',
    subtype: 'success',
    is_error: false,
    result: text,
    session_id: session,
    num_turns: 2,
    duration_ms: 10,
    duration_api_ms: 9,
    total_cost_usd: 0.0125,
    usage: tokens,
    modelUsage: {},
    permission_denials: [],
    ...more,
  }
}

const reads = use('toolu_1', 'Read', { file_path: 'src/main.ts' })

/** A text, a tool call, and the answer: 250 input tokens, 30 output tokens, 0.0125 USD. */
const claude: Line[] = [
  init,
  ...message('msg_1', [say('I will ', 'read it.'), reads], usage(100, 20, 40)),
  toolResult('toolu_1', 'export const x = 1 // ünïcödé 🌊'),
  ...message('msg_2', [say('It is ', 'fine: ', 'ü🌊.')], usage(150, 10, 90)),
  result('It is fine: ü🌊.', usage(250, 30, 130)),
]

/** The same with a sub-agent that reads, whose text must not enter the answer. */
const claudeWithSubAgent: Line[] = [
  init,
  ...message('msg_1', [say('I ask.'), use('toolu_9', 'Task', { prompt: 'look' })], usage(100, 20)),
  ...message('msg_s1', [say('Sub: looking.'), use('toolu_s', 'Read', { file_path: 'a' })], usage(50, 5), 'toolu_9'),
  toolResult('toolu_s', 'contents', 'toolu_9'),
  ...message('msg_s2', [say('Sub: done.')], usage(60, 6), 'toolu_9'),
  toolResult('toolu_9', [{ type: 'text', text: 'Sub: done.' }]),
  ...message('msg_2', [say('All good.')], usage(150, 10)),
  result('All good.', usage(360, 41)),
]

const claudeFails: Line[] = [
  init,
  result('Failed to authenticate.', usage(0, 0), { is_error: true, total_cost_usd: 0, num_turns: 1 }),
]

const codex: Line[] = [
  { type: 'thread.started', thread_id: '019e1380-0000-7000-8000-000000000002' },
  { type: 'turn.started' },
  { type: 'item.completed', item: { id: 'item_0', type: 'agent_message', text: 'I will read it.' } },
  {
    type: 'item.started',
    item: {
      id: 'item_1',
      type: 'command_execution',
      command: 'cat a',
      aggregated_output: '',
      exit_code: null,
      status: 'in_progress',
    },
  },
  {
    type: 'item.completed',
    item: {
      id: 'item_1',
      type: 'command_execution',
      command: 'cat a',
      aggregated_output: 'x\n',
      exit_code: 0,
      status: 'completed',
    },
  },
  { type: 'item.completed', item: { id: 'item_2', type: 'agent_message', text: 'It is fine: ü🌊.' } },
  {
    type: 'turn.completed',
    usage: { input_tokens: 250, cached_input_tokens: 130, output_tokens: 30, reasoning_output_tokens: 0 },
  },
]

const timestamp = '2026-08-21T16:16:56.000Z'
const gemini: Line[] = [
  { type: 'init', timestamp, session_id: 'g-1', model: 'gemini-2.5-pro' },
  { type: 'message', timestamp, role: 'user', content: 'Look.' },
  { type: 'message', timestamp, role: 'assistant', content: 'I will read it.', delta: true },
  { type: 'tool_use', timestamp, tool_name: 'read_file', tool_id: 'read-1', parameters: { path: 'a' } },
  { type: 'tool_result', timestamp, tool_id: 'read-1', status: 'success', output: 'x' },
  { type: 'message', timestamp, role: 'assistant', content: 'It is fine: ', delta: true },
  { type: 'message', timestamp, role: 'assistant', content: 'ü🌊.', delta: true },
  {
    type: 'result',
    timestamp,
    status: 'success',
    stats: {
      total_tokens: 280,
      input_tokens: 250,
      output_tokens: 30,
      cached: 130,
      input: 120,
      duration_ms: 5,
      tool_calls: 1,
      models: {},
    },
  },
]

/** As Claude Code's, but with an id for each block, and cached tokens among those of the input. */
const qwenBlock = (id: string, content: Line, tokens: Line) => {
  const body = { id, role: 'assistant', model: 'qwen3', content: [content], usage: tokens }
  return { type: 'assistant', message: body, session_id: session, parent_tool_use_id: null }
}
const qwen: Line[] = [
  { type: 'system', subtype: 'init', session_id: session, model: 'qwen3', tools: [], qwen_code_version: '0.24.4' },
  qwenBlock('q1', { type: 'text', text: 'I will read it.' }, usage(0, 0)),
  qwenBlock('q2', { type: 'tool_use', id: 'read-1', name: 'read_file', input: { path: 'a' } }, usage(100, 10, 30)),
  toolResult('read-1', 'x'),
  qwenBlock('q3', { type: 'text', text: 'It is fine: ü🌊.' }, usage(150, 20, 100)),
  {
    type: 'result',
    subtype: 'success',
    is_error: false,
    result: 'It is fine: ü🌊.',
    usage: usage(250, 30, 130),
    session_id: session,
  },
]

export const sessions = { claude, claudeWithSubAgent, claudeFails, codex, gemini, qwen }
