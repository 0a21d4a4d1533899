/** Consent to continue a run that was recorded elsewhere: shows which programs its recording would start here, and asks. */
import { createInterface } from 'node:readline/promises'
import type { ClientConsent } from '../../client/client.ts'
import { MillraceError } from '../../part/error.ts'
import { openConnection, type ConnectionFlags, recordingOf } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { printable, paint } from '../terminal/output.ts'

export interface ConsentFlags extends ConnectionFlags {
  /** Go on without a question. */
  trust?: boolean
}

/** The part of a recording that counts: up to the entry at which the run continues. */
export interface RecordedPart {
  run: string
  before?: number
  /** It continues as this agent, so its own pipeline does not count. */
  agent?: string | undefined
}

export type WithConsent = <T>(act: (consent: ClientConsent) => Promise<T>) => Promise<T>

/** Calls `act`; if that is refused because the run is foreign, asks at the terminal and calls it again with consent. */
export function createConsent(
  context: CommandContext,
  { trust = false, ...where }: ConsentFlags,
  recorded: RecordedPart,
): WithConsent {
  let isTrusted = trust
  return async (act) => {
    try {
      return await act(isTrusted ? { trust: true } : {})
    } catch (error) {
      if (isTrusted || !(error instanceof MillraceError) || error.code !== 'foreign-run') throw error
      await agree(context, recorded.run, {
        title: 'If it goes on, its recording sets to work here:',
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
  /** Above the lines. */
  title: string
  lines: readonly string[]
  question: string
  /** Without a terminal. */
  cure: string
}

/** Resolves when somebody at the terminal has agreed. Throws `usage` otherwise. */
export async function agree(
  context: CommandContext,
  run: string,
  { title, lines, question, cure }: Question,
): Promise<void> {
  const { stdin, stderr } = context
  const shown = lines.length === 0 ? ['  nothing but models'] : lines.map((line) => `  ${line}`)
  // Nothing of a recording must be able to disguise itself with control characters.
  for (const line of [`${run} was recorded elsewhere. ${title}`, ...shown]) stderr.write(`${printable(line)}\n`)
  if (stdin.isTTY === true && (await confirm(context, `${question} [y/N] `))) return
  const message = `${run} was recorded elsewhere, and nobody has agreed. Look at it with: millrace show ${run}. Then ${cure}.`
  throw new MillraceError('usage', message)
}

async function confirm(context: CommandContext, question: string): Promise<boolean> {
  const terminal = createInterface({ input: context.stdin, output: context.stderr })
  const ended = new AbortController()
  terminal.on('SIGINT', () => ended.abort()).on('close', () => ended.abort())
  try {
    const reply = await terminal.question(paint(context, 'bold', question, context.stderr), { signal: ended.signal })
    return /^y(?:es)?$/iu.test(reply.trim())
  } catch {
    return false
  } finally {
    terminal.close()
  }
}

/** The programs that the texts in a recording may start. */
async function foreignPrograms(
  context: CommandContext,
  where: ConnectionFlags,
  { run, before = Infinity, agent }: RecordedPart,
): Promise<string[]> {
  const connection = await openConnection(context, where)
  try {
    const { readPrograms } = await import('../../runtime/foreign-programs.ts')
    const log = { read: (_: string, options = {}) => recordingOf(connection, run).read(options) }
    return await readPrograms(log, run, { before, ownText: agent === undefined })
  } finally {
    await connection.close()
  }
}
