/** An agent as a tool: an item `{ agent: id }` of the `tools` of an `llm` or `router` step. */
import { z } from 'zod'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { child } from '../check.ts'
import { lazily } from '../lazily.ts'
import { agentToolName } from '../names.ts'
import type { AgentToolUse } from '../pipeline.ts'
import { references } from '../reference.ts'
import { flag, isMap, map, nameOf, name, prompt, timeLimit } from '../scalars.ts'
import { budget } from '../schema.ts'
import { toTemplate } from '../template.ts'
import type { Node } from '../tree.ts'
import { approval, inline } from './tool-settings.ts'

const toolNameWords = 'must have 1 to 64 letters, digits, "_" or "-", as providers require of a tool'

export const agentTool = lazily(() =>
  map({
    agent: nameOf('agents')
      .refine((value) => references(value).length === 0, 'must be the id of an agent, not a reference')
      .describe('Id of an agent that the model may call. Its answer is the result of the call.'),
    as: name
      .regex(/^[A-Za-z0-9_-]{1,64}$/u, toolNameWords)
      .optional()
      .describe('Name of the tool. Default: the id of the agent; transfer_to_<id> with handoff.'),
    description: prompt
      .optional()
      .describe('When to call it, for the model: a string or { file: path }. Default: the description of the agent.'),
    input: z
      .unknown()
      .refine(isMap, 'must be a map: name → value')
      .optional()
      .describe('Inputs of the agent that this file sets: the model does not see them.'),
    history: flag
      .optional()
      .describe('true: the agent gets the conversation so far. Default: only the message of the call.'),
    clientTools: flag
      .optional()
      .describe('true: the agent may also call the tools that a client sends with its request.'),
    handoff: flag
      .optional()
      .describe('true: the agent takes over. It gets the conversation, and its answer is the answer of this step.'),
    recursive: flag.optional().describe('true: the agent may lead back to this one. The file needs a budget.'),
    approval,
    inline,
    budget: budget.optional().describe('Limits of each call, in addition to those of the agent.'),
    timeouts: map({ run: timeLimit().optional().describe('Time for one call.') })
      .optional()
      .describe('Time limits of each call, in addition to those of the agent.'),
  }),
)

/** `use`: the item as the schema has read it. */
export function readAgentTool({ as, ...use }: z.infer<ReturnType<typeof agentTool>>, item: Node): AgentToolUse {
  const input = child(item, 'input')
  return omitUndefined({
    ...use,
    name: as ?? agentToolName(use.agent, use.handoff),
    input: input && (toTemplate(input) as Record<string, unknown>),
  })
}
