/** Serves a folder of agents until a signal, and prints how to reach it. */
import type { CommandContext } from '../context.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { parseEndpoint } from '../../project/project.ts'
import { serve, type ServeOptions, type Served } from '../../server/serve.ts'
import { checkAgents, checkData, initCure } from '../paths.ts'
import { printable } from '../terminal/output.ts'
import { widthOf } from '../terminal/table.ts'
import { startReporting, stoppingLine, type Note } from './log.ts'
import { keepOptimizedCode, boundYoungGeneration } from './heap.ts'
import { listedAgents } from '../../runtime/runtime-errors.ts'
import { formatLimit } from '../../part/limits.ts'
import type { Store } from '../../part/log.ts'
import { policyOf, sayPolicy, type UpkeepConfig } from '../../record/policy.ts'
import { defaultTimeouts, msOf, type DefaultTimeouts } from '../../engine/limits.ts'
import type { ServeFlags } from '../commands/serve.ts'

export async function serveAgents(context: CommandContext, dir: string, flags: ServeFlags): Promise<void> {
  if (context.isAlone) {
    boundYoungGeneration()
    keepOptimizedCode()
  }
  const port = flags.port === undefined ? undefined : Number(flags.port)
  if (flags.port !== undefined && (!/^\d+$/u.test(flags.port) || port! > 65_535)) {
    throw new MillraceError('usage', `--port must be a number from 0 to 65535, not "${flags.port}".`)
  }
  checkAgents(context, dir, 'serve')
  if (flags.data !== undefined) checkData(context, flags.data)
  const { env } = context
  const apiKey = env['MILLRACE_API_KEY']
  const { report, guard, note } = startReporting(context, flags)
  const served = await start({
    dir: context.path(dir),
    cwd: context.path('.'),
    port,
    host: flags.host,
    data: flags.data,
    store: flags.store,
    logFiles: flags.logFiles,
    env,
    endpoints: flags.endpoint.map(parseEndpoint),
    report,
    guard,
    ...(flags.debug ? { debug: (line: string) => note(line) } : undefined),
    ...(apiKey ? { apiKey } : undefined),
    ...(flags.insecureNoAuth ? { insecureNoAuth: true } : undefined),
  })
  const { project, recovered } = served
  if (flags.store?.includes('@') === true)
    note('everybody on this machine can see the URL of --store: pass it as MILLRACE_STORE', 'warn')
  for (const { message } of project.agents.errors) for (const line of message.split('\n')) note(line, 'error')
  if (recovered.resumed + recovered.interrupted > 0) {
    note(
      `recovered after a restart: ${counted(recovered.resumed, 'run', 'runs')} resumed, ${recovered.interrupted} marked as interrupted`,
    )
  }

  // A second signal exits at once. A closed terminal stops the server.
  const stopped = Promise.withResolvers<number>()
  let stopping = false
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const) {
    context.events.on(signal, () => {
      if (stopping) context.exit(code)
      stopping = true
      note(stoppingLine(signal, project))
      void served.close().then(
        () => stopped.resolve(0),
        () => stopped.resolve(1),
      )
    })
  }

  // After the signals: a reader of this line may send one.
  if (flags.json)
    report({ level: 'info', event: 'ready', message: `Millrace is ready at ${served.url}`, url: served.url })
  else if (!flags.quiet) context.stdout.write(`${await welcome(context, dir, served, apiKey)}\n`)
  setImmediate(() => void afterStart(context, dir, note))
  context.exit(await stopped.promise)
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}

/**
 * Work that delays no request. Loads Node's `fetch`, which the first request needs. Updates the schema: the config may have
 * changed. A read-only folder is only a warning.
 */
async function afterStart(context: CommandContext, dir: string, note: Note): Promise<void> {
  Response.json({})
  try {
    const { refreshSchema } = await import('../editor-schema.ts')
    const file = await refreshSchema(context, dir)
    if (file !== undefined) note(`${file}: updated`)
  } catch (error) {
    note(`could not update the JSON Schema for editors: ${messageOf(error)}`, 'warn')
  }
}

