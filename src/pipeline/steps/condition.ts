/** `condition`: one of two lists of steps. */
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import { readExpression } from '../read-expression.ts'
import { enter, type StepContext } from '../reader.ts'
import { later, list, map, name } from '../scalars.ts'
import type { Node } from '../tree.ts'

export const noSteps = 'has no steps; add one: - { id: answer, type: llm }'
export const expressionWords = 'A comparison over variables, such as $draft.score < 5 and not $input.fast?'

export const conditionConfig = lazily(() =>
  map({
    if: name.describe(`${expressionWords}.`),
    // oxlint-disable-next-line unicorn/no-thenable -- the word of the language; no function, so nothing awaits it
    then: list(later('step')).min(1, noSteps).describe('Steps that run if the condition is true.'),
    else: list(later('step')).min(1, noSteps).optional().describe('Steps that run if the condition is false.'),
  }),
)

export function readCondition(node: Node, { reader, place, id }: StepContext) {
  const parsed = check(conditionConfig(), node, reader.faults, 'the config of a condition step')
  const condition = readExpression(child(node, 'if'), place, reader)
  const then = reader.readSteps(child(node, 'then'), id, enter(place))
  const otherwise = reader.readSteps(child(node, 'else'), id, enter(place))
  if (parsed === undefined || condition === undefined) return undefined
  // oxlint-disable-next-line unicorn/no-thenable -- a list
  return { type: 'condition' as const, config: { if: condition, then, else: otherwise } }
}
