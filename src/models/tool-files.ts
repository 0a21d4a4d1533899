/**
 * Pictures, sounds and documents in the results of tools, as MCP servers and custom tools return them. A model gets them as files, never as base64
 * in a text: a picture of 1 MB would be a million meaningless characters.
 *
 * | in a result | to the model |
 * | --- | --- |
 * | `{ type: 'image' \| 'audio', data, mimeType }` (MCP), `{ type: 'file', data, mediaType }`, a picture of OpenAI's or Anthropic's form | a file |
 * | `{ type: 'resource', resource }` with text, with bytes | its text; a file |
 * | `{ type: 'resource_link' }` | a line with its name, type and address |
 * | all else | text, with a mark in place of each file |
 *
 * If a protocol does not support files in a tool's result, the file is sent in a user message after the results. A file that a protocol does not
 * support becomes a short note.
 */
import type { LanguageModelV4FilePart, LanguageModelV4Message, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider'
import { markOf, readResultFiles, type ResultFile } from '../fold/result-files.ts'
import type { EndpointProtocol } from './providers.ts'

type Prompt = LanguageModelV4Message[]
type Output = LanguageModelV4ToolResultOutput
type Content = Extract<Output, { type: 'content' }>

interface ExtractedFiles {
  text: string
  files: ResultFile[]
}

/** Converts the results of tools to the form of this protocol. */
export function placeToolFiles(prompt: Prompt, protocol: EndpointProtocol): Prompt {
  let isChanged = false
  const placed = prompt.flatMap((message): Prompt => {
    if (message.role !== 'tool') return [message]
    const behind: UserContent = []
    const content = message.content.map((part) => {
      if (part.type !== 'tool-result') return part
      const found = readOutput(part.output)
      if (found === undefined) return part
      isChanged = true
      const { output, rest } = place(found, protocol)
      if (rest.length > 0)
        behind.push({ type: 'text', text: `Files that the tool ${part.toolName} returned:` }, ...rest)
      return { ...part, output }
    })
    const placed = { ...message, content }
    return behind.length === 0 ? [placed] : [placed, { role: 'user', content: behind }]
  })
  return isChanged ? placed : prompt
}

type UserContent = Extract<LanguageModelV4Message, { role: 'user' }>['content']

function place(
  { text, files }: ExtractedFiles,
  protocol: EndpointProtocol,
): { output: Output; rest: LanguageModelV4FilePart[] } {
  const taken = files.filter((file) => takes(protocol, file))
  const lost = files.filter((file) => !takes(protocol, file))
  const notes = lost.map((file) => `${markOf(file, files)} is left out: this model does not take it.`)
  const said = [text, ...notes].filter((each) => each !== '').join('\n')
  if (taken.length === 0) return { output: { type: 'text', value: said }, rest: [] }
  const parts = taken.map(toFile)
  if (protocol === 'openai-chat') return { output: { type: 'text', value: said }, rest: parts }
  const value: Content['value'] = [{ type: 'text', text: said }, ...parts]
  return { output: { type: 'content', value }, rest: [] }
}

function toFile({ mediaType, data, isUrl, filename }: ResultFile): LanguageModelV4FilePart {
  const source = isUrl ? { type: 'url' as const, url: new URL(data) } : { type: 'data' as const, data }
  return { type: 'file', mediaType, data: source, ...(filename === undefined ? undefined : { filename }) }
}

/** The types that the servers accept, and the packages convert: in a tool's result, or in a message of the user. */
const taken: Record<EndpointProtocol, RegExp> = {
  anthropic: /^(?:image\/(?:png|jpeg|gif|webp)|application\/pdf)$/u,
  google: /^(?:image|audio|video)\/|^application\/pdf$/u,
  'openai-responses': /^(?:image\/(?:png|jpeg|gif|webp)|application\/pdf)$/u,
  'openai-chat': /^(?:image\/|audio\/(?:wav|x-wav|mp3|mpeg)$|application\/pdf$)/u,
}

function takes(protocol: EndpointProtocol, { mediaType, isUrl }: ResultFile): boolean {
  if (isUrl) return protocol !== 'google' && mediaType.startsWith('image/')
  return taken[protocol].test(mediaType)
}

/** For a model of another package: its provider determines the accepted types; all others accept files in a message of the user. */
export function protocolOf(provider: string): EndpointProtocol {
  if (/^anthropic\b|\.anthropic\b/u.test(provider)) return 'anthropic'
  if (/^(?:google|vertex)\b/u.test(provider)) return 'google'
  return provider.endsWith('.responses') ? 'openai-responses' : 'openai-chat'
}

/** Undefined for a result without files and resources: it stays unchanged. */
function readOutput(output: Output): ExtractedFiles | undefined {
  if (output.type !== 'json' && output.type !== 'error-json') return undefined
  const found = readResultFiles(output.value)
  if (found === undefined || output.type === 'json') return found
  return { ...found, text: `The tool failed: ${found.text}` }
}