/** Explains why the server cannot listen. */
async function start(options: ServeOptions): Promise<Served> {
  try {
    return await serve(options)
  } catch (error) {
    const {
      code = '',
      syscall,
      address,
      hostname,
      port,
      message,
    } = error as NodeJS.ErrnoException & {
      address?: string
      hostname?: string
      port?: number
    }
    if (syscall !== 'listen' && syscall !== 'getaddrinfo') throw error
    const why = new Map([
      ['EACCES', 'no permission for this port; try one above 1023'],
      ['EADDRNOTAVAIL', 'this machine does not have that address'],
      ['ENOTFOUND', 'host not found'],
    ])
    const place = port === undefined ? (address ?? hostname) : `${address}:${port}`
    throw new MillraceError('listen', `Cannot listen on ${place}: ${why.get(code) ?? message}.`, { cause: error })
  }
}

async function welcome(
  context: CommandContext,
  dir: string,
  { url, editToken, project }: Served,
  apiKey: string | undefined,
): Promise<string> {
  const agents = listedAgents(project.agents)
  const width = Math.max(...agents.map(({ id }) => widthOf(id)), 6)
  const lines = agents.map(({ id, pipeline: { metadata } }) => {
    const what = metadata.description ?? metadata.name ?? ''
    return printable(`  ${id}${' '.repeat(width - widthOf(id))}  ${what}`.trimEnd())
  })
  const none = project.agents.errors.length > 0 ? 'none without errors' : `none yet. ${initCure(context, dir)}.`
  const key = apiKey ? ` -H "Authorization: Bearer $MILLRACE_API_KEY"` : ''
  const tries = [`list runs   curl${key} ${url}/api/runs`]
  const id = agents.some((agent) => agent.id === 'assistant') ? 'assistant' : agents[0]?.id
  if (id !== undefined) {
    const post = (path: string, fields = `"agentId": "${id}"`, messageId = '') => {
      const body = `'{${fields}, "messages": [{${messageId}"role": "user", "content": "What is 12*7?"}]}'`
      return `curl -N${key} ${url}${path} -H 'Content-Type: application/json' -d ${body}`
    }
    const openai = post('/v1/chat/completions', `"model": "${id}"`)
    const agUi = post(`/ag-ui/${encodeURIComponent(id)}`, '"threadId": "t1", "runId": "r1"', '"id": "m1", ')
    tries.unshift(
      `text        ${post('/api/beddel/chat')}`,
      `AI SDK UI   ${post('/api/chat')}`,
      `OpenAI      ${openai}`,
      `AG-UI       ${agUi}`,
    )
  }
  return `Millrace is ready at ${url}
${editToken === undefined ? '' : `${editLine(context, url, editToken)}\n`}
Agents
${lines.join('\n') || `  ${none}`}

Time limits
  ${limitsLine(project.config.timeouts)} (change them with "timeouts" in an agent or the config)

Retention
  ${retentionLine(project.config.record, project.runtime.store)} (change it with "record" in the config)

Try it
${tries.map((line) => `  ${line}`).join('\n')}
`
}

/** Output that is not a terminal may be a log that others read: it gets no token. */
function editLine(context: CommandContext, url: string, token: string): string {
  const where = context.stdout.isTTY
    ? `${url}/agents#edit=${token}`
    : `${url}/agents#edit=<token>, with "token" of server.json in the data folder`
  return `Edit agents at ${where}`
}

/** The default time limits, in one line. */
function limitsLine(set: DefaultTimeouts = {}): string {
  const { firstToken, idle, run } = { ...defaultTimeouts, ...set }
  const name = (limit: typeof firstToken | undefined) => {
    const ms = limit === undefined ? undefined : msOf(limit)
    return ms === undefined ? 'none' : formatLimit(ms)
  }
  return `first token ${name(firstToken)}, idle ${name(idle)}, run ${name(run)}`
}

/** How long runs are kept, in one line. */
function retentionLine(
  record: UpkeepConfig & { data?: string; archive?: string } = {},
  { durable, fleet: { shared } }: Pick<Store, 'durable' | 'fleet'>,
): string {
  if (!durable) return 'runs are in memory only: the last 100 that have ended, until the server stops'
  return sayPolicy(policyOf(record, { shared }), record.archive !== undefined)
}
