/** Refuses an approval with other arguments that do not fit the tool. Its schema is in the prompt of the call. */
import { MillraceError } from '../part/error.ts'
import type { Log } from '../part/log.ts'
import { parentPath } from '../part/path.ts'
import type { EntryOf } from '../part/entry.ts'
import type { Answer } from '../part/request-part.ts'
import { firstFaults } from '../pipeline/check-input.ts'
import { tooMuchWork, validate } from '../pipeline/json-schema/validate.ts'

export async function checkEdit(log: Log, run: string, request: EntryOf<'request'>, answer: Answer): Promise<void> {
  if (answer.kind !== 'approval' || answer.input === undefined || request.kind !== 'approval') return
  const loop = parentPath(request.step)
  let schema: unknown
  for await (const batch of log.read(run, { types: ['prompt'], before: request.seq })) {
    for (const entry of batch) {
      if (entry.type !== 'prompt' || parentPath(entry.step) !== loop) continue
      schema = entry.tools?.find(({ name }) => name === request.toolName)?.inputSchema ?? schema
    }
  }
  const faults = schema === undefined ? [] : validate(schema, answer.input).filter((fault) => fault !== tooMuchWork)
  if (faults.length === 0) return
  const what = `The arguments for ${request.toolName} do not fit`
  throw new MillraceError('bad-input', `${what}: ${firstFaults(faults)}.`, { status: 400 })
}
