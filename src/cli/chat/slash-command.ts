/** What begins with a slash in a chat. */
import { MillraceError } from '../../part/error.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { AgentList } from '../served-agents.ts'
import { formatTable } from '../table.ts'

const commands = {
  '/new': 'begin a new conversation',
  '/agents': 'list the agents',
  '/agent <name>': 'talk to another agent, in a new conversation',
  '/file <path>': 'send a file with the next message',
  '/help': 'show this list',
  '/exit': 'leave (also Ctrl-D, or Ctrl-C on an empty line)',
} as const

const names = Object.keys(commands).map((usage) => usage.split(' ')[0]!)

export type Said =
  | { type: 'message'; text: string }
  | { type: 'new' | 'agents' | 'help' | 'exit' }
  | { type: 'agent' | 'file'; value: string }

/** Throws `usage` for an unknown command. A message that begins with a slash begins with two. */
export function parseSaid(line: string): Said {
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
      throw new MillraceError('usage', name === '/agent' ? 'Name an agent; /agents lists them.' : 'Name a file.')
    default:
      throw new MillraceError(
        'usage',
        `There is no command ${name}${didYouMean(name, names)}. /help lists them; // begins a message with a slash.`,
      )
  }
}

export function chatHelp(): string {
  return formatTable(['COMMAND', 'DOES'], Object.entries(commands))
}

/** The agents that one may talk to; the current one has a star. */
export function agentTable(agents: AgentList['agents'], current: string): string {
  const rows = agents.map(({ id, name, description, aliases = [] }) => {
    const isCurrent = [id, ...aliases].includes(current)
    return [isCurrent ? '*' : '', id, description ?? name ?? '']
  })
  return formatTable(['', 'AGENT', 'DESCRIPTION'], rows)
}

/** What a line may become with Tab. */
export function completeSaid(line: string, agents: readonly string[]): string[] {
  const words = [...names, ...agents.map((id) => `/agent ${id}`)]
  return line.startsWith('/') ? words.filter((word) => word.startsWith(line)) : []
}
