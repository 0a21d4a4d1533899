/** `loop`: runs steps once per item of a list, or while a condition is true. */
import { z } from 'zod'
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import type { LoopConfig } from '../pipeline.ts'
import { readExpression } from '../read-expression.ts'
import { checkReferences, checkUserName, enter, resultsOf, type StepScope, type StepContext } from '../reader.ts'
import { wholeReference } from '../reference.ts'
import { scalar } from '../shape.ts'
import { shapeOfTemplate } from '../step-shape.ts'
import { integer, later, list, map, name, preset } from '../scalars.ts'
import { resultName } from '../schema.ts'
import { toTemplate } from '../template.ts'
import type { Node } from '../tree.ts'
import { expressionWords, noSteps } from './condition.ts'

const overWords = 'must be a reference to a list, such as $input.topics, or a list'

export const loopConfig = lazily(() =>
  map({
    over: z
      .union([name.refine((value) => wholeReference(value) !== undefined, overWords), z.array(z.unknown())], overWords)
      .optional()
      .describe('The list to iterate over: a reference or a list. Use either "over" or "while".'),
    while: name.optional().describe(`${expressionWords}. Checked before every round. Use either "while" or "over".`),
    max: preset(
      integer(1, 1000),
      10,
      'Maximum number of rounds. A longer list in "over" is an error; "while" stops after this many.',
    ),
    as: resultName
      .default('item')
      .describe('Name of the variable for the current item. $index is the number of the round, from 0.'),
    steps: list(later('step')).min(1, noSteps).describe('Steps of each round.'),
  }),
)

export function readLoop(node: Node, { reader, place, id }: StepContext) {
  const { faults } = reader
  const parsed = check(loopConfig(), node, faults, 'the config of a loop step')
  const [over, condition, steps, as] = ['over', 'while', 'steps', 'as'].map((key) => child(node, key))
  if ((over === undefined) === (condition === undefined)) {
    faults.add(node.at, 'a loop needs exactly one of "over" and "while" in its config')
  }
  if (as && condition) faults.add(as.at, '"as" works only with "over"; remove it')
  if (over) checkReferences(over, place, reader)
  checkUserName(as, 'as', reader)

  const item = as?.kind === 'scalar' ? as.text : 'item'
  const names = over ? [item, 'index'] : ['index']
  checkHidden(names, as ?? node, place, faults)
  if (item === 'index' && as) faults.add(as.at, '"as" cannot be "index", which counts the rounds; choose another name')
  const list = over && shapeOfTemplate(over, place, reader)
  const items = list?.kind === 'list' ? list.items : undefined
  const inner = enter(place, {
    loopNames: new Map([...place.loopNames, ...(over ? [[item, items] as const] : []), ['index', scalar.number]]),
    rounds: new Set([...place.rounds, ...resultsOf(steps)]),
  })
  const holds = condition && readExpression(condition, { ...inner, results: new Map(place.results) }, reader)
  const body = reader.readSteps(steps, id, inner)
  if (parsed === undefined || (condition && holds === undefined)) return undefined
  const config: LoopConfig = { max: parsed.max, as: item, steps: body }
  if (over) config.over = toTemplate(over)
  if (holds) config.while = holds
  return { type: 'loop' as const, config }
}

function checkHidden(names: string[], at: Node, place: StepScope, faults: StepContext['reader']['faults']): void {
  for (const name of names) {
    if (place.results.has(name)) {
      faults.add(at.at, `the loop's $${name} would hide the result "${name}"; rename that result${asHint(name)}`)
    } else if (name !== 'index' && place.loopNames.has(name)) {
      faults.add(at.at, `$${name} already belongs to the surrounding loop; choose another name with "as"`)
    }
  }
}

function asHint(name: string): string {
  return name === 'index' ? '' : ' or choose another name with "as"'
}
