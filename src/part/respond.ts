import type { ToolSpec } from './message.ts'

/**
 * The tool with which a `router` hands over to the step that answers. Its calls and results are in the log, but clients do
 * not see them as tool calls.
 */
export const respondTool = 'respond'

/** The `respond` tool's specification for a router's model. */
export const respondSpec = {
  name: respondTool,
  description:
    'Hands over to the step that answers the user, which sees the results of all tool calls. ' +
    'Call it as soon as nothing more has to be looked up or done.',
  inputSchema: {
    type: 'object',
    properties: {
      reason: { type: 'string', description: 'Why nothing more has to be done.' },
      notes: { type: 'string', description: 'What the answer should mind.' },
    },
  },
} satisfies ToolSpec

/** With `sticky`: the tool with which an agent that has taken over gives the conversation back. */
export const handBackTool = 'hand_back'
