/** `memory`: recalls earlier runs of the thread, and stores facts for later ones. */
import { z } from 'zod'
import { check, child } from '../check.ts'
import { lazily } from '../lazily.ts'
import type { MemoryConfig } from '../pipeline.ts'
import { checkReferences, type StepContext } from '../reader.ts'
import { integer, map, oneOf, preset, text } from '../scalars.ts'
import { toTemplate } from '../template.ts'
import type { Node } from '../tree.ts'

export const memoryConfig = lazily(() =>
  map({
    action: oneOf(['recall', 'store']).describe(
      'recall: read earlier runs of the thread. store: keep facts for later ones.',
    ),
    query: text.optional().describe('For recall: the search text. Default: the last user message.'),
    limit: preset(integer(1, 100), 5, 'For recall: maximum number of facts, and of earlier turns.'),
    facts: z
      .unknown()
      .optional()
      .describe('For store: a string, a list of strings, or a reference to one. Default: the last user message.'),
    runs: preset(integer(1, 1000), 50, 'Maximum number of earlier runs of the thread to read, newest first.'),
  }),
)

const owners = { query: 'recall', limit: 'recall', facts: 'store' } as const

export function readMemory(node: Node, { reader, place }: StepContext) {
  const { faults } = reader
  checkReferences(node, place, reader)
  const parsed = check(memoryConfig(), node, faults, 'the config of a memory step')
  if (parsed === undefined) return undefined
  const { action, query, limit, runs } = parsed
  for (const [key, owner] of Object.entries(owners)) {
    const given = child(node, key)
    if (given && action !== owner) faults.add(given.at, `"${key}" applies only to action: ${owner}; remove it`)
  }
  const facts = child(node, 'facts')
  const config: MemoryConfig = { action, limit, runs }
  if (query !== undefined) config.query = query
  if (facts) config.facts = toTemplate(facts)
  return { type: 'memory' as const, config }
}
