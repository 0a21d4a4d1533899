/** What the reading of OpenAI's responses depends on besides the stream: all of it follows from the call's options. */
import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { createToolNameMapping } from '@ai-sdk/provider-utils'
import type { RequestFacts } from '../decoder.ts'

export interface ResponsesFacts {
  /** The key of the provider's metadata: `openai` or `azure`. */
  metadataKey: string
  /** The server keeps reasoning, so its text ends without the encrypted form. */
  isStored: boolean
  wantsLogprobs: boolean
  functionNames: ReadonlySet<string>
  toCustomToolName(name: string): string
  webSearchName: string | undefined
  /** A hosted shell runs its commands itself. */
  isShellHosted: boolean
  /** Ids of calls by the id of the approval that MCP tools asked for in earlier turns. */
  approvedCalls: Record<string, string>
  request: RequestFacts
  generateId: () => string
}

/** Names of the tools that OpenAI runs or defines, by the AI SDK's ids of them. */
const providerToolNames = {
  'openai.code_interpreter': 'code_interpreter',
  'openai.computer': 'computer',
  'openai.file_search': 'file_search',
  'openai.image_generation': 'image_generation',
  'openai.local_shell': 'local_shell',
  'openai.shell': 'shell',
  'openai.web_search': 'web_search',
  'openai.web_search_preview': 'web_search_preview',
  'openai.mcp': 'mcp',
  'openai.apply_patch': 'apply_patch',
  'openai.tool_search': 'tool_search',
  'openai.programmatic_tool_calling': 'programmatic_tool_calling',
}

type FromCall = Omit<ResponsesFacts, 'request' | 'generateId'>

/** `provider`: of the model, `openai.responses`. */
export function factsOfResponses(provider: string, call: LanguageModelV4CallOptions): FromCall {
  const { tools = [], providerOptions, prompt } = call
  const metadataKey = provider.includes('azure') ? 'azure' : 'openai'
  const options = providerOptions?.[metadataKey] ?? providerOptions?.['openai']
  const provided = tools.filter((tool) => tool.type === 'provider')
  const search = provided.find(({ id }) => id === 'openai.web_search' || id === 'openai.web_search_preview')
  const shell = provided.find(({ id }) => id === 'openai.shell')?.args['environment'] as { type?: string } | undefined
  return {
    metadataKey,
    isStored: options?.['store'] === true,
    // Unlike all others, this one is not looked up under `openai` for another provider.
    wantsLogprobs: Boolean(providerOptions?.[metadataKey]?.['logprobs']),
    functionNames: new Set(tools.filter(({ type }) => type === 'function').map(({ name }) => name)),
    toCustomToolName: createToolNameMapping({ tools, providerToolNames }).toCustomToolName,
    webSearchName: search?.name,
    isShellHosted: shell?.type === 'containerAuto' || shell?.type === 'containerReference',
    approvedCalls: approvedCallsIn(prompt),
  }
}

function approvedCallsIn(prompt: LanguageModelV4Prompt): Record<string, string> {
  const calls: Record<string, string> = {}
  for (const message of prompt) {
    if (message.role !== 'assistant') continue
    for (const part of message.content) {
      if (part.type !== 'tool-call') continue
      const id = part.providerOptions?.['openai']?.['approvalRequestId'] as string | null | undefined
      if (id !== null && id !== undefined) calls[id] = part.toolCallId
    }
  }
  return calls
}
