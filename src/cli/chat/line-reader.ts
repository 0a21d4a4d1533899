/** Reads lines from a pipe, or from a terminal with a prompt, line editing and a history. */
import type { CommandContext } from '../context.ts'
import { createInterface } from 'node:readline'

/** `end`: end of input. `leave`: Ctrl-C on an empty line. */
export type Line = { type: 'line'; text: string } | { type: 'end' } | { type: 'leave' }

export interface LineReader {
  read(): Promise<Line>
  close(): void
}

export interface LineReaderOptions {
  prompt: () => string
  /** Completions of a line. */
  complete: (line: string) => string[]
}

export function createLineReader(context: CommandContext, options: LineReaderOptions): LineReader {
  return context.stdin.isTTY ? createTerminalReader(context, options) : createPipeReader(context)
}

/**
 * Opens a new readline interface for each line. Between lines nothing reads the keyboard: Ctrl-C is a signal, questions of
 * a run can read it, and text typed early is not echoed into an answer.
 */
function createTerminalReader(context: CommandContext, { prompt, complete }: LineReaderOptions): LineReader {
  let history: string[] = []
  let rest = ''
  const pasted: string[] = []

  function read(): Promise<Line> {
    const next = pasted.shift()
    if (next !== undefined) return Promise.resolve({ type: 'line', text: next })
    const terminal = createInterface({
      input: context.stdin,
      output: context.stderr,
      prompt: prompt(),
      history,
      historySize: 200,
      removeHistoryDuplicates: true,
      completer: (line: string) => [complete(line), line],
    })
    const { promise, resolve } = Promise.withResolvers<Line>()
    terminal.on('history', (lines) => (history = [...lines]))
    terminal.on('line', (text) => {
      pasted.push(text)
      // Pasted lines arrive one after the other, before any other event.
      queueMicrotask(() => resolve({ type: 'line', text: pasted[0]! }))
    })
    terminal.on('SIGINT', () => {
      if (terminal.line === '') return resolve({ type: 'leave' })
      terminal.write(null, { ctrl: true, name: 'e' })
      terminal.write(null, { ctrl: true, name: 'u' })
    })
    terminal.on('close', () => resolve({ type: 'end' }))
    terminal.prompt()
    terminal.write(rest)
    return promise.then((line) => {
      if (line.type === 'line') pasted.shift()
      rest = line.type === 'line' ? terminal.line : ''
      terminal.close()
      if (line.type !== 'line') context.stderr.write('\n')
      return line
    })
  }
  return { read, close: () => undefined }
}

function createPipeReader(context: CommandContext): LineReader {
  const terminal = createInterface({ input: context.stdin, terminal: false })
  const lines = terminal[Symbol.asyncIterator]()
  return {
    async read() {
      const { done, value } = await lines.next()
      return done ? { type: 'end' } : { type: 'line', text: value }
    },
    close: () => terminal.close(),
  }
}
