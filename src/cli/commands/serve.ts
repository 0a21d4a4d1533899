import { existsSync } from 'node:fs'
import { messageOf, MillraceError } from '../../part/error.ts'
import { parseEndpoint } from '../../server/project.ts'
import { serve } from '../../server/serve.ts'
import { refreshSchema } from '../editor-schema.ts'

export interface ServeFlags {
  port?: string
  host?: string
  data?: string
  endpoint: string[]
  logFiles?: boolean
  insecureNoAuth?: boolean
}

export async function serveCommand(dir: string, flags: ServeFlags): Promise<void> {
  const port = flags.port === undefined ? undefined : Number(flags.port)
  if (flags.port !== undefined && (!/^\d+$/u.test(flags.port) || port! > 65_535)) {
    throw new MillraceError('usage', `--port must be a number from 0 to 65535, not "${flags.port}".`)
  }
  if (!existsSync(dir)) {
    throw new MillraceError('usage', `There is no folder ${dir} of agents. millrace init makes one.`)
  }
  const { env } = process
  const apiKey = env['MILLRACE_API_KEY']
  const served = await serve({
    dir,
    port,
    host: flags.host,
    data: flags.data,
    logFiles: flags.logFiles,
    env,
    endpoints: flags.endpoint.map(parseEndpoint),
    log: (line) => process.stderr.write(`${line}\n`),
    ...(apiKey ? { apiKey } : undefined),
    ...(flags.insecureNoAuth ? { insecureNoAuth: true } : undefined),
  })
  const { url, project, recovered } = served
  await tellEditors(dir)
  for (const { message } of project.agents.errors) process.stderr.write(`${message}\n`)
  if (recovered.resumed + recovered.interrupted > 0) {
    process.stderr.write(
      `recovered: ${told(recovered.resumed, 'run goes', 'runs go')} on, ${told(recovered.interrupted, 'was', 'were')} interrupted\n`,
    )
  }

  // A second signal does not wait.
  let stopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(signal === 'SIGINT' ? 130 : 143)
      stopping = true
      void served.close().then(
        () => process.exit(0),
        () => process.exit(1),
      )
    })
  }

  // Last: whoever has read this may send a signal.
  process.stdout.write(`${welcome(url, project.agents.list())}\n`)
}

function told(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}

/** The config may name other tools than yesterday. A folder that cannot be written to is served all the same. */
async function tellEditors(dir: string): Promise<void> {
  try {
    const file = await refreshSchema(dir)
    if (file !== undefined) process.stderr.write(`${file}: brought up to date\n`)
  } catch (error) {
    process.stderr.write(`the schema for editors was not written: ${messageOf(error)}\n`)
  }
}

function welcome(
  url: string,
  agents: { id: string; pipeline: { metadata: { name?: string; description?: string } } }[],
) {
  const width = Math.max(...agents.map(({ id }) => id.length), 6)
  const lines = agents.map(({ id, pipeline: { metadata } }) => {
    const what = metadata.description ?? metadata.name ?? ''
    return `  ${id.padEnd(width)}  ${what}`.trimEnd()
  })
  const id = agents.some((agent) => agent.id === 'assistant') ? 'assistant' : (agents[0]?.id ?? 'assistant')
  const body = `'{"agentId": "${id}", "messages": [{"role": "user", "content": "What is 12*7?"}]}'`
  const json = `-H 'Content-Type: application/json'`
  return `Millrace is ready at ${url}

Agents
${lines.join('\n') || '  none yet: put a YAML file into the folder'}

Try it
  text        curl -N ${url}/api/beddel/chat ${json} -d ${body}
  AI SDK UI   curl -N ${url}/api/chat ${json} -d ${body}
  the log     curl ${url}/api/runs
`
}
