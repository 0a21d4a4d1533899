/** `millrace import`: the output of a CLI agent, or a log of Millrace, becomes a run in the data folder, or on a server. */
import type { CommandContext } from '../context.ts'
import type { Usage } from '../../part/usage.ts'
import { MillraceError, fromErrorValue } from '../../part/error.ts'
import type { KeptView } from '../../part/log.ts'
import type { CliName } from '../../ingest/cli-names.ts'
import { secretValues } from '../../project/secrets.ts'
import { encodeEntries } from '../../store/encode.ts'
import { openConnection, type ImportResult, type RunImporter } from '../connection.ts'
import { printable } from '../terminal/output.ts'
import { openSource, readSource } from './source.ts'
import { createHash } from 'node:crypto'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Entry } from '../../part/entry.ts'
import { createCliReader } from '../../ingest/cli-parser.ts'
import { toEvent } from '../../ingest/event.ts'
import { parsePipeline } from '../../pipeline/parse.ts'
import type { Processes } from '../../processes/processes.ts'
import { agentSource } from '../../project/create-runtime.ts'
import { createRegistry } from '../../project/registry.ts'
import { createRuntime } from '../../runtime/create-runtime.ts'
import { memoryStore } from '../../store/memory-store.ts'
import type { ImportFlags } from '../commands/import.ts'

const usage = 'Pass a file with the output of a CLI agent, or with a log of Millrace.'

export async function importFile(
  context: CommandContext,
  file: string,
  { from, message, ...where }: ImportFlags,
): Promise<void> {
  const connection = await openConnection(context, where)
  try {
    const importer = await connection.importer()
    const { isNew, ...run } = await importSource(context, importer, file, { from, message })
    const entries = `${run.agent}, ${run.lastSeq} entries, ${run.status}`
    context.stderr.write(printable(`${isNew ? 'imported' : 'imported before'}: ${entries}\n`))
    context.stdout.write(`${printable(run.id)}\n`)
  } finally {
    await connection.close()
  }
}

async function importSource(
  context: CommandContext,
  importer: RunImporter,
  file: string,
  { from, message }: Pick<ImportFlags, 'from' | 'message'>,
): Promise<ImportResult> {
  const source = openSource(context, file, usage)
  const chunks: Uint8Array[] = []
  let format = from
  for await (const { format: result, chunk } of readSource(source, from)) {
    format = result
    chunks.push(chunk)
  }
  if (format === undefined || chunks.every(({ length }) => length === 0))
    throw new MillraceError('unknown-format', `${source.name} is empty.`)
  return format === 'ndjson'
    ? importer.import(chunks, source.name)
    : importTranscript(context, importer, { cli: format, bytes: Buffer.concat(chunks), message }, source.name)
}

/**
 * The id is a hash of the bytes: a run with this id is the same transcript. Its entries may differ, because lines without times get those of
 * the first import.
 */
async function importTranscript(
  context: CommandContext,
  importer: RunImporter,
  transcript: Transcript,
  name: string,
): Promise<ImportResult> {
  const { row, used } = await importer.find(importIdOf(transcript), transcript.cli === 'codex')
  if (row !== undefined) return { ...row, isNew: false }
  const { id, entries } = await importCli(context, {
    ...transcript,
    usedBefore: used && ((session) => used.get(session)),
  })
  return importer.import([Buffer.from(`${encodeEntries(id, entries)}\n`)], name)
}

interface TranscriptRun {
  id: string
  entries: Entry[]
  view?: KeptView | undefined
}

interface Transcript {
  cli: CliName
  bytes: Buffer
  /** The prompt, if the output does not repeat it. */
  message?: string | undefined
  /** Usage of a session before this transcript, summed over the recorded runs. */
  usedBefore?: ((sessionId: string) => Usage | undefined) | undefined
}

/** The same transcript is the same run, also where its lines have no times. */
function importIdOf({ cli, bytes }: Pick<Transcript, 'cli' | 'bytes'>): string {
  return `run_${createHash('sha256').update(`${cli}\n`).update(bytes).digest('hex').slice(0, 32)}`
}

/**
 * The output of a CLI agent as a run: the engine runs an agent with one `cli-agent` step whose program is the transcript. So the log is the
 * one that the live run would have written, with the times of the transcript. Throws `session-file` for a file that only looks like output.
 */
async function importCli(context: CommandContext, transcript: Transcript): Promise<TranscriptRun> {
  const { cli, message, usedBefore } = transcript
  const { prompt = message, startedAt = Date.now() } = lookAhead(transcript)
  const id = importIdOf(transcript)
  let time = startedAt
  const clock = { wall: () => time, steady: () => time }
  const store = memoryStore()
  const registry = createRegistry({}, {})
  const processes = playing(transcript.bytes, (now) => (time = Math.max(time, now)))
  const runtime = createRuntime({
    agents: agentSource([{ id: cli, pipeline: parsePipeline(pipelineOf(cli, prompt !== undefined)) }]),
    registry: { ...registry, processes, answerChars: Number.MAX_SAFE_INTEGER, ...omitUndefined({ usedBefore }) },
    store,
    clock,
    newRunId: () => id,
    secrets: secretValues({}, context.env),
  })
  try {
    const messages = prompt === undefined ? [] : [{ role: 'user', content: prompt }]
    const run = await runtime.start(cli, { messages }, { protocol: 'import' })
    await run.result
    const entries: Entry[] = []
    for await (const batch of store.log.read(id)) for (const entry of batch) entries.push(entry)
    return { id, entries, view: await store.runs.view(id) }
  } finally {
    await runtime.close(0)
  }
}

/** The prompt and the start time, which the run needs before it begins. */
function lookAhead({ cli, bytes }: Transcript): { prompt?: string; startedAt?: number } {
  const found: { prompt?: string; startedAt?: number } = {}
  const reader = createCliReader(cli, {
    onPart: () => undefined,
    onTime: (time) => (found.startedAt ??= time),
  })
  reader.feed(bytes)
  reader.end()
  if (reader.refusal !== undefined) throw fromErrorValue(reader.refusal)
  if (reader.prompt !== undefined) found.prompt = reader.prompt
  return found
}

/** Output seldom repeats its prompt, and is a run without it as well. */
function pipelineOf(cli: CliName, hasPrompt: boolean): string {
  const prompt = hasPrompt ? '$input.messages' : '(The prompt is not in the output.)'
  return `metadata: { name: ${cli}, description: "Imported" }
timeouts: { run: none }
workflow:
  - id: ${cli}
    type: cli-agent
    config: { cli: ${cli}, prompt: "${prompt}", timeouts: { idle: none } }
`
}

const feed = 0x0a

/** Programs that write the transcript, line by line, each at its time, and exit. */
function playing(bytes: Buffer, tick: (time: number) => void): Processes {
  return {
    async start({ onOutput }) {
      async function play(): Promise<void> {
        for (let at = 0; at < bytes.length;) {
          const end = bytes.indexOf(feed, at)
          const line = bytes.subarray(at, end < 0 ? bytes.length : end + 1)
          at += line.length
          const time = timeOf(line)
          if (time !== undefined) tick(time)
          await onOutput('stdout', line)
        }
      }
      return { exit: play().then(() => ({ code: 0, signal: null })), stop: () => undefined }
    },
    close: async () => undefined,
  }
}

function timeOf(line: Buffer): number | undefined {
  if (!line.includes('"timestamp"')) return undefined
  const text = toEvent(line.toString('utf8'))?.['timestamp']
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return time > 0 ? time : undefined
}
