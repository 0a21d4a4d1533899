/** The slash commands of a chat. */
import { MillraceError } from '../../part/error.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { AgentList } from '../connection.ts'
import { formatTable } from '../table.ts'

const commands = {
  '/new': 'Start a new conversation',
  '/agents': 'List the agents',
  '/agent <name>': 'Chat with another agent, in a new conversation',
  '/file <path>': 'Attach a file to the next message',
  '/help': 'Show this list',
  '/exit': 'Exit (also Ctrl-D, or Ctrl-C on an empty line)',
} as const

const names = Object.keys(commands).map((usage) => usage.split(' ')[0]!)

export type Said =
  | { type: 'message'; text: string }
  | { type: 'new' | 'agents' | 'help' | 'exit' }
  | { type: 'agent' | 'file'; value: string }

/** Throws `usage` for an unknown command. `//` starts a message that begins with a slash. */
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
export function completeSaid(line: string, agents: readonly string[]): string[] {
  const words = [...names, ...agents.map((id) => `/agent ${id}`)]
  return line.startsWith('/') ? words.filter((word) => word.startsWith(line)) : []
}
