/** The body of `millrace mcp`: finds where the agents run, and puts stdin and stdout in front of it. */
import { once } from 'node:events'
import type { McpFlags } from '../commands/mcp.ts'
import type { AgentConnection } from '../connection.ts'
import { openAgents } from '../connection/agents.ts'
import { errorOf } from '../connection/server.ts'
import { leave, type CommandContext } from '../context.ts'
import { onEnding } from '../process-events.ts'
import { printable } from '../terminal/output.ts'
import { bridgeStdio } from './stdio-bridge.ts'

export async function serveStdio(context: CommandContext, { agent, server, ...given }: McpFlags): Promise<void> {
  // Before any code of a project is loaded.
  const stdout = ownStdout(context)
  const connection = await openAgents(context, { ...given, url: server, isServing: true }).catch((error: unknown) => {
    stdout.release()
    throw error
  })
  const { stderr } = context
  const note = (text: string) => void stderr.write(`${printable(text)}\n`)
  if (connection.notice !== undefined) note(connection.notice)
  const path = agent === undefined ? '/mcp' : `/mcp/${encodeURIComponent(agent)}`
  let code = 0
  try {
    await checkServes(connection, agent)
    const stopped = new Promise<void>((resolve) => {
      onEnding(context, (ending) => {
        code = ending.code
        resolve()
      })
    })
    const bridged = bridgeStdio({
      input: context.stdin,
      async write(line) {
        if (!stdout.write(`${line}\n`)) await once(context.stdout, 'drain')
      },
      post: (body, headers, signal) =>
        connection.fetch(path, {
          method: 'POST',
          body,
          signal,
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            ...headers,
          },
        }),
      async stop(run) {
        const response = await connection.fetch(`/api/runs/${encodeURIComponent(run)}/stop`, { method: 'POST' })
        if (!response.ok) note(`The run ${run} could not be stopped: ${response.status}.`)
      },
      note,
    })
    await Promise.race([bridged, stopped])
  } finally {
    await connection.close()
    stdout.release()
  }
  await leave(context, code)
}

/** stdout for messages alone: what other code of this process writes there goes to stderr, as `console` does. */
function ownStdout({ stdout, stderr, isAlone }: CommandContext) {
  const { write } = stdout
  if (isAlone) stdout.write = stderr.write.bind(stderr)
  return {
    write: (text: string) => write.call(stdout, text, 'utf8'),
    release: () => void (stdout.write = write),
  }
}

/** Throws before a client gets an answer that it cannot show. A hidden agent is not listed, but there. */
async function checkServes(connection: AgentConnection, agent: string | undefined): Promise<void> {
  if (agent === undefined) return
  const response = await connection.fetch(`/api/agents/${encodeURIComponent(agent)}`)
  if (!response.ok) throw await errorOf(response, agent)
}
