/** A command in the process of the tests, with a terminal: what it shows, and a keyboard. */
import { resolve } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { started } from './cli.ts'
import { createContext } from './command-context.ts'
import { createWatched } from './watched.ts'

interface TerminalOptions {
  cwd: string
  env?: Record<string, string>
  columns?: number
}

export function onTerminal(args: string[], { cwd, env = {}, columns = 80 }: TerminalOptions) {
  const watched = createWatched()
  let isRaw = false
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode(raw: boolean) {
      isRaw = raw
      return stdin
    },
  })
  const screen = Object.assign(
    new Writable({
      decodeStrings: false,
      write(chunk: string | Buffer, _, done) {
        // As the terminal does.
        watched.add('out', chunk.toString().replaceAll(/\r?\n/gu, '\r\n'))
        done()
      },
    }),
    { isTTY: true, columns, rows: 24, hasColors: () => true },
  )
  const { PATH, HOME } = process.env
  const context = createContext({
    cwd: resolve(cwd),
    env: { PATH, HOME, TERM: 'xterm', MILLRACE_DEMO_DELAY_MS: '0', ...env },
    stdin,
    stdout: screen,
    stderr: screen,
  })
  const { exit } = started(args, context, watched.end)
  onTestFinished(async () => {
    if (watched.hasEnded) return
    context.events.emit('SIGHUP')
    stdin.end()
    await exit
  })
  return {
    exit,
    get shown() {
      return watched.text('out')
    },
    until: watched.until,
    /** Ctrl-C is a signal, unless the command reads each key by itself. */
    type(keys: string): void {
      if (keys === '\u0003' && !isRaw) context.events.emit('SIGINT')
      else stdin.write(keys)
    },
  }
}

/** An agent with a tool that needs approval and one that runs in the client. */
export const askingAgent = `workflow:
  - id: answer
    type: llm
    config:
      model: "demo:assistant"
      stream: true
      tools:
        - { name: calculator, approval: true }
        - { name: askUser, client: true, parameters: { question: string } }
`
