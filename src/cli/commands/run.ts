/** `millrace run`: one run, its answer on stdout as it comes, what happens beside it on stderr. */
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { text } from 'node:stream/consumers'
import { messageOf, MillraceError } from '../../part/error.ts'
import { openProject, parseEndpoint } from '../../server/project.ts'
import { lockData } from '../../server/data-lock.ts'
import { wires } from '../../wire/wires.ts'

export interface RunFlags {
  message?: string
  input?: string
  format: 'text' | 'ui' | 'parts'
  dir: string
  data: string
  endpoint: string[]
}

export async function runCommand(agent: string, flags: RunFlags): Promise<void> {
  const isFile = /\.ya?ml$/u.test(agent)
  const dir = isFile ? dirname(agent) : flags.dir
  if (isFile && !existsSync(agent)) throw new MillraceError('usage', `There is no file ${agent}.`)
  const id = isFile ? basename(agent).replace(/\.ya?ml$/u, '') : agent
  const input = await readInput(flags)
  // The data folder of a running server is the server's: a run beside it is not recorded there.
  const shared = flags.data === 'none' ? undefined : lockData(flags.data, 'shared')
  const data = shared === undefined ? 'none' : flags.data
  if (data !== flags.data) process.stderr.write(`${flags.data} belongs to a running server: this run is not recorded\n`)
  const { runtime, agents } = await openProject({
    dir,
    data,
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
    process.stderr.write('stopping … (Ctrl-C again to kill)\n')
    void stop().catch(() => undefined)
  })
  const run = await runtime.start(id, input, { protocol: 'cli', handOver: true })
  process.stderr.write(`run ${run.id}\n`)
  stop = () => run.stop('Stopped with Ctrl-C.')
  if (interrupted) await stop()
  const encoder = wires[flags.format].createEncoder()
  for await (const entry of run.parts) {
    const out = encoder.encode(entry)
    if (out !== '' && !process.stdout.write(out)) await new Promise((resolve) => process.stdout.once('drain', resolve))
  }
  const { outcome, error, usage } = await run.result
  if (flags.format === 'text') process.stdout.write('\n')
  const tokens = `${usage.inputTokens ?? '?'} tokens in, ${usage.outputTokens ?? '?'} out (${usage.source})`
  process.stderr.write(`${outcome}${error === undefined ? '' : `: ${error.message}`}; ${tokens}\n`)
  await runtime.close()
  shared?.()
  const code = outcome === 'completed' ? 0 : interrupted ? 130 : 1
  // What a tool has left running must not keep the command alive; what was printed must be out.
  process.stdout.write('', () => process.exit(code))
}

async function readInput({ message, input }: RunFlags): Promise<Record<string, unknown>> {
  if (input !== undefined) {
    let value: unknown
    try {
      value = JSON.parse(readFileSync(input, 'utf8'))
    } catch (error) {
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
