/** A run and a conversation as Markdown, for people and models that read them as resources. Pure. Texts of agents are in neither. */
import { textOf, type RunView, type StepView } from '../../fold/run-view.ts'
import type { ErrorValue } from '../../part/error.ts'
import type { Message } from '../../part/message.ts'
import { errorText } from '../../wire/wire.ts'
import { fileUri, threadUri } from './content.ts'
import { filesOf, sizeOf } from './run-files.ts'
import { cutText, shownLine } from '../../part/shown-text.ts'

const mostSteps = 200
/** Characters of an answer or a conversation. */
const mostText = 1024 * 1024
/** Characters of a tool's arguments or result. */
const mostDetail = 1000

/** `threadId` of the view: as the caller names it. */
export function runMarkdown(view: RunView): string {
  const { runId, agent, threadId, status, startedAt, endedAt, error, text } = view
  const took = endedAt === undefined ? '' : `, ${seconds(endedAt - startedAt)}`
  const sections = [
    `# ${line(agent)}: ${line(runId)}`,
    `${status}, started ${new Date(startedAt).toISOString()}${took}, [thread](${threadUri(threadId)})`,
    ...(error === undefined ? [] : [`Error: ${errorLine(error)}`]),
    ...(text === '' ? [] : [`## Answer\n\n${cutText(text, mostText)}`]),
    ...section(
      'Files',
      filesOf(view.messages).map((file) => {
        const size = file.base64 === undefined ? '' : `, ${sizeOf(file)} bytes`
        return `- [${line(file.name)}](${file.url ?? fileUri(runId, file)}) ${line(file.mediaType)}${size}`
      }),
    ),
    ...section(
      'Open requests',
      view.requests.map((request) => {
        const { kind } = request
        const what = kind === 'input' ? line(request.message ?? 'a question') : `\`${line(request.toolName ?? '')}\``
        return `- ${kind} ${what}, until ${new Date(request.deadline).toISOString()}`
      }),
    ),
    ...section('Steps', stepRows(view.steps)),
    `## Usage\n\n${usageLine(view)}`,
  ]
  return `${sections.join('\n\n')}\n`
}

function stepRows(steps: readonly StepView[]): string[] {
  if (steps.length === 0) return []
  const rows = steps.slice(0, mostSteps).map(({ path, stepType, toolName, model, duration, error }) => {
    const what = toolName ?? model ?? ''
    const end = error === undefined ? '' : errorLine(error)
    const cells = [path.replace(/^main\//u, ''), stepType, what, duration === undefined ? '' : seconds(duration), end]
    return `| ${cells.map((cell) => line(cell).replaceAll('|', String.raw`\|`)).join(' | ')} |`
  })
  const rest = steps.length - rows.length
  const more = rest > 0 ? [`| and ${rest} more | | | | |`] : []
  return ['| step | type | tool or model | time | error |', '|---|---|---|---|---|', ...rows, ...more]
}

function usageLine({ usage, cost }: RunView): string {
  const { inputTokens, outputTokens, totalTokens } = usage
  const price = cost === undefined ? '' : `, ${cost} USD`
  return `${inputTokens ?? 0} input tokens, ${outputTokens ?? 0} output tokens, ${totalTokens ?? 0} in total${price}`
}

/** Oldest first. Of a long conversation the end, from a message on. */
export function threadMarkdown(threadId: string, messages: readonly Message[]): string {
  const texts: string[] = []
  let length = 0
  let isWhole = true
  for (const message of messages.toReversed()) {
    // What an agent is told is none of its caller's.
    const text = message.role === 'system' ? '' : messageText(message)
    if (text === '') continue
    length += text.length
    isWhole = length <= mostText || texts.length === 0
    if (!isWhole) break
    texts.push(cutText(text, mostText))
  }
  const sections = [`# Thread ${line(threadId)}`, ...(isWhole ? [] : ['(The earlier messages are left out.)'])]
  return `${sections.concat(texts.toReversed()).join('\n\n')}\n`
}

function messageText(message: Message): string {
  const said = textOf(message)
  const details = typeof message.content === 'string' ? [] : message.content.flatMap(detailOf)
  const body = [said, details.join('\n')].filter((text) => text !== '').join('\n\n')
  const who = { user: 'User', assistant: 'Assistant', tool: 'Tools', system: 'System' }[message.role]
  return body === '' ? '' : `## ${who}\n\n${body}`
}

function detailOf(part: Exclude<Message['content'], string>[number]): string[] {
  switch (part.type) {
    case 'tool-call':
      return [`- called \`${line(part.toolName)}\` with ${detail(part.input)}`]
    case 'tool-result': {
      const { output } = part
      if (output.type === 'execution-denied') return [`- \`${line(part.toolName)}\` was denied`]
      return [`- \`${line(part.toolName)}\` returned ${detail(output.value)}`]
    }
    case 'file':
      return [`- file ${line(part.filename ?? part.mediaType)}`]
    default:
      return []
  }
}

function detail(value: unknown): string {
  return shownLine(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''), mostDetail)
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`## ${title}\n\n${lines.join('\n')}`]
}

function errorLine(error: ErrorValue): string {
  return line(`${errorText(error)} (${error.code})`)
}

function line(text: string): string {
  return shownLine(text, 500)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
