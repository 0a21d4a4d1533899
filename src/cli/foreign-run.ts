/** A run that was recorded elsewhere goes on: shows what its recording would set to work here, and asks whether it may. */
import { createInterface } from 'node:readline/promises'
import type { ClientConsent } from '../client/client.ts'
import type { Entry } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { accessRecording } from './access-recording.ts'
import { openAccess, type Where } from './access.ts'
import type { CommandContext } from './context.ts'
import { printable } from './printable.ts'
import { paint } from './style.ts'

export interface ConsentFlags extends Where {
  /** Go on without a question. */
  trust?: boolean
}

/** What the recording says, up to the entry at which the run goes on. */
export interface Recorded {
  run: string
  before?: number
  /** It goes on as this agent, so that its own text does not count. */
  agent?: string | undefined
}

export type WithConsent = <T>(act: (consent: ClientConsent) => Promise<T>) => Promise<T>

/** Acts, and, if the run is a foreign one, once more when whoever sits at the terminal has agreed. */
export function createConsent(
  context: CommandContext,
  { trust = false, ...where }: ConsentFlags,
  recorded: Recorded,
): WithConsent {
  let isTrusted = trust
  return async (act) => {
    try {
      return await act(isTrusted ? { trust: true } : {})
    } catch (error) {
      if (isTrusted || !(error instanceof MillraceError) || error.code !== 'foreign-run') throw error
      await agree(context, recorded.run, {
        says: 'If it goes on, its recording sets to work here:',
        lines: await foreignPrograms(context, where, recorded),
        question: 'Let it go on?',
        cure: 'pass --trust, or go on as an agent of yours with --agent',
      })
    }
    isTrusted = true
    return act({ trust: true })
  }
}

export interface Question {
  /** What stands above the lines. */
  says: string
  lines: readonly string[]
  question: string
  /** For who has no terminal. */
  cure: string
}

/** Resolves when somebody at the terminal has agreed. Throws `usage` otherwise. */
export async function agree(
  context: CommandContext,
  run: string,
  { says, lines, question, cure }: Question,
): Promise<void> {
  const { stdin, stderr } = context
  const shown = lines.length === 0 ? ['  nothing but models'] : lines.map((line) => `  ${line}`)
  // Nothing of a recording must be able to disguise itself with control characters.
  for (const line of [`${run} was recorded elsewhere. ${says}`, ...shown]) stderr.write(`${printable(line)}\n`)
  if (stdin.isTTY === true && (await confirm(context, `${question} [y/N] `))) return
  const message = `${run} was recorded elsewhere, and nobody has agreed. Look at it with: millrace show ${run}. Then ${cure}.`
  throw new MillraceError('usage', message)
}

async function confirm(context: CommandContext, question: string): Promise<boolean> {
  const terminal = createInterface({ input: context.stdin, output: context.stderr })
  const ended = new AbortController()
  terminal.on('SIGINT', () => ended.abort()).on('close', () => ended.abort())
  try {
    const said = await terminal.question(paint(context, 'bold', question, context.stderr), { signal: ended.signal })
    return /^y(?:es)?$/iu.test(said.trim())
  } catch {
    return false
  } finally {
    terminal.close()
  }
}

/** What the texts in the recording of a run may set to work. */
async function foreignPrograms(
  context: CommandContext,
  where: Where,
  { run, before = Infinity, agent }: Recorded,
): Promise<string[]> {
  const access = await openAccess(context, where)
  try {
    const types = ['run-start', 'resume', 'step-start', 'tool-call', 'tool-result'] as const
    const entries: Entry[] = []
    for await (const batch of accessRecording(access, run).read({ types, before })) entries.push(...batch)
    return await programsIn(entries, { ownText: agent === undefined })
  } finally {
    await access.close()
  }
}

/** `ownText`: also those of the run itself, not only of the agents that it has called. */
export async function programsIn(entries: readonly Entry[], { ownText }: { ownText: boolean }): Promise<string[]> {
  let own: string | undefined
  const called = new Map<string, string>()
  const calls = new Map<string, string>()
  for (const entry of entries) {
    if (entry.type === 'tool-call') calls.set(entry.toolCallId, `${entry.toolName} with ${shortened(entry.input)}`)
    else if (entry.type === 'tool-result') calls.delete(entry.toolCallId)
    if (entry.type === 'run-start' || entry.type === 'resume') own = entry.pipeline ?? own
    else if (entry.type === 'step-start' && entry.pipeline !== undefined) called.set(entry.step, entry.pipeline)
  }
  const texts: [where: string, text: string][] = ownText && own !== undefined ? [['', own]] : []
  for (const [step, text] of called) texts.push([`agent called by ${step}, `, text])
  const { readStored } = await import('../engine/stored-pipeline.ts')
  const { programsOf } = await import('../pipeline/programs.ts')
  const programs = texts.flatMap(([where, text]) => {
    const pipeline = readStored(text)
    if (pipeline === undefined) return [`${where}a text that this version cannot read`]
    return programsOf(pipeline).map((line) => where + line)
  })
  return [...programs, ...[...calls.values()].map((call) => `a call of the recording that has no result yet: ${call}`)]
}

function shortened(text: string): string {
  return text.length > 2000 ? `${text.slice(0, 2000)}…` : text
}
