/** JSON Schema of a file of test cases, for editors. */
import { toDraft7, type JsonSchema } from '../pipeline/agent-schema.ts'
import { caseFileSchema } from './case-schema.ts'

export function caseJsonSchema(): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Millrace test cases',
    description: 'Test cases of an agent, run by millrace test.',
    ...toDraft7(caseFileSchema),
  }
}
