/** Questions that a run asks, put to whoever sits at the terminal. They are asked one after the other. */
import { createInterface } from 'node:readline/promises'
import type { EntryOf } from '../part/entry.ts'
import { parseJson } from '../part/json.ts'
import type { Answer } from '../part/part.ts'
import { printable } from './printable.ts'
import { paint } from './style.ts'

/** Resolves with the answer; rejects when `signal` aborts, or when the terminal is gone. */
export async function askOnTerminal(request: EntryOf<'request'>, signal: AbortSignal): Promise<Answer> {
  const { kind, toolName, input } = request
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
    if (kind === 'approval') return { kind, approved: /^y(?:es)?$/iu.test(await ask(`Allow ${what}? [y/N] `)) }
    const text = await ask(`${what} runs in the client. What does it give? (JSON or text) `)
    return { kind, output: parsed(text) }
  } finally {
    terminal.close()
  }
}

function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
