/** Who answers what a run asks: whoever sits at the terminal, the flag `--yes`, or nobody. */
import { createInterface } from 'node:readline/promises'
import type { ClientAnswer } from '../client/client.ts'
import type { EntryOf } from '../part/entry.ts'
import { parseJson } from '../part/json.ts'
import { printable } from './printable.ts'
import { paint } from './style.ts'

type Request = EntryOf<'request'>

export interface Ask {
  /** Whether there is anybody for this request; else the run waits for an answer from elsewhere. */
  canAnswer(request: Request): boolean
  /** Called for one request at a time. Rejects when `signal` aborts, or when the terminal is gone. */
  answer(request: Request, signal: AbortSignal): Promise<ClientAnswer>
}

export interface AskOptions {
  /** Approvals are given unasked. */
  yes?: boolean | undefined
  /** Approvals are left open where nobody can be asked, instead of refused. The result of a tool cannot be made up. */
  leaves?: boolean
}

export function createAsk({ yes = false, leaves = false }: AskOptions = {}): Ask {
  const isThere = process.stdin.isTTY === true
  return {
    canAnswer: ({ kind }) => isThere || (kind === 'approval' && (yes || !leaves)),
    async answer(request, signal) {
      if (request.kind === 'approval' && yes) return { approved: true }
      if (isThere) return askOnTerminal(request, signal)
      return { approved: false, reason: 'nobody is at a terminal who could be asked' }
    },
  }
}

/** Rejects when `signal` aborts, or when the terminal is gone. */
async function askOnTerminal({ kind, toolName, input }: Request, signal: AbortSignal): Promise<ClientAnswer> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  // Ctrl-C at the question means the run.
  terminal.on('SIGINT', () => process.emit('SIGINT'))
  const ended = new AbortController()
  terminal.on('close', () => ended.abort())
  const ask = async (question: string) =>
    (
      await terminal.question(paint('bold', question, process.stderr), {
        signal: AbortSignal.any([signal, ended.signal]),
      })
    ).trim()
  try {
    // What a model wants done must not be able to look like something else.
    const what = printable(`${toolName} ${JSON.stringify(input)}`)
    if (kind === 'approval') return { approved: /^y(?:es)?$/iu.test(await ask(`Allow ${what}? [y/N] `)) }
    return { output: jsonOrText(await ask(`${what} runs in the client. What does it return? (JSON or text) `)) }
  } finally {
    terminal.close()
  }
}

/** What stands on a command line as the output of a tool. */
export function jsonOrText(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
