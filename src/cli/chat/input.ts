/**
 * The input of a chat: lines from a pipe, or from a terminal with a prompt, line editing and a history. A line is a message or a slash
 * command.
 */
import type { CommandContext } from '../context.ts'
import { createInterface } from 'node:readline'
import { MillraceError } from '../../part/error.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { AgentList } from '../connection.ts'
import { formatTable } from '../terminal/table.ts'

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

/** The slash commands of a chat. */
const commands = {
  '/new': 'Start a new conversation',
  '/agents': 'List the agents',
  '/agent <name>': 'Chat with another agent, in a new conversation',
  '/file <path>': 'Attach a file to the next message',
  '/help': 'Show this list',
  '/exit': 'Exit (also Ctrl-D, or Ctrl-C on an empty line)',
} as const

const names = Object.keys(commands).map((usage) => usage.split(' ')[0]!)

export type ChatCommand =
  | { type: 'message'; text: string }
  | { type: 'new' | 'agents' | 'help' | 'exit' }
  | { type: 'agent' | 'file'; value: string }

/** Throws `usage` for an unknown command. `//` starts a message that begins with a slash. */
export function parseChatCommand(line: string): ChatCommand {
  const text = line.trim()
  if (!text.startsWith('/')) return { type: 'message', text }
  if (text.startsWith('//')) return { type: 'message', text: text.slice(1) }
  const [, name = '', value = ''] = /^(\S+)\s*(.*)$/su.exec(text) ?? []
  switch (name) {
    case '/new':
    case '/agents':
    case '/help':
    case '/exit':
      return { type: name.slice(1) as 'new' }
    case '/quit':
      return { type: 'exit' }
    case '/agent':
    case '/file':
      if (value !== '') return { type: name.slice(1) as 'agent', value }
      throw new MillraceError(
        'usage',
        name === '/agent' ? 'Which agent? /agents lists them.' : 'Which file? Usage: /file <path>',
      )
    default:
      throw new MillraceError(
        'usage',
        `There is no command ${name}${didYouMean(name, names)}. /help lists the commands; start a message with // to send a slash.`,
      )
  }
}

export function chatHelp(): string {
  return formatTable(['COMMAND', 'DESCRIPTION'], Object.entries(commands))
}

/** The agents, with a star at the current one. */
export function agentTable(agents: AgentList['agents'], current: string): string {
  const rows = agents.map(({ id, name, description, aliases = [] }) => {
    const isCurrent = [id, ...aliases].includes(current)
    return [isCurrent ? '*' : '', id, description ?? name ?? '']
  })
  return formatTable(['', 'AGENT', 'DESCRIPTION'], rows)
}

/** Tab completions of a line. */
export function completeChatCommand(line: string, agents: readonly string[]): string[] {
  const words = [...names, ...agents.map((id) => `/agent ${id}`)]
  return line.startsWith('/') ? words.filter((word) => word.startsWith(line)) : []
}
