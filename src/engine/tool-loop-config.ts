/** The config of an `llm` or `router` step with its references resolved. */
import { compact } from '../part/compact.ts'
import { MillraceError } from '../part/error.ts'
import type { ToolLoopConfig } from '../pipeline/llm-config.ts'
import { toMessages, toolItems } from './input.ts'

export function offersTools(
  { tools, toolSources = [], clientTools = [] }: ToolLoopConfig,
  fromClient: unknown,
): boolean {
  return tools.length + toolSources.length + clientTools.length + (toolItems(fromClient) ?? []).length > 0
}

/** A model name from a request must not open the log of another client's run. */
function ownModel(written: string, model: string): string {
  if (model === written || !/^\s*recording\s*:/u.test(model)) return model
  throw new MillraceError('bad-input', 'Only the agent file can name a recording. A reference cannot.', {
    status: 400,
  })
}

export function resolveToolLoop<C extends ToolLoopConfig>(config: C, at: <T>(value: T) => T) {
  const { system, messages, model, providerOptions, headers } = config
  return {
    ...config,
    messages: toMessages(at(messages), 'messages'),
    ...compact({
      system: system === undefined ? undefined : String(at(system)),
      model: model === undefined ? undefined : ownModel(model, String(at(model))),
      providerOptions: at(providerOptions),
      headers: at(headers),
    }),
  }
}
