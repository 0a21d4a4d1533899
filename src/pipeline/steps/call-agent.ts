/** `call-agent`: runs another agent's pipeline with its own variables. */
import { z } from 'zod'
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import { checkAgent } from '../names.ts'
import type { CallAgentConfig } from '../pipeline.ts'
import { checkReferences, type StepContext } from '../reader.ts'
import { references, wholeReference } from '../reference.ts'
import { flag, map, nameOf } from '../scalars.ts'
import { isMapOrReference, toTemplate } from '../template.ts'
import type { Node } from '../tree.ts'
import { streamInLoop } from './llm.ts'

export const callAgentConfig = lazily(() =>
  map({
    agent: nameOf('agents')
      .refine(
        (value) => references(value).length === 0 || wholeReference(value) !== undefined,
        'must be an id or a single reference',
      )
      .describe('Id of the agent, or a reference to an id.'),
    input: z
      .unknown()
      .refine(isMapOrReference, 'must be a map, or a reference to one')
      .optional()
      .describe('The $input of the called agent: a map, or a reference to one. Default: the $input of this run.'),
    stream: flag
      .optional()
      .describe('true: the answer of the called agent is the answer. Default: true if the call is the last step.'),
  }),
)

export function readCallAgent(node: Node, { reader, place }: StepContext) {
  checkReferences(node, place, reader)
  const parsed = check(callAgentConfig(), node, reader.faults, 'the config of a call-agent step')
  checkAgent(child(node, 'agent'), reader.known, reader.faults)
  const stream = child(node, 'stream')
  if (parsed?.stream && stream && place.loopNames.has('index')) reader.faults.add(stream.at, streamInLoop)
  if (parsed === undefined) return undefined
  const input = child(node, 'input')
  const config: CallAgentConfig = { agent: parsed.agent }
  if (input) config.input = toTemplate(input)
  if (parsed.stream !== undefined) config.stream = parsed.stream
  return { type: 'call-agent' as const, config }
}
