/** The step type `dify`: runs an app of a Dify server, live. The README says how its events arrive. */
import { MillraceError, type ExecutionContext, type PrimitiveHandler, type Question } from 'millrace'
import { createThinkSplitter, readEvents, type DifyEvent } from './events.ts'
import { createMemo } from './memo.ts'

type Environment = Record<string, string | undefined>
type Query = string | { content: string | { text?: string }[] }[]
type DifyConfig = { query?: Query; inputs?: object; user?: string; key?: string; stream?: boolean }
/** What the next call of the step needs when a person was asked. */
type Waiting = { task: string; run: string; text: string; forms: { token: string; question: Question; done?: true }[] }

const failed = (message: string, cause?: unknown) => new MillraceError('dify-failed', message, { status: 502, cause })

export function createDify(environment: Environment): PrimitiveHandler {
  return async (config: DifyConfig, context) => {
    const app = runApp(config, context, environment)
    if (config.stream) return app
    let step = await app.next()
    while (!step.done) step = await app.next()
    return step.value
  }
}
export const steps = { dify: createDify(process.env) }

async function* runApp(config: DifyConfig, { signal, emit, ...context }: ExecutionContext, environment: Environment) {
  const { query, inputs = {}, key = 'DIFY_API_KEY', user = context.user?.id ?? context.threadId } = config
  const { [key]: secret, DIFY_API_URL = 'https://api.dify.ai/v1', DIFY_STATE = '.millrace/dify' } = environment
  if (!secret) throw new MillraceError('bad-config', `The Dify app needs its key: set ${key} in the environment.`)
  const conversation = createMemo<string>(DIFY_STATE, context.threadId, key, user)
  const memo = createMemo<Waiting>(DIFY_STATE, context.runId, config)
  const now = (await memo.read()) ?? { task: '', run: '', text: '', forms: [] }
  const result: Record<string, unknown> = {}
  const split = createThinkSplitter()
  const connection = new AbortController()
  let isOver = false
  let isPaused = now.forms.length > 0
  let asked = 0
  const tell = (name: string, data: unknown, id?: string) => emit({ type: 'data', name: `dify-${name}`, id, data })

  async function send(path: string, body?: object, abort = connection.signal): Promise<Response> {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(DIFY_API_URL + path, { ...init, headers, signal: abort })
    const { code, message } = response.ok ? {} : await response.json().catch(() => ({}))
    // An answer may have been submitted right before a crash.
    if (response.ok || code === 'human_input_form_submitted') return response
    throw failed(`Dify answered ${response.status} (${code}): ${message}`)
  }
  async function stop(): Promise<void> {
    const path = query === undefined ? `/workflows/tasks/${now.task}/stop` : `/chat-messages/${now.task}/stop`
    await send(path, { user }, AbortSignal.timeout(5000)).catch(() => undefined)
  }
  function leave() {
    // Only the events name the task to stop: wait a little for the first one.
    if (now.task === '') setTimeout(() => connection.abort(), 5000).unref()
    else connection.abort()
  }
  function say(delta?: string): string {
    const { text, thinking } = split(delta)
    if (thinking !== '') tell('thinking', thinking)
    if (text !== '' && !config.stream) tell('text', text)
    now.text += text
    return text
  }
  function finish({ prompt_tokens, completion_tokens, total_tokens, total_price, currency }: Record<string, any> = {}) {
    const tokens = { inputTokens: prompt_tokens, outputTokens: completion_tokens, totalTokens: total_tokens }
    result['usage'] = { ...tokens, ...(currency === 'USD' && { cost: Number(total_price) }) }
    tell('usage', result['usage'])
    isOver = true
  }
  /** Tells what happened, and returns the text that the event adds. */
  function receive({ event, data = {}, metadata, ...rest }: DifyEvent): string {
    if (event === 'message' || event === 'agent_message') return say(rest['answer'])
    if (event === 'text_chunk') return say(data.text)
    if (event === 'error') throw failed(`Dify failed (${rest['code']}): ${rest['message']}`)
    if (event === 'message_replace') {
      if (config.stream && now.text !== '') throw failed('Dify withdrew the text that it had sent.')
      now.text = ''
      return say(rest['answer'])
    }
    if (event === 'workflow_finished') {
      if (!/^(?:partial-)?succeeded$/u.test(data.status)) throw failed(`Dify: ${data.status}: ${data.error}`)
      result['outputs'] = data.outputs
      if (query === undefined) finish(data)
    } else if (event === 'message_end') {
      for (const { segment_id, document_id, document_name } of metadata?.retriever_resources ?? []) {
        const named = { id: String(segment_id ?? document_id), title: String(document_name) }
        emit({ type: 'source', sourceType: 'document', mediaType: 'text/plain', ...named })
      }
      finish(metadata?.usage)
    } else if (event === 'human_input_required') {
      if (!data.form_token) throw failed(`"${data.node_title}" asks by e-mail, so nobody can answer it here.`)
      // A block of text cannot be left open while a run waits.
      if (config.stream && now.text !== '') throw failed('It asks after it has sent text: leave out `stream`.')
      now.forms.push({ token: data.form_token, question: toQuestion(data) })
    } else if (event === 'agent_thought' && rest['tool']) {
      tell('tool', { tool: rest['tool'], input: rest['tool_input'], output: rest['observation'] }, rest['id'])
    } else if (event === 'message_file') tell('file', { type: rest['type'], url: rest['url'] }, rest['id'])
    else if (/^(?:node|iteration|loop)_(?:started|finished|completed)$/u.test(event)) {
      const { id, title, node_type: type, status = 'running', outputs, error, execution_metadata: more } = data
      tell('node', { title, type, status, outputs, error, tokens: more?.total_tokens }, id)
    }
    return ''
  }
  async function askForms(): Promise<void> {
    for (; asked < now.forms.length; asked++) {
      const form = now.forms[asked]!
      const reply = await context.request(form.question)
      isPaused = reply.outcome === 'answered'
      if (reply.outcome !== 'answered') throw failed('Nobody answered the question of the Dify app.')
      const { action, ...values } = reply.value as Record<string, unknown>
      if (!form.done) await send(`/form/human_input/${form.token}`, { inputs: values, action, user })
      form.done = true
      await memo.write(now)
    }
  }

  signal.addEventListener('abort', leave, { once: true })
  try {
    do {
      if (isPaused) await askForms()
      const start = { inputs, user, response_mode: 'streaming' }
      const chat = { ...start, query: textOf(query), conversation_id: (await conversation.read()) ?? '' }
      const response = isPaused
        ? await send(`/workflow/${now.run}/events?user=${encodeURIComponent(user)}`)
        : await (query === undefined ? send('/workflows/run', start) : send('/chat-messages', chat))
      isPaused = false
      for await (const event of readEvents(response.body!)) {
        now.task = event['task_id'] ?? now.task
        now.run = event['workflow_run_id'] ?? now.run
        signal.throwIfAborted()
        yield receive(event)
        if (isOver && event['conversation_id']) await conversation.write(event['conversation_id'])
        if (isOver || event.event === 'workflow_paused') break
      }
      isPaused = !isOver && now.forms.length > asked
      if (isPaused) await memo.write(now)
    } while (isPaused)
    if (!isOver && !result['outputs']) throw failed('The connection to Dify ended before its app did.')
    isOver = true
    yield say() || (now.text === '' ? JSON.stringify(result['outputs'] ?? '') : '')
    return { text: now.text, ...result }
  } catch (error) {
    throw error instanceof TypeError ? failed(`The connection to Dify failed: ${error.message}`, error) : error
  } finally {
    signal.removeEventListener('abort', leave)
    if (!isOver && !isPaused && now.task !== '') await stop()
    if (!isPaused) await memo.clear()
  }
}

/** Dify knows the earlier messages of a conversation. */
function textOf(query: Query = ''): string {
  const asked = typeof query === 'string' ? query : query.at(-1)!.content
  return typeof asked === 'string' ? asked : asked.map(({ text = '' }) => text).join('')
}

/** A form of Dify. Its buttons are the values of `action`. */
function toQuestion({ form_content, node_title, inputs = [], actions = [] }: Record<string, any>): Question {
  const fields = inputs.map((input: any) => [input.output_variable_name, { type: 'string' }])
  const titles = actions.map(({ id, title }: any) => `${id}: ${title}`).join(', ')
  const action = { type: 'string', enum: actions.map(({ id }: any) => id), description: titles }
  const schema = { type: 'object', properties: { ...Object.fromEntries(fields), action }, required: ['action'] }
  return { message: String(form_content ?? node_title), schema }
}
