/** `millrace run`: one run, its answer on stdout as it comes, what happens beside it on stderr. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { messageOf, MillraceError, wholeMessage } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import { nearest } from '../../pipeline/nearest.ts'
import { formatFaults } from '../../pipeline/parse.ts'
import { unknownAgent } from '../../run/runtime-errors.ts'
import type { AgentFolder } from '../../server/agents-folder.ts'
import { openProject, parseEndpoint, readAgents } from '../../server/project.ts'
import { lockData } from '../../server/data-lock.ts'
import { loadConfig } from '../../server/load-config.ts'
import { settingsOf } from '../../server/settings.ts'
import { wires } from '../../wire/wires.ts'
import { askOnTerminal } from '../ask.ts'
import { agentFiles, checkAgents, checkData, initCure } from '../folders.ts'
import { followRun, type Ask } from '../follow-run.ts'
import { printable } from '../printable.ts'
import { onEnding, type Ending } from '../stop-signals.ts'

export interface RunFlags {
  message?: string
  input?: string
  format: keyof typeof wires
  dir: string
  data?: string
  endpoint: string[]
  yes?: boolean
}

export async function runCommand(agent: string, flags: RunFlags): Promise<void> {
  // No agent has a name with a slash in it.
  const isFile = /\.ya?ml$|[/\\]/u.test(agent)
  const dir = isFile ? dirname(agent) : flags.dir
  if (isFile && !(/\.ya?ml$/u.test(agent) && existsSync(agent))) throw noFile(agent, flags.dir)
  checkAgents(dir, 'run')
  const id = isFile ? basename(agent).replace(/\.ya?ml$/u, '') : agent
  const config = await loadConfig(dir)
  const { data: wanted, logFiles } = settingsOf(config, flags)
  if (flags.yes && wanted === 'none') {
    throw new MillraceError('usage', '--yes needs a log, in which a run waits for its answers: leave out --data none.')
  }
  checkData(wanted)
  const endpoints = flags.endpoint.map(parseEndpoint)
  // Looked at first: a misspelt agent leaves no folder behind.
  checkAgent(id, dir, await readAgents(dir, process.env, endpoints))
  const input = await readInput(flags)
  // The data folder of a running server is the server's: a run beside it is not recorded there.
  const shared = wanted === 'none' ? undefined : lockData(wanted, 'shared')
  const data = shared === undefined ? 'none' : wanted
  const { runtime } = await openProject({
    dir,
    config,
    data,
    logFiles,
    log: (line) => process.stderr.write(`${line}\n`),
    env: process.env,
    endpoints,
  })

  let ending: Ending | undefined
  let stop: (ending: Ending) => Promise<void> = async () => undefined
  onEnding((how) => {
    ending = how
    void stop(how).catch(() => undefined)
  })
  const ask = asks(flags, data)
  const run = await runtime.start(id, input, { protocol: 'cli', ...(ask ? undefined : { handOver: true }) })
  if (data === wanted) process.stderr.write(`run ${run.id}\n`)
  else {
    // Its id would lead nowhere.
    const what = 'this run is not recorded, and approvals are refused'
    const cure = 'POST /api/runs on the server records one, as does --data with another folder.'
    process.stderr.write(`${wanted} belongs to a running server: ${what}. ${cure}\n`)
  }
  stop = ({ reason }) => run.stop(reason)
  if (ending !== undefined) await stop(ending)
  const isLineOpen = await followRun(run, wires[flags.format], ask)
  const { outcome, error, usage } = await run.result
  if (isLineOpen) process.stdout.write('\n')
  // A run that sent nothing to a model has none.
  const isSilent = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0) === 0
  const tokens = `; ${usage.inputTokens ?? '?'} tokens in, ${usage.outputTokens ?? '?'} out (${usage.source})`
  const why = error === undefined ? '' : `: ${printable(wholeMessage(error)).replace(/\.+$/u, '')}`
  process.stderr.write(`${outcome}${why}${isSilent ? '' : tokens}\n`)
  await runtime.close()
  shared?.()
  const code = outcome === 'completed' ? 0 : (ending?.code ?? 1)
  // What a tool has left running must not keep the command alive; what was printed must be out.
  process.stdout.write('', () => process.exit(code))
}

/** Who answers the run's questions. Nobody where a suspended run has no log to wait in. */
function asks({ yes = false }: RunFlags, data: string): Ask | undefined {
  const isThere = process.stdin.isTTY === true
  if (data === 'none' || (!yes && !isThere)) return undefined
  return async (request, signal) => {
    if (yes && request.kind === 'approval') return { kind: 'approval', approved: true }
    if (isThere) return askOnTerminal(request, signal)
    return { kind: 'tool', output: 'Nobody is here who could run this tool.', isError: true }
  }
}

/** Throws when the folder has no such agent, or one with faults. */
function checkAgent(id: string, dir: string, agents: AgentFolder): void {
  const broken = agents.errors.find(({ file }) => file.replace(/\.ya?ml$/u, '') === id)
  if (broken !== undefined) {
    const { file, faults } = broken
    throw new MillraceError('bad-pipeline', `The agent has faults:\n${formatFaults(join(dir, file), faults)}`)
  }
  if (agents.get(id) !== undefined) return
  if (agents.list().length + agents.errors.length > 0) throw unknownAgent(id, agents)
  throw new MillraceError('usage', `There are no agents at ${dir} yet: ${initCure(dir)}.`)
}

function noFile(path: string, agents: string): MillraceError {
  const others = [...new Set([dirname(path), agents])].flatMap((dir) => agentFiles(dir).map((name) => join(dir, name)))
  const bare = basename(path).replace(/\.ya?ml$/u, '')
  const meant = others.find((each) => basename(each).replace(/\.ya?ml$/u, '') === bare) ?? nearest(path, others)
  return new MillraceError('usage', `There is no file ${path}${meant ? ` (did you mean "${meant}"?)` : ''}.`)
}

async function readInput({ message, input }: RunFlags): Promise<Record<string, unknown>> {
  if (input !== undefined) {
    let value: unknown
    try {
      value = parseJson(readFileSync(input, 'utf8'))
    } catch (error) {
      if (!existsSync(input)) throw new MillraceError('usage', `--input: there is no file ${input}.`)
      if (statSync(input).isDirectory()) throw new MillraceError('usage', `--input ${input} is a folder, not a file.`)
      throw new MillraceError('usage', `--input ${input}: ${messageOf(error)}`)
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new MillraceError('usage', `--input ${input} must hold a JSON object.`)
    }
    return { ...value, ...(message === undefined ? undefined : { messages: [{ role: 'user', content: message }] }) }
  }
  if (message === undefined && process.stdin.isTTY) {
    throw new MillraceError('usage', 'Say something: -m "text", --input file.json, or text on stdin.')
  }
  const content = message ?? (await text(process.stdin)).trim()
  if (content === '') throw new MillraceError('usage', 'The message is empty.')
  return { messages: [{ role: 'user', content }] }
}
