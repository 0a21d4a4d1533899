/** `millrace fork`: a new run that shares the log of another up to an entry and runs on. */
import { dirname } from 'node:path'
import { leave, type CommandContext } from '../context.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { messagesOf } from '../../part/message.ts'
import { createForkPlaces, type ForkPlace } from '../../fold/fork-places.ts'
import { openConnection, type ConnectionFlags, findRun, recordingOf } from '../connection.ts'
import { nameAgent } from '../paths.ts'
import { createAsk } from './requests.ts'
import { openAgents } from '../connection/agents.ts'
import { createConsent } from './consent.ts'
import { readObject } from './input.ts'
import { namedWire } from '../commands/options.ts'
import { printable, forStream } from '../terminal/output.ts'
import { reportRun, followStarted } from './follow.ts'
import { formatTable } from '../terminal/table.ts'
import type { ForkFlags } from '../commands/fork.ts'

export async function forkRun(context: CommandContext, text: string, flags: ForkFlags): Promise<void> {
  const source = await readSource(context, text, flags)
  if (flags.list === true) return printPlaces(context, source.places, flags.json === true)
  if (flags.at === undefined || !/^\d+$/u.test(flags.at)) {
    const what = flags.at === undefined ? 'Where? Pass --at <seq>.' : `--at must be a whole number, not "${flags.at}".`
    throw new MillraceError('usage', `${what} See the places with: millrace fork ${source.id} --list`)
  }
  const at = Number(flags.at)
  const wire = await namedWire(context, flags.format, flags.dir)
  const agent = flags.agent === undefined ? undefined : nameAgent(context, flags.agent, flags.dir)
  const dir = agent?.file === undefined ? flags.dir : dirname(agent.file)
  const input = inputOf(context, source.input, flags)
  const connection = await openAgents(
    context,
    { ...flags, dir, isAnyServer: agent?.file === undefined },
    agent?.file !== undefined,
  )
  if (connection.notice !== undefined) {
    await connection.close()
    throw new MillraceError(
      'usage',
      `${connection.notice.replace(/\. Running.*$/u, '')}: it cannot go on as ${flags.agent}.`,
    )
  }
  const { stdout, stderr } = context
  if (flags.detach === true && connection.url === undefined) {
    await connection.close()
    throw new MillraceError('usage', '--detach needs a server: without one the fork ends with this command.')
  }
  const withConsent = createConsent(context, flags, { run: source.id, before: at + 1, agent: flags.agent })
  const begin = async () => {
    const options = { at, ...omitUndefined({ input, agentId: agent?.id }) }
    const { id } = await withConsent((consent) => connection.client.fork(source.id, { ...options, ...consent }))
    const out = flags.detach === true ? stdout : stderr
    out.write(printable(flags.detach === true ? `${id}\n` : `run ${id}\n`))
    return id
  }
  try {
    if (flags.detach === true) return void (await begin())
    const result = await followStarted(
      context,
      connection,
      { wire, ask: createAsk(context, { leaves: true, url: connection.url }), after: at },
      begin,
    )
    const code = reportRun(context, { ...result, where: connection.flags })
    await connection.close()
    await leave(context, code)
  } finally {
    await connection.close()
  }
}

interface Source {
  id: string
  input: Record<string, unknown>
  places: readonly ForkPlace[]
}

async function readSource(context: CommandContext, text: string, where: ConnectionFlags): Promise<Source> {
  const connection = await openConnection(context, where)
  try {
    const { id } = await findRun(connection, text)
    const places = createForkPlaces()
    let input: Record<string, unknown> = {}
    const types = ['run-start', 'resume', 'step-start', 'step-finish'] as const
    for await (const batch of recordingOf(connection, id).read({ types })) {
      for (const entry of batch) {
        places.apply(entry)
        if (entry.type === 'run-start' || entry.type === 'resume') input = { ...input, ...entry.input }
      }
    }
    return { id, input, places: places.list }
  } finally {
    await connection.close()
  }
}

function printPlaces(context: CommandContext, places: readonly ForkPlace[], json: boolean): void {
  const { stdout } = context
  if (json) return void stdout.write(forStream(`${JSON.stringify(places, null, 2)}\n`, stdout))
  const rows = places.map(({ seq, step, kind = '', toolName, error }) => [
    String(seq),
    step === '' ? '(start)' : step,
    toolName === undefined ? kind : `${kind} ${toolName}`,
    error === undefined ? '' : `failed: ${error}`,
  ])
  stdout.write(`${formatTable(['AT', 'BEHIND', 'KIND', ''], rows)}\n`)
}

/** With `-m` the last message of the user is another one. */
function inputOf(
  context: CommandContext,
  before: Record<string, unknown>,
  { message, input }: ForkFlags,
): Record<string, unknown> | undefined {
  const given = input === undefined ? undefined : readObject(context, input)
  if (message === undefined) return given
  if (message === '') throw new MillraceError('usage', 'The message is empty.')
  const said = messagesOf({ ...before, ...given })
  const last = said.findLastIndex(({ role }) => role === 'user')
  const earlier = last < 0 ? said : said.slice(0, last)
  return { ...given, messages: [...earlier, { role: 'user', content: message }] }
}
