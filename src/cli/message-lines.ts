/** A conversation for a terminal: who said what, a line for every call of a tool and for what it gave. */
import type { Message } from '../part/message.ts'

const longest = 500

export function formatMessage({ role, content }: Message): string[] {
  if (typeof content === 'string') return lines(role, content)
  return content.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return lines(role, part.text)
      case 'reasoning':
        return lines('thinks', part.text)
      case 'tool-call':
        return lines('calls', `${part.toolName} ${JSON.stringify(part.input)}`)
      case 'tool-result': {
        const { output } = part
        const value = output.type === 'execution-denied' ? `denied. ${output.reason ?? ''}` : output.value
        return lines(part.toolName, typeof value === 'string' ? value : JSON.stringify(value))
      }
      default:
        return lines(role, `(${part.type})`)
    }
  })
}

function lines(who: string, text: string): string[] {
  const shown = text.trim()
  if (shown === '') return []
  const cut = shown.length > longest ? `${shown.slice(0, longest)}… (${shown.length} characters)` : shown
  return cut.split('\n').map((line, i) => `${(i === 0 ? who : '').padEnd(10)}  ${line}`.trimEnd())
}
