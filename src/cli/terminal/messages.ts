/** Formats a conversation for a terminal, with a line for each tool call and each result. */
import type { Message } from '../../part/message.ts'

/** Maximum characters of one text, unless `--full` is given. */
export const shortened = 500

/** `longest`: maximum characters of one text; `who`: the label instead of the role. */
export function formatMessage({ role, content }: Message, longest = shortened, who: string = role): string[] {
  const lines = (name: string, text: string) => textLines(name, text, longest)
  if (typeof content === 'string') return lines(who, content)
  return content.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return lines(who, part.text)
      case 'reasoning':
        return lines('thinks', part.text)
      case 'tool-call':
        return lines('calls', `${part.toolName} ${JSON.stringify(part.input)}`)
      case 'tool-result': {
        const { output } = part
        const value = output.type === 'execution-denied' ? `denied. ${output.reason ?? ''}` : output.value
        return lines(part.toolName, typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
      }
      case 'file':
        return lines(who, `(${part.mediaType}${part.filename === undefined ? '' : ` ${part.filename}`})`)
      default:
        return lines(who, `(${part.type})`)
    }
  })
}

function textLines(who: string, text: string, longest: number): string[] {
  const shown = text.trim()
  if (shown === '') return []
  const cut = shown.length > longest ? `${shown.slice(0, longest)}… (${shown.length} characters)` : shown
  return cut.split('\n').map((line, i) => `${(i === 0 ? who : '').padEnd(10)}  ${line}`.trimEnd())
}
