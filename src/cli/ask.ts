/** Answers the requests of a run: from the terminal, with `--yes`, or not at all. */
import { createInterface } from 'node:readline/promises'
import type { CommandContext } from './context.ts'
import type { ClientAnswer } from '../client/client.ts'
import type { EntryOf } from '../part/entry.ts'
import { parseJson } from '../part/json.ts'
import { questionOf } from './answer-line.ts'
import { printable } from './printable.ts'
import { paint } from './style.ts'

type Request = EntryOf<'request'>

export interface Ask {
  /** False if this request cannot be answered here: the run then waits for an answer from elsewhere. */
  canAnswer(request: Request): boolean
  /** Called for one request at a time. Rejects when `signal` aborts or the terminal is closed. */
  answer(request: Request, signal: AbortSignal): Promise<ClientAnswer>
}

export interface AskOptions {
  /** Approve without asking. */
  yes?: boolean | undefined
  /** Without a terminal, leave approvals open instead of denying them. */
  leaves?: boolean
}

export function createAsk(context: CommandContext, { yes = false, leaves = false }: AskOptions = {}): Ask {
  const isThere = context.stdin.isTTY === true
  return {
    canAnswer: ({ kind }) => isThere || (kind === 'approval' && (yes || !leaves)),
    async answer(request, signal) {
      if (request.kind === 'approval' && yes) return { approved: true }
      if (isThere) return askOnTerminal(context, request, signal)
      return { approved: false, reason: 'not approved: no terminal to ask on' }
    },
  }
}

/** Rejects when `signal` aborts or the terminal is closed. */
async function askOnTerminal(context: CommandContext, request: Request, signal: AbortSignal): Promise<ClientAnswer> {
  const terminal = createInterface({ input: context.stdin, output: context.stderr })
  // Ctrl-C at the question stops the run.
  terminal.on('SIGINT', () => context.events.emit('SIGINT'))
  const ended = new AbortController()
  terminal.on('close', () => ended.abort())
  const ask = async (question: string) =>
    (
      await terminal.question(paint(context, 'bold', question, context.stderr), {
        signal: AbortSignal.any([signal, ended.signal]),
      })
    ).trim()
  try {
    if (request.kind === 'input') {
      return { value: jsonOrText(await ask(`${printable(questionOf(request))} Enter a value (JSON or text): `)) }
    }
    const { kind, toolName, input } = request
    // Model output must not be able to disguise itself with control characters.
    const what = printable(`${toolName} ${JSON.stringify(input)}`)
    if (kind === 'approval') return { approved: /^y(?:es)?$/iu.test(await ask(`Allow ${what}? [y/N] `)) }
    return { output: jsonOrText(await ask(`${what} runs in the client. Enter its result (JSON or text): `)) }
  } finally {
    terminal.close()
  }
}

/** The result of a tool as typed: JSON if it parses, else text. */
export function jsonOrText(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
