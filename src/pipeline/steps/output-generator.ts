/** `output-generator`: a template over variables, or the JSON in a string. */
import { z } from 'zod'
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import { checkReferences, type StepContext } from '../reader.ts'
import { map, text } from '../scalars.ts'
import { toTemplate } from '../template.ts'
import type { Node } from '../tree.ts'

export const outputConfig = lazily(() =>
  map({
    template: z.unknown().optional().describe('Any value. References in it are replaced with their values.'),
    json: text
      .optional()
      .describe('A string to read JSON from, such as $answer.text. The JSON may be in a fenced code block.'),
  }),
)

export function readOutputGenerator(node: Node, { reader, place }: StepContext) {
  const { faults } = reader
  checkReferences(node, place, reader)
  const parsed = check(outputConfig(), node, faults, 'the config of an output-generator step')
  const template = child(node, 'template')
  if (parsed && (template === undefined) === (parsed.json === undefined)) {
    faults.add(node.at, 'an output-generator needs exactly one of "template" and "json" in its config')
  }
  if (parsed === undefined) return undefined
  const config = template ? { template: toTemplate(template) } : { json: parsed.json ?? '' }
  return { type: 'output-generator' as const, config }
}
