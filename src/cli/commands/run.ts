/** `millrace run`: one run, its answer on stdout as it comes, what happens beside it on stderr. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { text } from 'node:stream/consumers'
import { messageOf, MillraceError, wholeMessage } from '../../part/error.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { openProject, parseEndpoint } from '../../server/project.ts'
import { lockData } from '../../server/data-lock.ts'
import { loadConfig } from '../../server/load-config.ts'
import { settingsOf } from '../../server/settings.ts'
import { wires } from '../../wire/wires.ts'
import { askOnTerminal } from '../ask.ts'
import { followRun, type Ask } from '../follow-run.ts'

export interface RunFlags {
  message?: string
  input?: string
  format: 'text' | 'ui' | 'parts'
  dir: string
  data?: string
  endpoint: string[]
  yes?: boolean
}

export async function runCommand(agent: string, flags: RunFlags): Promise<void> {
  const isFile = /\.ya?ml$/u.test(agent)
  const dir = isFile ? dirname(agent) : flags.dir
  if (isFile && !existsSync(agent)) throw noFile(agent)
  if (!existsSync(dir)) {
    const cure = 'millrace init makes one; --dir names another.'
    throw new MillraceError('usage', `There is no folder ${dir} of agents. ${cure}`)
  }
  const id = isFile ? basename(agent).replace(/\.ya?ml$/u, '') : agent
  const config = await loadConfig(dir)
  const { data: wanted, logFiles } = settingsOf(config, flags)
  if (flags.yes && wanted === 'none') {
    throw new MillraceError('usage', '--yes needs a log, in which a run waits for its answers: leave out --data none.')
  }
  const input = await readInput(flags)
  // The data folder of a running server is the server's: a run beside it is not recorded there.
  const shared = wanted === 'none' ? undefined : lockData(wanted, 'shared')
  const data = shared === undefined ? 'none' : wanted
  const { runtime, agents } = await openProject({
    dir,
    config,
    data,
    logFiles,
    log: (line) => process.stderr.write(`${line}\n`),
    env: process.env,
    endpoints: flags.endpoint.map(parseEndpoint),
  })
  const broken = agents.errors.find(({ file }) => file.replace(/\.ya?ml$/u, '') === id)
  if (broken !== undefined) throw new MillraceError('bad-pipeline', `The agent has faults:\n${broken.message}`)

  let interrupted = false
  let stop = async (): Promise<void> => undefined
  process.on('SIGINT', () => {
    if (interrupted) process.exit(130)
    interrupted = true
    process.stderr.write('\nstopping … (Ctrl-C again to kill)\n')
    void stop().catch(() => undefined)
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
  stop = () => run.stop('Stopped with Ctrl-C.')
  if (interrupted) await stop()
  await followRun(run, wires[flags.format], ask)
  const { outcome, error, usage } = await run.result
  if (flags.format === 'text') process.stdout.write('\n')
  // A run that sent nothing to a model has none.
  const isSilent = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0) === 0
  const tokens = `; ${usage.inputTokens ?? '?'} tokens in, ${usage.outputTokens ?? '?'} out (${usage.source})`
  const why = error === undefined ? '' : `: ${wholeMessage(error).replace(/\.+$/u, '')}`
  process.stderr.write(`${outcome}${why}${isSilent ? '' : tokens}\n`)
  await runtime.close()
  shared?.()
  const code = outcome === 'completed' ? 0 : interrupted ? 130 : 1
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

function noFile(path: string): MillraceError {
  const dir = dirname(path)
  const others = existsSync(dir) ? readdirSync(dir).filter((name) => /\.ya?ml$/u.test(name)) : []
  return new MillraceError('usage', `There is no file ${path}${didYouMean(basename(path), others)}.`)
}

async function readInput({ message, input }: RunFlags): Promise<Record<string, unknown>> {
  if (input !== undefined) {
    let value: unknown
    try {
      value = JSON.parse(readFileSync(input, 'utf8'))
    } catch (error) {
      if (!existsSync(input)) throw new MillraceError('usage', `--input: there is no file ${input}.`)
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
